//! Attach and detach: no event is missed or repeated, and the session waits for no client.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use holdpoint_common::{
    Body, Delta, Event, Fact, HeadAndTail, ItemKind, Limits, Outcome, PromptFact, SessionStatus,
    ToolFact, TurnFact,
};
use holdpoint_session::testing::{Harness, Recorder, reply, within_patience};
use holdpoint_session::{AttachFrom, ClientEnd, SessionError, SessionHandle};
use holdpoint_tools::ToolOutcome;
use serde_json::json;

/// Makes the probe stream `lines` numbered lines.
fn script_flood(harness: &Harness) {
    harness.probe.does(|input, context| {
        for n in 0..input["lines"].as_u64().unwrap_or(0) {
            context.output(&format!("line {n}\n"));
        }
        Ok(ToolOutcome::text("flooded"))
    });
}

fn facts(events: &[Arc<Event>]) -> Vec<u64> {
    events.iter().filter(|event| event.fact().is_some()).map(|event| event.seq).collect()
}

async fn run_flood(harness: &Harness, session: &SessionHandle, lines: u64) {
    harness.model.then(reply().text("flooding").call("probe", json!({ "lines": lines })));
    session.prompt("go").await.unwrap();
    assert_eq!(session.settled().await.unwrap().last_turn.as_ref().unwrap().outcome, Outcome::Done);
}

/// Reads up to the event with this number.
async fn read_to(recorder: &mut Recorder, last: u64) {
    while recorder.events().last().is_none_or(|event| event.seq < last) {
        recorder.next().await.unwrap();
    }
}

#[tokio::test]
async fn m_b4_a_later_client_gets_the_same_events() {
    let harness = Harness::start();
    script_flood(&harness);
    let session = harness.open().await;
    let mut first = harness.watch(&session).await;
    run_flood(&harness, &session, 50).await;
    let last = session.snapshot().seq;
    read_to(&mut first, last).await;
    let mut second = harness.watch(&session).await;
    read_to(&mut second, last).await;
    assert_eq!(first.events(), second.events());
    assert_eq!(second.attachment().snapshot().status, SessionStatus::Idle);
    // The user's input is in it, too.
    assert!(second.facts().any(
        |fact| matches!(fact, Fact::Prompt(PromptFact::Accepted { text, .. }) if &**text == "go")
    ));
}

#[tokio::test]
async fn m_b4_a_cursor_beyond_the_newest_event_is_refused() {
    let harness = Harness::start();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    events.turn_finished().await;
    let newest = session.settled().await.unwrap().seq;
    read_to(&mut events, newest).await;
    for after in [newest + 1, newest + 2, 1 << 63, u64::MAX - 1, u64::MAX] {
        for limit in [None, Some(0), Some(1_000_000)] {
            let refused =
                session.attach(AttachFrom { limit, ..AttachFrom::after(after) }).await.err();
            let session = session.id().clone();
            assert_eq!(
                refused,
                Some(SessionError::UnknownEvent { session, after, newest }),
                "limit {limit:?}"
            );
        }
    }
    let mut rest = Recorder::new(session.attach(AttachFrom::after(newest)).await.unwrap());
    session.prompt("go on").await.unwrap();
    rest.turn_finished().await;
    assert!(rest.events()[0].seq > newest, "the actor continues its numbers");
}

#[tokio::test]
async fn m_b4_attach_after_a_number_sends_only_later_events() {
    let harness = Harness::start();
    script_flood(&harness);
    let session = harness.open().await;
    let mut whole = harness.watch(&session).await;
    run_flood(&harness, &session, 20).await;
    let last = session.snapshot().seq;
    read_to(&mut whole, last).await;
    for (at, event) in whole.events().iter().enumerate().filter(|(_, event)| event.seq < last) {
        let mut attached = session.attach(AttachFrom::after(event.seq)).await.unwrap();
        let mut part = Vec::new();
        while part.last().is_none_or(|event: &Arc<Event>| event.seq < last) {
            part.push(within_patience("an event", attached.next()).await.unwrap());
        }
        assert_eq!(part, whole.events()[at + 1..]);
    }
}

#[tokio::test]
async fn m_b4_limit_gives_the_newest_facts_from_memory_and_log() {
    let limits = Limits { buffered_events: 8, ..Limits::default() };
    let harness = Harness::limited(limits);
    let session = harness.open().await;
    for _ in 0..5 {
        harness.model.then(reply().text("x"));
        session.prompt("go").await.unwrap();
        session.settled().await.unwrap();
    }
    // The buffer is so small that a client following live may lag.
    let mut whole = harness.watch(&session).await;
    let last = whole.attachment().snapshot().seq;
    read_to(&mut whole, last).await;
    let all = facts(whole.events());
    for limit in [0, 1, 3, 7, 12, all.len(), all.len() + 5] {
        let from = AttachFrom { limit: Some(limit), ..AttachFrom::start() };
        let mut attached = session.attach(from).await.unwrap();
        let mut seen = Vec::new();
        while limit > 0 && seen.last() != all.last() {
            let event = within_patience("a fact", attached.next()).await.unwrap();
            seen.extend(event.fact().map(|_| event.seq));
        }
        assert_eq!(seen, all[all.len() - limit.min(all.len())..], "limit {limit}");
    }
}

