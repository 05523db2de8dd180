//! The messages sent for any conversation: valid for the strictest provider and within the limits.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdpoint_common::{
    AssistantMessage, Block, BlockKind, Body, CallId, Event, Fact, HistoryLimit, ItemId, Omission,
    Omitted, PromptFact, PromptId, RunEnd, RunFact, RunProgress, Timestamp, ToolCall, ToolFact,
    ToolResult, ToolStatus, TurnFact, Usage, Who,
};
use holdpoint_session::context::{Bounds, fit};
use holdpoint_session::history::{RESULTS, derive, join_prompts, messages, start_of_newest};
use holdpoint_session::model::{Message, ModelRequest};
use holdpoint_session::testing::{Harness, reply};
use holdpoint_tools::ToolSpec;
use holdpoint_tools::testing::rounds;
use proptest::prelude::*;
use serde_json::json;

/// The errors that the strictest provider would find in a conversation.
fn violations(messages: &[Message]) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Vec<CallId> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut users_turn = true;
    for (n, message) in messages.iter().enumerate() {
        let mut wrong = |what: &str| found.push(format!("{n}: {what}"));
        match message {
            Message::Tool(result) => match open.first() {
                Some(call) if *call == result.call => drop(open.remove(0)),
                _ => wrong("a result of another call than the next"),
            },
            _ if !open.is_empty() => {
                wrong("a call without a result");
                open.clear();
            }
            Message::User(text) if text.trim().is_empty() => wrong("no words"),
            Message::User(_) if !users_turn => wrong("two user messages in a row"),
            Message::User(_) => users_turn = false,
            Message::Assistant(answer) => {
                if users_turn {
                    wrong("an answer where a user message is due");
                }
                if answer.text().trim().is_empty() && answer.calls.is_empty() {
                    wrong("an empty answer");
                }
                open.extend(answer.calls.iter().map(|call| call.id));
                if !answer.calls.iter().all(|call| seen.insert(call.id)) {
                    wrong("a call's name twice");
                }
                users_turn = true;
            }
        }
        // After results, either may follow: the user of a turn that was cut, or the model.
        if matches!(message, Message::Tool(_)) {
            users_turn = matches!(messages.get(n + 1), Some(Message::User(_)));
        }
    }
    if !open.is_empty() || matches!(messages.last(), None | Some(Message::Assistant(_))) {
        found.push("the last message is an answer".into());
    }
    found
}

/// Entries of a log, valid or not.
#[derive(Debug, Clone)]
enum LogEntry {
    Prompt(usize),
    Thinks,
    Says(usize),
    Calls(u64, usize),
    /// A result of the call this many before the last.
    Returns(u64, usize),
    /// The provider refuses the request.
    Refused,
    /// The provider refuses the request, and the next one omits these.
    Omitted(Omitted),
}

fn log_entry() -> impl Strategy<Value = LogEntry> {
    let size = prop_oneof![4 => 1..80usize, 1 => 80..6000usize];
    prop_oneof![
        1 => size.clone().prop_map(LogEntry::Prompt),
        1 => Just(LogEntry::Thinks),
        1 => size.clone().prop_map(LogEntry::Says),
        1 => (1..5u64, size.clone()).prop_map(|(calls, size)| LogEntry::Calls(calls, size)),
        1 => Just(LogEntry::Refused),
        1 => prop::sample::select(vec![Omitted::Calls, Omitted::Thoughts, Omitted::Results, Omitted::History])
            .prop_map(LogEntry::Omitted),
        3 => (0..4u64, size).prop_map(|(back, size)| LogEntry::Returns(back, size)),
    ]
}

/// Text in which every eighth character is a line break.
fn words(size: usize, seed: usize) -> String {
    (0..size.max(1))
        .map(|n| if n % 8 == 7 { '\n' } else { char::from(b'a' + ((n + seed) % 26) as u8) })
        .collect()
}

