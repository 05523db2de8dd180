//! Exports with a valid checksum and facts that never happen: each is refused with its line, or
//! becomes a session that opens, continues, and sends its model only requests that the strictest
//! server accepts.

use std::cell::Cell;
use std::collections::HashMap;
use std::error::Error;

use holdpoint_common::{
    Answer, AskRequest, Fact, Hold, Limits, PolicyMode, QuestionReply, SessionId, SessionStatus,
    TurnFact,
};
use holdpoint_session::testing::{Recorder, patience};
use holdpoint_session::transfer::ImportError;
use holdpoint_session::{AttachFrom, RunRequest, SessionError};
use holdpoint_tests::json::{Mistake, slip};
use holdpoint_tests::model_server::{Reply, Wire};
use holdpoint_tests::world::{TestEngine, TestSession};
use holdpoint_tools::testing::rounds;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, FileFailurePersistence, TestCaseError, TestRunner};
use serde_json::{Value, json};
use tokio::time::timeout;

/// A change to the facts of a session.
#[derive(Debug, Clone)]
enum Change {
    /// One fact is missing.
    Lost(Index),
    /// One fact is repeated elsewhere.
    Twice(Index, Index),
    /// Two facts are swapped.
    Swapped(Index, Index),
    /// All facts from one on are missing.
    Cut(Index),
    /// One fact has other content.
    Said(Index, Mistake),
}

/// An export that no session has written.
#[derive(Debug, Clone)]
struct Odd {
    life: Index,
    changes: Vec<Change>,
    /// The facts keep their numbers.
    numbered: bool,
}

fn odd() -> impl Strategy<Value = Odd> {
    let at = any::<Index>;
    let change = prop_oneof![
        2 => at().prop_map(Change::Lost),
        2 => (at(), at()).prop_map(|(one, to)| Change::Twice(one, to)),
        2 => (at(), at()).prop_map(|(one, other)| Change::Swapped(one, other)),
        1 => at().prop_map(Change::Cut),
        3 => (at(), slip()).prop_map(|(at, slip)| Change::Said(at, slip)),
    ];
    let numbered = prop::bool::weighted(0.1);
    (at(), prop::collection::vec(change, 1..5), numbered)
        .prop_map(|(life, changes, numbered)| Odd { life, changes, numbered })
}

impl Change {
    fn make(&self, facts: &mut Vec<Value>) {
        let count = facts.len();
        // The first fact stays in place.
        let other = |at: &Index| 1 + at.index(count - 1);
        match self {
            _ if count < 2 => {}
            Self::Lost(at) => drop(facts.remove(other(at))),
            Self::Twice(one, to) => facts.insert(other(to), facts[other(one)].clone()),
            Self::Swapped(one, with) => facts.swap(other(one), other(with)),
            Self::Cut(at) => facts.truncate(other(at)),
            Self::Said(at, slip) => {
                let fact = &mut facts[at.index(count)];
                slip.spoil(&mut fact["body"]);
            }
        }
    }
}

impl Odd {
    fn text(&self, lives: &[Vec<Value>]) -> Vec<u8> {
        let mut facts = self.life.get(lives).clone();
        self.changes.iter().for_each(|change| change.make(&mut facts));
        if !self.numbered {
            number(&mut facts);
        }
        text(&facts)
    }
}

/// Numbers facts in their order, and renames each ask after the fact that raises it.
fn number(facts: &mut [Value]) {
    let mut asks = HashMap::new();
    for (fact, n) in facts.iter_mut().zip(1_u64..) {
        fact["seq"] = (n * 3).into();
        if let Some(id) = fact.pointer_mut("/body/ask/id")
            && let Some((session, _)) = id.as_str().and_then(|id| id.rsplit_once('.'))
        {
            let new = format!("{session}.{}", n * 3);
            asks.insert(std::mem::replace(id, new.clone().into()), new);
        }
    }
    for fact in facts {
        if let Some(ask) = fact.pointer_mut("/body/ask").filter(|ask| ask.is_string())
            && let Some(new) = asks.get(ask)
        {
            *ask = new.clone().into();
        }
    }
}

/// The export of these facts, with a valid checksum.
fn text(facts: &[Value]) -> Vec<u8> {
    let id = facts[0]["body"]["settings"]["id"].as_str().unwrap_or("x");
    let header = json!({"format": "holdpoint-session", "version": 1, "id": id});
    let lines =
        std::iter::once(&header).chain(facts).map(|line| format!("{line}\n")).collect::<String>();
    let sum = format!("{:016x}", xxhash_rust::xxh3::xxh3_64(lines.as_bytes()));
    format!("{lines}{}\n", json!({"end": {"facts": facts.len(), "checkSum": sum}})).into_bytes()
}