#[tokio::test]
async fn m_b3_m_b4_a_partly_evicted_open_item_is_sent_as_its_text_so_far() {
    let limits = Limits { buffered_events: 50, ..Limits::default() };
    let harness = Harness::limited(limits);
    let live = harness.model.then_live();
    let session = harness.open().await;
    let mut first = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    let mut sent = String::new();
    for n in 0..200 {
        let word = format!("word{n} ");
        sent.push_str(&word);
        live.text(word.clone());
        first
            .until_new("the word", |event| match event.delta() {
                Some(Delta::Text { text, .. }) if text.contains(&word) => Some(()),
                _ => None,
            })
            .await;
    }
    let mut late = harness.watch(&session).await;
    live.text("end");
    drop(live);
    // The recorder folds the item and compares it with the finished one.
    late.turn_finished().await;
    let summaries = late
        .events()
        .iter()
        .filter(|event| matches!(event.body, Body::Delta(Delta::ItemSoFar { .. })));
    assert_eq!(summaries.count(), 1);
    let deltas = late
        .events()
        .iter()
        .filter(|event| matches!(event.body, Body::Delta(Delta::Text { .. })))
        .count();
    assert!(deltas < 60, "most of the deltas are gone: {deltas}");
    let whole = late.facts().find_map(|fact| match fact {
        Fact::Turn(TurnFact::AssistantMessage(message)) => Some(message.text()),
        _ => None,
    });
    assert_eq!(whole.unwrap(), sent + "end");
    // All facts are there, including those from the log.
    first.turn_finished().await;
    assert_eq!(facts(first.events()), facts(late.events()));
}

#[tokio::test]
async fn m_b4_an_open_item_is_sent_whole_whatever_the_limit_of_facts() {
    let harness = Harness::start();
    let session = harness.open().await;
    let mut first = harness.watch(&session).await;
    harness.model.then(reply().text("a turn that is over"));
    session.prompt("go").await.unwrap();
    first.turn_finished().await;
    let live = harness.model.then_live();
    session.prompt("go on").await.unwrap();
    for word in ["one ", "two "] {
        live.text(word);
        first
            .until("the word", |event| {
                matches!(event.delta()?, Delta::Text { text, .. } if text == word).then_some(())
            })
            .await;
    }
    for limit in [0, 1, 2, 100] {
        let mut late = Recorder::new(
            session.attach(AttachFrom { limit: Some(limit), ..AttachFrom::start() }).await.unwrap(),
        );
        // The buffer has all of its pieces, so each arrives once, whatever the limit of facts.
        let piece = |event: &Event| match event.delta()? {
            Delta::Text { item, text } => Some((*item, text.clone())),
            _ => None,
        };
        late.until("the last piece", |event| piece(event).filter(|(_, text)| text == "two ")).await;
        let pieces: Vec<_> = late.events().iter().filter_map(|event| piece(event)).collect();
        let item = pieces.last().unwrap().0;
        let open: Vec<_> =
            pieces.iter().filter(|(of, _)| *of == item).map(|(_, text)| text.as_str()).collect();
        assert_eq!(open, ["one ", "two "], "limit {limit}");
    }
    // A returning client has the events up to its cursor.
    let seen = first.events().last().unwrap().seq;
    let mut back = Recorder::new(
        session.attach(AttachFrom { limit: Some(0), ..AttachFrom::after(seen) }).await.unwrap(),
    );
    live.text("three");
    let next = back.next().await.unwrap();
    assert!(matches!(next.delta(), Some(Delta::Text { text, .. }) if text == "three"), "{next:?}");
}

#[tokio::test]
async fn m_b5_after_detach_the_session_keeps_running() {
    let harness = Harness::start();
    let live = harness.model.then_live();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    live.text("before");
    events.until("text", |event| event.delta().map(|_| ())).await;
    drop(events);
    live.text("while nobody watched");
    drop(live);
    session.settled().await.unwrap();
    let mut events = harness.watch(&session).await;
    events.turn_finished().await;
    let text = events.facts().find_map(|fact| match fact {
        Fact::Turn(TurnFact::AssistantMessage(message)) => Some(message.text()),
        _ => None,
    });
    assert!(text.unwrap().contains("while nobody watched"));
}