fn facts(happens: &[LogEntry]) -> Vec<Arc<Event>> {
    let mut calls = 0;
    let mut facts = Vec::new();
    let refused = |omitted: Option<Omitted>| {
        let (usage, context) = (Usage::default(), None);
        let refused = omitted.is_none();
        let omitted = omitted.map(|what| Omission { what, reason: "no".to_owned() });
        Fact::Turn(TurnFact::StepFinished { usage, context, refused, omitted })
    };
    for (n, happens) in happens.iter().enumerate() {
        let answer = |kind, text: String, calls| {
            let block = Block { item: ItemId(1), kind, text, signature: None, calls_before: 0 };
            Fact::Turn(TurnFact::AssistantMessage(
                AssistantMessage { blocks: vec![block], calls, ..AssistantMessage::default() }
                    .into(),
            ))
        };
        let fact = match happens {
            LogEntry::Prompt(size) => Fact::Prompt(PromptFact::Accepted {
                prompt: PromptId(n as u64 + 1),
                text: words(*size, n).into(),
                by: Who::named("test"),
                typed_bytes: None,
                idempotency_key: None,
            }),
            LogEntry::Thinks => answer(BlockKind::Thought, "hm".into(), vec![]),
            LogEntry::Says(size) => answer(BlockKind::Text, words(*size, n), vec![]),
            LogEntry::Calls(more, size) => {
                let named = |id| ToolCall {
                    id: CallId(id),
                    provider_id: None,
                    name: "probe".into(),
                    input: json!({"text": words(*size, n)}),
                    signature: None,
                };
                let new = (calls + 1..=calls + more).map(named).collect();
                calls += more;
                answer(BlockKind::Text, String::new(), new)
            }
            LogEntry::Returns(back, size) => {
                let call = CallId(calls.saturating_sub(*back).max(1));
                Fact::Tool(ToolFact::Finished(
                    ToolResult::not_run(call, ToolStatus::Ok, words(*size, n)).into(),
                ))
            }
            LogEntry::Refused => refused(None),
            LogEntry::Omitted(omitted) => refused(Some(*omitted)),
        };
        let event = Event {
            seq: n as u64 + 1,
            at: Timestamp(0),
            turn: None,
            step: None,
            body: Body::Fact(fact),
        };
        facts.push(Arc::new(event));
    }
    facts
}

fn request(messages: Vec<Message>) -> ModelRequest {
    let spec = ToolSpec {
        name: "probe".into(),
        description: "does it".into(),
        schema: json!({"type": "object"}),
    };
    ModelRequest { system: "Be brief.".into(), messages, tools: [Arc::new(spec)].into() }
}

/// Four bytes per token: fewer tokens than the estimate, as in reality.
fn count(text: &str) -> u64 {
    text.len().div_ceil(4) as u64
}

fn newest(messages: &[Message]) -> Option<&Message> {
    messages.iter().rfind(|message| message.is_prompt())
}

fn size(request: &ModelRequest) -> (u64, u64) {
    let mut tokens = request.messages.len() as u64 * 8;
    for message in &request.messages {
        tokens += match message {
            Message::User(text) => count(text),
            Message::Assistant(answer) => {
                let calls = answer
                    .calls
                    .iter()
                    .map(|call| count(&call.name) + count(&call.input.to_string()));
                answer.blocks.iter().map(|block| count(&block.text)).chain(calls).sum()
            }
            Message::Tool(result) => count(&result.result),
        };
    }
    (tokens, request.messages.iter().map(Message::lines).sum())
}