/// The facts of a session so far.
async fn exported_facts(world: &TestEngine, talk: &TestSession) -> Vec<Value> {
    let mut text = Vec::new();
    world.sessions().export(talk.session.id().as_str(), &mut text).await.unwrap();
    let lines: Vec<Value> = text
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    lines[1..lines.len() - 1].to_vec()
}

async fn wait_held(talk: &mut TestSession) {
    let standing = |hold: &Hold| matches!(hold, Hold::Standing { .. });
    while !standing(&talk.events.hold_changed().await) {}
}

/// The facts of a session with a bit of everything, at several moments of its life.
async fn sample_sessions(world: &TestEngine) -> Vec<Vec<Value>> {
    let mut lives = Vec::new();
    let mut talk = world.open_with(|open| open.policy(PolicyMode::Ask)).await;
    let call = |tool: &str, input: Value| {
        world.server.reply(
            Reply::stream()
                .think("hm")
                .say("I try.")
                .call(0, tool, &input.to_string())
                .finish("tool_calls"),
        );
    };
    let denied = Answer::Deny { reason: Some("no \u{1f600}".into()), always: false };
    for (command, answer) in
        [("touch one", Answer::Approve { always: true }), ("touch two", denied)]
    {
        call("shell", json!({ "command": command }));
        talk.session.prompt(format!("{command}\n\u{1f468}\u{200d}\u{1f469}")).await.unwrap();
        talk.events.asked().await;
        talk.events.answer(answer).await.unwrap();
        talk.events.turn_finished().await;
    }
    call("ask_user", json!({"question": "Which?"}));
    talk.session.prompt("ask me").await.unwrap();
    let ask = talk.events.asked().await;
    lives.push(exported_facts(world, &talk).await);
    let AskRequest::Question(question) = &ask.request else { panic!("{ask:?}") };
    let answers = vec![QuestionReply {
        id: question.questions[0].id.clone(),
        answer: Some("this one".into()),
    }];
    talk.events.answer(Answer::Reply { answers }).await.unwrap();
    talk.events.turn_finished().await;
    // A hold, with queued prompts.
    talk.session.hold().await.unwrap();
    talk.session.prompt("later").await.unwrap();
    talk.session.prompt("later still").await.unwrap();
    lives.push(exported_facts(world, &talk).await);
    talk.session.release().await.unwrap();
    talk.session.settled().await.unwrap();
    // A file, and a job that outlives its turn.
    for (tool, input) in [
        ("write_file", json!({"path": "made", "content": "1\n"})),
        ("shell", json!({"command": "sleep 1000", "background": true})),
    ] {
        call(tool, input);
        talk.session.prompt(tool).await.unwrap();
        while !matches!(talk.session.snapshot().asks[..], [_]) {
            talk.events.next().await.unwrap();
        }
        let ask = talk.session.snapshot().asks[0].id.clone();
        talk.session.answer(&ask, Answer::Approve { always: false }).await.unwrap();
        talk.session.settled().await.unwrap();
    }
    // Two calls, cut before they are answered.
    let two = [("shell", r#"{"command":"one"}"#), ("shell", r#"{"command":"two"}"#)];
    world.server.reply(Reply::calls(two));
    talk.session.prompt("cut").await.unwrap();
    while talk.session.snapshot().asks.len() < 2 {
        talk.events.next().await.unwrap();
    }
    lives.push(exported_facts(world, &talk).await);
    talk.session.interrupt_and_wait().await.unwrap();
    // A run that fails, reaches its limit, is released, and is cut.
    let tasks = |input: Value| Reply::calls([("tasks", input.to_string())]);
    world.server.reply(tasks(json!({"action": "add", "titles": ["one", "two"]})));
    world.server.reply(tasks(json!({"action": "note", "text": "mind the port"})));
    world.server.reply(tasks(json!({"action": "start"}))).reply(tasks(json!({"action": "finish"})));
    world.server.reply(Reply::text(["planned"])).reply(Reply::status(400, &[], "no"));
    let mut run = RunRequest::new("the goal");
    run.limits.iterations = std::num::NonZero::new(3);
    talk.session.start_run(run).await.unwrap();
    wait_held(&mut talk).await;
    lives.push(exported_facts(world, &talk).await);
    talk.session.hold().await.unwrap();
    talk.session.release().await.unwrap();
    talk.session.interrupt_and_wait().await.unwrap();
    talk.session.rename("another name").await.unwrap();
    talk.session.change_debug(true).await.unwrap();
    let model = talk.session.snapshot().settings.model.clone();
    talk.session.change_model(model).await.unwrap();
    talk.session.close().await.unwrap();
    lives.push(exported_facts(world, &talk).await);
    lives
}

/// Imports an export and continues its session. Returns whether it was accepted.
async fn play(world: &TestEngine, text: &[u8]) -> Result<bool, TestCaseError> {
    let fail =
        |why: String| TestCaseError::fail(format!("{why}\n{}", String::from_utf8_lossy(text)));
    let sessions = world.sessions();
    let (before, refusals) =
        (sessions.list().await.unwrap().len(), world.server.violations().len());
    let id = match sessions.import(&mut &*text).await {
        Ok(id) => id,
        Err(ImportError::Line { line, reason }) => {
            let lines = text.iter().filter(|byte| **byte == b'\n').count() as u64;
            prop_assert!(
                (1..=lines).contains(&line) && !reason.is_empty(),
                "line {} of {}: {}",
                line,
                lines,
                reason
            );
            prop_assert_eq!(
                sessions.list().await.unwrap().len(),
                before,
                "a refused import left a session behind"
            );
            return Ok(false);
        }
        Err(error) => return Err(fail(format!("neither refused nor imported: {error}"))),
    };
    let gone_on = timeout(patience(), continue_session(world, &id)).await;
    let now = sessions.look(id.as_str()).await;
    let _ = sessions.close(&id).await;
    let deleted = sessions.delete(id.as_str()).await;
    match gone_on {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(fail(format!("the session does not continue: {error}"))),
        Err(_) => return Err(fail(format!("the session is stuck: {now:#?}"))),
    }
    deleted.map_err(|error| fail(format!("not deleted: {error}")))?;
    let refusals = &world.server.violations()[refusals..];
    if refusals.is_empty() {
        Ok(true)
    } else {
        Err(fail(format!("a strict server refuses: {refusals:#?}")))
    }
}

/// Reads an imported session, opens it, and prompts it twice.
async fn continue_session(world: &TestEngine, id: &SessionId) -> Result<(), Box<dyn Error>> {
    let sessions = world.sessions();
    sessions.export(id.as_str(), &mut Vec::new()).await?;
    sessions.look(id.as_str()).await?;
    let session = match sessions.get(id.as_str()).await {
        // Its workspace or model does not exist here.
        Err(SessionError::Workspace { .. } | SessionError::ModelSetup { .. }) => return Ok(()),
        session => session?,
    };
    let mut events = Recorder::new(session.attach(AttachFrom::start()).await?);
    for _ in 0..2 {
        // Ends the open turn or run; queued prompts run or are handed back.
        while session.snapshot().status != SessionStatus::Idle {
            session.interrupt_and_wait().await?;
            session.release().await?;
            sessions.look(id.as_str()).await?;
        }
        let prompted = session.prompt("and now?").await?;
        let own = |fact: &Fact| matches!(fact, Fact::Turn(TurnFact::Started { prompt, .. }) if *prompt == prompted.prompt);
        events.until("the turn", |event| event.fact().is_some_and(own).then_some(())).await;
        events.turn_finished().await;
    }
    Ok(())
}

#[test]
fn an_export_of_odd_facts_is_refused_with_its_line_or_continues_as_a_session() {
    let engine = tokio::runtime::Runtime::new().unwrap();
    let cases = rounds(150, 20_000);
    for wire in [Wire::Anthropic, Wire::OpenAi] {
        let limits = |limits: Limits| Limits { run_retry_ms: 1, ..limits };
        let world = TestEngine::with(wire, "", limits);
        world.server.answer(|_| Reply::text(["I see."]));
        let lives = engine.block_on(sample_sessions(&world));
        assert_eq!(world.server.violations(), [] as [String; 0]);
        let taken = Cell::new(0);
        // Failing cases are kept and run first.
        let kept = FileFailurePersistence::Direct("tests/it/odd_exports.proptest-regressions");
        let config = Config {
            cases,
            failure_persistence: Some(Box::new(kept)),
            max_shrink_iters: 100,
            ..Config::default()
        };
        let played = TestRunner::new(config).run(&odd(), |odd| {
            let is_taken = engine.block_on(play(&world, &odd.text(&lives)))?;
            taken.set(taken.get() + u32::from(is_taken));
            Ok(())
        });
        played.unwrap_or_else(|fault| panic!("{wire:?}: {fault}"));
        println!("{wire:?}: {} of {cases} were imported", taken.get());
        assert!(taken.get() > cases / 10, "only {} of {cases} were imported", taken.get());
    }
}