#[tokio::test]
async fn m_b6_a_slow_client_ends_with_the_number_to_continue_from() {
    let limits = Limits { buffered_events: 100, ..Limits::default() };
    let harness = Harness::limited(limits);
    script_flood(&harness);
    let session = harness.open().await;
    // This client reads nothing more while the session floods.
    let mut slow = session.attach(AttachFrom::start()).await.unwrap();
    let mut seen = vec![within_patience("the first event", slow.next()).await.unwrap()];
    run_flood(&harness, &session, 5_000).await;
    while let Some(event) = within_patience("an event or the end", slow.next()).await {
        seen.push(event);
    }
    let ClientEnd::Lagged { after } = slow.end() else { panic!("{:?}", slow.end()) };
    assert_eq!(after, seen.last().unwrap().seq, "the stream continues exactly where it stopped");
    let last = session.snapshot().seq;
    let mut rest = session.attach(AttachFrom::after(after)).await.unwrap();
    while seen.last().unwrap().seq < last {
        seen.push(within_patience("an event", rest.next()).await.unwrap());
    }
    let mut whole = harness.watch(&session).await;
    read_to(&mut whole, last).await;
    assert_eq!(facts(&seen), facts(whole.events()), "every fact once, in order");
}

#[tokio::test]
async fn m_b6_a_client_also_lags_by_bytes() {
    let limits = Limits { buffered_bytes: 64 * 1024, ..Limits::default() };
    let harness = Harness::limited(limits);
    harness.probe.does(|_, context| {
        let line = "x".repeat(8 * 1024);
        (0..200).for_each(|_| context.output(&line));
        Ok(ToolOutcome::default())
    });
    let session = harness.open().await;
    let mut slow = session.attach(AttachFrom::now()).await.unwrap();
    run_flood(&harness, &session, 0).await;
    assert!(
        within_patience("the end", slow.next()).await.is_none(),
        "a slow client receives no events after the lost ones"
    );
    assert_eq!(slow.end(), ClientEnd::Lagged { after: slow.snapshot().seq });
}

#[tokio::test]
async fn m_b6_a_client_with_its_own_queue_limit_misses_nothing_that_fits() {
    let limits = Limits { buffered_events: 100, ..Limits::default() };
    let harness = Harness::limited(limits);
    script_flood(&harness);
    let session = harness.open().await;
    // Neither client reads while the session floods.
    let mut roomy = session.attach(AttachFrom::start().with_room(64 * 1024 * 1024)).await.unwrap();
    let mut narrow = session.attach(AttachFrom::start().with_room(64 * 1024)).await.unwrap();
    run_flood(&harness, &session, 5_000).await;
    let last = session.snapshot().seq;
    let mut seen = Vec::new();
    while seen.last() != Some(&last) {
        seen.push(within_patience("an event", roomy.next()).await.unwrap().seq);
    }
    assert!(seen.len() > 5_000, "{} events", seen.len());
    assert_eq!(seen, (1..=last).collect::<Vec<_>>(), "every event");
    while within_patience("the end", narrow.next()).await.is_some() {}
    assert!(matches!(narrow.end(), ClientEnd::Lagged { .. }), "{:?}", narrow.end());
}

/// A client's queue shares the events of the buffer, and keeps no others.
#[tokio::test]
async fn t_s1_a_client_that_never_reads_keeps_only_buffered_events() {
    const KEPT: usize = 50;
    let limits = Limits { buffered_events: KEPT, ..Limits::default() };
    let harness = Harness::limited(limits);
    let live = harness.model.then_live();
    let session = harness.open().await;
    let mut deaf = session.attach(AttachFrom::start()).await.unwrap();
    let mut first = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    let mut weak_events = Vec::new();
    for n in 0..4 * KEPT {
        let word = format!("word{n} ");
        live.text(word.clone());
        let is_word = |event: &Event| matches!(event.delta(), Some(Delta::Text { text, .. }) if *text == word);
        first.until_new("the word", |event| is_word(event).then_some(())).await;
        weak_events.push(Arc::downgrade(first.events().last().unwrap()));
        // The client stays attached until it is too far behind.
        let clients = session.snapshot().clients;
        assert!(clients == 2 || n >= KEPT - 20, "{clients} clients after {n} words");
    }
    drop(first);
    let kept = weak_events.iter().filter(|event| event.strong_count() > 0).count();
    // The summary of the evicted text and the saved draft keep one event each.
    assert!(kept <= KEPT + 2, "{kept} events are kept");
    assert_eq!(
        within_patience("the end", deaf.next()).await.map(|event| event.seq),
        Some(1),
        "an event sent before the client lagged is delivered"
    );
    while within_patience("the end", deaf.next()).await.is_some() {}
    assert!(matches!(deaf.end(), ClientEnd::Lagged { .. }));
}