fn cases() -> u32 {
    rounds(200, 20_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn m_c4_requests_are_valid_for_any_log(happens in prop::collection::vec(log_entry(), 0..60)) {
        let facts = facts(&happens);
        let sent = messages(&facts);
        // Without a prompt, no message is sent.
        if sent.is_empty() {
            prop_assert!(!happens.iter().any(|happens| matches!(happens, LogEntry::Prompt(_))));
        } else {
            prop_assert_eq!(violations(&sent), Vec::<String>::new());
        }
        prop_assert_eq!(&sent, &messages(&facts), "the result depends on the facts alone");
    }

    #[test]
    fn m_e3_a_fitted_request_keeps_both_limits_and_is_valid(
        happens in prop::collection::vec(log_entry(), 0..80),
        tokens in 100..8000u64,
        lines in 20..1500u64,
    ) {
        let whole = request(derive(&facts(&happens)).messages);
        let bounds = Bounds { tokens, lines };
        let mut fitted = whole.clone();
        let mut again = whole.clone();
        let left_out = fit(&mut fitted, &bounds, &mut |text| count(text));
        prop_assert_eq!(&left_out, &fit(&mut again, &bounds, &mut |text| count(text)), "the same each time");
        prop_assert_eq!(&fitted.messages, &again.messages);
        let Ok(left_out) = left_out else {
            // The part that must stay is too large: no request is sent, and only parts of results
            // were cut.
            prop_assert_eq!(fitted.messages.len(), whole.messages.len());
            return Ok(());
        };
        if whole.messages.is_empty() {
            return Ok(());
        }
        let mut sent = fitted.messages.clone();
        join_prompts(&mut sent);
        prop_assert_eq!(violations(&sent), Vec::<String>::new());
        let (sent, sent_lines) = size(&fitted);
        prop_assert!(sent <= tokens || fitted.bytes() * 2 / 5 <= tokens, "{sent} of {tokens} tokens");
        prop_assert!(sent_lines <= lines, "{sent_lines} of {lines} lines");
        prop_assert_eq!(newest(&fitted.messages), newest(&whole.messages), "the newest prompt is kept");
        // The last message is the one that the model must answer.
        let (last, was) = (fitted.messages.last().unwrap(), whole.messages.last().unwrap());
        match (last, was) {
            (Message::Tool(is), Message::Tool(was)) => prop_assert_eq!(is.call, was.call),
            (Message::User(is), Message::User(was)) if is.starts_with(RESULTS) && was.starts_with(RESULTS) => {}
            (is, was) => prop_assert_eq!(is, was),
        }
        let missing = (whole.messages.len() - fitted.messages.len()) as u64;
        prop_assert_eq!(left_out.map_or(0, |left_out| left_out.messages), missing, "the drop is reported");
        let mut twice = fitted.clone();
        prop_assert_eq!(fit(&mut twice, &bounds, &mut |text| count(text)), Ok(None), "a second cut changes nothing");
        prop_assert_eq!(twice.messages, fitted.messages);
    }

    #[test]
    fn m_e3_the_newest_facts_give_the_same_request_as_all(
        happens in prop::collection::vec(log_entry(), 0..80),
        tokens in 100..8000u64,
        lines in 20..1500u64,
        bytes in 0..20_000u64,
    ) {
        // As in every whole log, a prompt comes first.
        let facts = facts(&[vec![LogEntry::Prompt(1)], happens].concat());
        let from = start_of_newest(&facts, bytes);
        let (few, all) = (derive(&facts[from..]), derive(&facts));
        prop_assert_eq!(few.refusals, all.refusals);
        let (mut few, mut all) = (request(few.messages), request(all.messages));
        let bounds = Bounds { tokens, lines };
        // Few facts may be measured by their size, which is less exact than a count.
        let by_size = |request: &ModelRequest| request.bytes() * 2 / 5 <= tokens;
        let is_alike = by_size(&few) == by_size(&all);
        let of_few = fit(&mut few, &bounds, &mut |text| count(text));
        let of_all = fit(&mut all, &bounds, &mut |text| count(text));
        let has_room =
            of_few.as_ref().is_ok_and(|left_out| left_out.is_none_or(|left_out| left_out.has_room));
        // If there is room for more, more facts are tried.
        if from > 0 && !has_room && is_alike {
            prop_assert_eq!(of_few.is_ok(), of_all.is_ok());
            if of_all.is_ok() {
                prop_assert_eq!(few.messages, all.messages);
            }
        }
    }
}

#[test]
fn m_e3_the_newest_facts_begin_with_a_prompt_after_an_answer() {
    let turn = [LogEntry::Prompt(9), LogEntry::Says(900)];
    let happens: Vec<_> = turn.iter().cycle().take(40).cloned().collect();
    let all = facts(&happens);
    assert_eq!(start_of_newest(&all, u64::MAX), 0);
    let from = start_of_newest(&all, 5_000);
    assert!(from > 20 && from.is_multiple_of(2), "{from}");
    // A run that ended later needs its beginning.
    let mut with_run = all.clone();
    let ended = Fact::Run(RunFact::Finished {
        end: RunEnd::Done,
        progress: RunProgress::default(),
        by: None,
    });
    with_run.insert(36, Arc::new(Event { body: Body::Fact(ended), ..(*all[35]).clone() }));
    assert_eq!(start_of_newest(&with_run, 5_000), 0);
    assert_eq!(start_of_newest(&with_run, 0), 39, "a later prompt needs no run");
    // A text of the program is not a prompt.
    let results = Fact::Prompt(PromptFact::Accepted {
        prompt: PromptId(40),
        text: RESULTS.into(),
        by: Who::named("test"),
        typed_bytes: None,
        idempotency_key: None,
    });
    let mut with_results = all.clone();
    with_results[38] = Arc::new(Event { body: Body::Fact(results), ..(*all[38]).clone() });
    assert_eq!(start_of_newest(&with_results, 0), 36);
}

#[test]
fn m_e3_no_token_is_counted_if_the_size_alone_fits() {
    let mut small = request(vec![Message::User("x".repeat(2400))]);
    let bounds = Bounds { tokens: 1000, lines: 10 };
    let never = &mut |_: &str| -> u64 { panic!("a token was counted") };
    assert_eq!(fit(&mut small, &bounds, never), Ok(None));
    // Too many lines alone need no count either.
    let mut lines = request(vec![
        Message::User("\n".repeat(20)),
        Message::Assistant(
            AssistantMessage {
                blocks: vec![Block {
                    item: ItemId(1),
                    kind: BlockKind::Text,
                    text: "a".into(),
                    signature: None,
                    calls_before: 0,
                }],
                ..AssistantMessage::default()
            }
            .into(),
        ),
        Message::User("b".into()),
    ]);
    assert_eq!(fit(&mut lines, &bounds, never).unwrap().unwrap().messages, 2);
}

#[test]
fn m_e3_the_largest_results_are_cut_when_nothing_else_is_left() {
    let call = |id| ToolCall {
        id: CallId(id),
        provider_id: None,
        name: "probe".into(),
        input: json!({}),
        signature: None,
    };
    let answer = AssistantMessage { calls: vec![call(1), call(2)], ..AssistantMessage::default() };
    let result = |id, size| {
        Message::Tool(ToolResult::not_run(CallId(id), ToolStatus::Ok, words(size, 0)).into())
    };
    let small = result(1, 100);
    let mut large = request(vec![
        Message::User("go".into()),
        Message::Assistant(answer.into()),
        small.clone(),
        result(2, 100_000),
    ]);
    let bounds = Bounds { tokens: 3000, lines: 100_000 };
    let left_out = fit(&mut large, &bounds, &mut |text| count(text)).unwrap().unwrap();
    assert_eq!((left_out.messages, left_out.results), (0, 1));
    assert_eq!(large.messages[2], small, "a small result stays whole");
    let Message::Tool(cut) = &large.messages[3] else { panic!("{large:?}") };
    assert!(
        cut.result.contains("bytes left out: the conversation has no room for them"),
        "{}",
        cut.result
    );
    assert!(cut.result.len() > 4000, "as much as fits is kept: {}", cut.result.len());

    let mut prompt = request(vec![Message::User(words(100_000, 0))]);
    let error = fit(&mut prompt, &bounds, &mut |text| count(text)).unwrap_err().to_string();
    assert!(
        error.contains("about 2502")
            && error.contains("tokens")
            && error.contains("at most 3000 tokens"),
        "{error}"
    );
}

/// The next prompt is about the results of a long turn.
#[test]
fn m_e3_the_newest_units_stay_though_their_turn_does_not_fit_whole() {
    let step = |n: u64| {
        let call = ToolCall {
            id: CallId(n),
            provider_id: None,
            name: "probe".into(),
            input: json!({}),
            signature: None,
        };
        let answer = AssistantMessage { calls: vec![call], ..AssistantMessage::default() };
        [
            Message::Assistant(answer.into()),
            Message::Tool(
                ToolResult::not_run(CallId(n), ToolStatus::Ok, words(4_000, n as usize)).into(),
            ),
        ]
    };
    let block = Block {
        item: ItemId(1),
        kind: BlockKind::Text,
        text: "A to C are done; D is left.".into(),
        signature: None,
        calls_before: 0,
    };
    let answer = Message::Assistant(
        AssistantMessage { blocks: vec![block], ..AssistantMessage::default() }.into(),
    );
    let (goal, next) = (Message::User("do A to D".into()), Message::User("now do D".into()));
    let turn = std::iter::once(goal.clone())
        .chain((1..=7).flat_map(step))
        .chain([answer.clone(), next.clone()]);
    let whole: Vec<_> = turn.collect();
    let room = |tokens| {
        let mut fitted = request(whole.clone());
        let left_out =
            fit(&mut fitted, &Bounds { tokens, lines: 100_000 }, &mut |text| count(text))
                .unwrap()
                .unwrap();
        assert_eq!(violations(&fitted.messages), Vec::<String>::new());
        assert_eq!(left_out.messages as usize, whole.len() - fitted.messages.len());
        fitted.messages
    };
    let kept = room(6_000);
    assert!(kept.len() > 5, "as many units as fit are kept: {}", kept.len());
    assert_eq!(kept[0], goal, "the kept units begin with their turn's prompt");
    assert_eq!(kept[1..], whole[whole.len() + 1 - kept.len()..]);
    // If their prompt does not fit, the steps are dropped with it.
    let mut large = whole.clone();
    large[0] = Message::User(words(40_000, 0));
    let mut fitted = request(large);
    fit(&mut fitted, &Bounds { tokens: 6_000, lines: 100_000 }, &mut |text| count(text)).unwrap();
    assert_eq!(fitted.messages, [next]);
}

#[test]
fn a_cut_says_whether_lines_or_tokens_were_over_the_limit() {
    let text = "a line\n".repeat(50);
    let whole: Vec<_> = (0..10).map(|_| Message::User(text.clone())).collect();
    let reached = |tokens, lines| {
        let left_out =
            fit(&mut request(whole.clone()), &Bounds { tokens, lines }, &mut |text| count(text));
        left_out.unwrap().unwrap().by_lines
    };
    assert!(reached(1_000_000, 200), "of the lines, four fit");
    assert!(!reached(800, 1_000_000), "of the tokens, not all fit");
}

#[tokio::test]
async fn a_cut_names_the_limit_that_was_reached() {
    let limits = holdpoint_common::Limits::default;
    for (limits, reached) in [
        (holdpoint_common::Limits { max_history_tokens: 8_000, ..limits() }, HistoryLimit::Tokens),
        (holdpoint_common::Limits { max_history_lines: 2_000, ..limits() }, HistoryLimit::Lines),
    ] {
        let harness = Harness::limited(limits);
        let session = harness.open().await;
        let mut events = harness.watch(&session).await;
        for _ in 0..3 {
            harness.model.then(reply().text("Yes."));
            session.prompt("a line of words\n".repeat(900)).await.unwrap();
            events.turn_finished().await;
        }
        let cut = |event: &Event| match event.fact()? {
            Fact::Turn(TurnFact::HistoryCut(cut)) => Some(cut.reached),
            _ => None,
        };
        assert_eq!(events.until("the cut", cut).await, reached);
    }
}

#[tokio::test]
async fn m_e3_a_long_history_is_cut_and_the_cut_is_shown() {
    let limits = holdpoint_common::Limits {
        max_history_tokens: 8000,
        ..holdpoint_common::Limits::default()
    };
    let harness = Harness::limited(limits);
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    for n in 0..20 {
        harness.model.then(reply().text("answer ".repeat(400)).usage(Usage {
            input: 500,
            output: 100,
            ..Usage::default()
        }));
        session.prompt(format!("prompt {n} {}", "word ".repeat(500))).await.unwrap();
        events.turn_finished().await;
    }
    let next_cut = events.until("the cut", |event| match event.fact()? {
        Fact::Turn(TurnFact::HistoryCut(cut)) => Some(*cut),
        _ => None,
    });
    let cut = next_cut.await;
    assert!(
        cut.messages > 0
            && cut.tokens <= 8000
            && cut.limit == 8000
            && cut.reached == HistoryLimit::Tokens,
        "{cut:?}"
    );
    assert!((1..100).contains(&cut.lines) && cut.line_limit == 50_000, "{cut:?}");
    let request = harness.model.requests().pop().unwrap();
    assert_eq!(violations(&request.messages), Vec::<String>::new());
    assert!(request.messages.len() < 39, "{}", request.messages.len());
    assert!(
        matches!(request.messages.last(), Some(Message::User(text)) if text.starts_with("prompt 19"))
    );
    let fill = session.snapshot().context.unwrap();
    assert_eq!((fill.tokens, fill.limit), (600, 8000));
    // The log has every prompt.
    let prompts = events
        .facts()
        .filter(|fact| matches!(fact, Fact::Prompt(PromptFact::Accepted { .. })))
        .count();
    assert_eq!(prompts, 20);
}

/// A conversation of which the newest facts alone are tried first, and one in which they take few
/// tokens, so that more are tried.
#[tokio::test]
async fn m_e3_a_long_conversation_gives_as_many_messages_as_fit() {
    const TURNS: u64 = 200;
    let limits = holdpoint_common::Limits {
        max_history_tokens: 8000,
        ..holdpoint_common::Limits::default()
    };
    for (answer, least, most) in [
        ("answer ".repeat(450), 10_000, 60_000),
        (format!("x{}", " ".repeat(3_000)), 140_000, 500_000),
    ] {
        let harness = Harness::limited(limits.clone());
        let session = harness.open().await;
        let mut events = harness.watch(&session).await;
        for n in 0..TURNS {
            harness.model.then(reply().text(&answer));
            session.prompt(format!("prompt {n}")).await.unwrap();
            events.turn_finished().await;
        }
        let cuts: Vec<_> = events
            .facts()
            .filter_map(|fact| match fact {
                Fact::Turn(TurnFact::HistoryCut(cut)) => Some(*cut),
                _ => None,
            })
            .collect();
        let request = harness.model.requests().pop().unwrap();
        let sent = request.messages.len() as u64;
        let bytes: usize = request.messages.iter().map(text_bytes).sum();
        let Some(cut) = cuts.last() else { panic!("no cut: {bytes} bytes in {sent} messages") };
        assert_eq!(cut.messages + sent, 2 * TURNS - 1, "each is sent or reported");
        assert!((least..most).contains(&bytes), "{bytes} bytes in {sent} messages");
        assert_eq!(violations(&request.messages), Vec::<String>::new());
        assert!((7_000..=8_000).contains(&cut.tokens), "{cut:?}");
    }
}

/// The bytes of the text in a message.
fn text_bytes(message: &Message) -> usize {
    match message {
        Message::User(text) => text.len(),
        Message::Assistant(answer) => answer.text().len(),
        Message::Tool(result) => result.result.len(),
    }
}

#[tokio::test]
async fn m_e3_a_prompt_that_can_not_be_cut_is_a_clear_error() {
    let limits = holdpoint_common::Limits {
        max_history_tokens: 1000,
        ..holdpoint_common::Limits::default()
    };
    let harness = Harness::limited(limits);
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("word ".repeat(5000)).await.unwrap();
    let error = events.turn_finished().await.error.unwrap();
    assert!(error.contains("too large") && error.contains("max_history_tokens"), "{error}");
    assert!(harness.model.requests().is_empty());
}

#[test]
fn m_e3_a_request_never_goes_above_the_models_window() {
    let limits = holdpoint_common::Limits::default();
    let tokens = |window, max_output| {
        let model = holdpoint_common::ModelSettings { window, max_output, ..Default::default() };
        Bounds::new(&limits, &model).tokens
    };
    assert_eq!(tokens(None, None), 100_000);
    assert_eq!(tokens(Some(1_000_000), None), 100_000);
    assert_eq!(
        tokens(Some(32_768), None),
        28_672,
        "an eighth of the window is left for the answer"
    );
    assert_eq!(
        tokens(Some(32_768), Some(8_000)),
        24_768,
        "the maximum answer is left for the answer"
    );
    assert_eq!(tokens(Some(4_000), Some(8_000)), 0);
}

#[tokio::test]
async fn m_e3_after_a_prompt_that_is_too_large_the_next_one_is_answered() {
    let limits = holdpoint_common::Limits {
        max_history_tokens: 4000,
        ..holdpoint_common::Limits::default()
    };
    let harness = Harness::limited(limits);
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("remember KUMQUAT").await.unwrap();
    events.turn_finished().await;
    session.prompt("word ".repeat(5000)).await.unwrap();
    assert!(events.turn_finished().await.error.unwrap().contains("too large"));
    for prompt in ["hi", "and now?"] {
        session.prompt(prompt).await.unwrap();
        let end = events.turn_finished().await;
        assert_eq!(end.outcome, holdpoint_common::Outcome::Done, "{:?}", end.error);
        let request = harness.model.requests().pop().unwrap();
        assert_eq!(
            request.messages.last(),
            Some(&Message::User(prompt.into())),
            "the large prompt is left out"
        );
        let prompts = request.messages.iter().filter_map(|message| match message {
            Message::User(text) => Some(&**text),
            _ => None,
        });
        let asked = ["remember KUMQUAT", "hi", "and now?"];
        let asked: Vec<_> =
            asked.into_iter().take_while(|asked| *asked != prompt).chain([prompt]).collect();
        assert_eq!(prompts.collect::<Vec<_>>(), asked, "nothing else is left out");
        assert_eq!(request.messages.len(), 2 * asked.len() - 1, "the answers are kept");
        assert_eq!(violations(&request.messages), Vec::<String>::new());
    }
}

#[tokio::test]
async fn m_c4_prompts_in_a_row_that_fit_are_sent_as_one() {
    let harness = Harness::start();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    harness.model.then(reply().fail("no"));
    for prompt in ["one", "two"] {
        session.prompt(prompt).await.unwrap();
        events.turn_finished().await;
    }
    let one = "one\n\n[The turn ended here, before you answered.]\n\ntwo";
    assert_eq!(harness.model.requests()[1].messages, [Message::User(one.into())]);
}

/// An omission copies only the messages that it changes.
#[test]
fn a_conversation_with_very_many_omissions_is_derived_in_linear_time() {
    let turn = [
        LogEntry::Prompt(10),
        LogEntry::Calls(1, 10),
        LogEntry::Returns(0, 10),
        LogEntry::Omitted(Omitted::Results),
        LogEntry::Omitted(Omitted::Calls),
        LogEntry::Says(10),
    ];
    let turns = 60_000;
    let happens: Vec<_> = turn.iter().cycle().take(turn.len() * turns).cloned().collect();
    let sent = messages(&facts(&happens));
    assert_eq!(violations(&sent), [] as [String; 0]);
    let left = sent.iter().filter(|message| matches!(message, Message::Tool(_))).count();
    assert_eq!(left, 0, "the calls are text, with their results");
}