#[tokio::test]
async fn m_b4_the_connection_limit_is_a_clear_refusal() {
    let limits = Limits { max_clients: 3, ..Limits::default() };
    let harness = Harness::limited(limits);
    let session = harness.open().await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(session.attach(AttachFrom::now()).await.unwrap());
    }
    let refused = session.attach(AttachFrom::now()).await.err().unwrap();
    assert_eq!(refused, SessionError::TooManyClients { limit: 3 });
    clients.pop();
    session.attach(AttachFrom::now()).await.unwrap();
}

/// 1,000 attaches and detaches during a flood. Each client receives the facts of the log from its
/// cursor, each once and in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_s8_attach_and_detach_at_random_in_a_flood() {
    const CLIENTS: usize = 10;
    const ROUNDS: usize = 100;
    let limits = Limits { buffered_events: 500, ..Limits::default() };
    let harness = Harness::limited(limits);
    script_flood(&harness);
    let session = harness.open().await;
    // The flood lasts as long as there are clients.
    let over = Arc::new(AtomicBool::new(false));
    let (model, flooded, until) = (harness.model.clone(), session.clone(), Arc::clone(&over));
    let flood = tokio::spawn(async move {
        while !until.load(Ordering::Relaxed) {
            model
                .then(reply().text("a").call("probe", json!({ "lines": 300 })))
                .then(reply().text("b"));
            flooded.prompt("go").await.unwrap();
            flooded.settled().await.unwrap();
        }
    });
    let client = |session: SessionHandle| async move {
        let (mut facts, mut after) = (Vec::new(), 0);
        for _ in 0..ROUNDS {
            let mut attached = session.attach(AttachFrom::after(after)).await.unwrap();
            for _ in 0..fastrand::u32(1..200) {
                let Some(event) = within_patience("an event", attached.next()).await else { break };
                assert!(event.seq > after, "{} after {after}", event.seq);
                after = event.seq;
                facts.extend(event.fact().map(|_| event.seq));
            }
        }
        (facts, after)
    };
    let clients: Vec<_> = (0..CLIENTS).map(|_| tokio::spawn(client(session.clone()))).collect();
    let mut seen = Vec::new();
    for client in clients {
        seen.push(client.await.unwrap());
    }
    over.store(true, Ordering::Relaxed);
    flood.await.unwrap();
    let last = session.settled().await.unwrap().seq;
    let mut whole = harness.watch(&session).await;
    read_to(&mut whole, last).await;
    let log = facts(whole.events());
    for (facts, after) in seen {
        let upto = log.partition_point(|seq| *seq <= after);
        assert_eq!(facts, log[..upto], "each fact once, in order");
    }
}

/// A client that lags again and again folds every item to its final content, however small the
/// buffer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invariant_3_items_fold_to_their_final_content_however_often_a_client_lags() {
    let (mut attachments, mut folds) = (0, 0);
    for buffered_events in [2, 40, 400] {
        let limits = Limits { buffered_events, ..Limits::default() };
        let harness = Harness::limited(limits);
        script_flood(&harness);
        let session = harness.open().await;
        for _ in 0..20 {
            harness
                .model
                .then(reply().text("thinking aloud").call("probe", json!({ "lines": 500 })));
            session.prompt("go").await.unwrap();
        }
        let (mut after, mut items, mut finished) = (0, BTreeMap::new(), 0);
        while finished < 20 {
            let mut attached = session.attach(AttachFrom::after(after)).await.unwrap();
            while let Some(event) = within_patience("an event or the end", attached.next()).await {
                assert!(event.seq > after);
                after = event.seq;
                match &event.body {
                    Body::Delta(Delta::Output { item, text }) => {
                        items.entry(*item).or_insert_with(HeadAndTail::default).push(text)
                    }
                    Body::Delta(Delta::ItemSoFar { item, kind: ItemKind::Output, so_far }) => {
                        items.insert(*item, so_far.clone());
                    }
                    Body::Fact(Fact::Tool(ToolFact::Finished(result))) => {
                        // An item that came and went while the client was away has only its fact.
                        if let Some(folded) = items.remove(&result.call.item()) {
                            folds += 1;
                            assert_eq!(folded.finish(), result.output);
                        }
                    }
                    Body::Fact(Fact::Turn(TurnFact::Finished { .. })) => finished += 1,
                    _ => {}
                }
                if finished == 20 {
                    break;
                }
            }
            attachments += 1;
        }
    }
    assert!(attachments > 6 && folds > 3, "{attachments} attachments, {folds} folded items");
}
