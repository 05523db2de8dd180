//! Sessions exported as text and imported again: unchanged, or not at all.

use std::sync::Arc;

use holdpoint_common::{
    Answer, CutCause, Event, Fact, Limits, Outcome, PolicyMode, SessionFact, SessionId, TurnFact,
};
use holdpoint_session::store::{Memory, SessionStore, Sqlite, StoreError};
use holdpoint_session::testing::{Harness, reply};
use holdpoint_session::transfer::{ExportError, ImportError, export, import};
use holdpoint_tools::testing::rounds;
use serde_json::json;
use tempfile::TempDir;

async fn text(store: &dyn SessionStore, session: &SessionId) -> Vec<u8> {
    let mut text = Vec::new();
    export(store, session, &mut text).await.unwrap();
    text
}

async fn facts(store: &dyn SessionStore, session: &SessionId) -> Vec<Arc<Event>> {
    store.open(session).await.unwrap().read(0..u64::MAX).await.unwrap()
}

/// A session with a bit of everything: asks, answers, a cut with its receipt, other names.
async fn session(store: Sqlite) -> SessionId {
    let harness = Harness::with(|engine| engine.store(store));
    let session = harness.sessions().open(harness.session().policy(PolicyMode::Ask)).await.unwrap();
    let mut events = harness.watch(&session).await;
    for (n, answer) in [
        Answer::Approve { always: true },
        Answer::Deny { reason: Some("no \u{1f600}".into()), always: false },
    ]
    .into_iter()
    .enumerate()
    {
        harness.model.then(reply().thought("hm").text("I try.").call("probe", json!({ "n": n })));
        session.prompt(format!("go {n}\n\u{1f468}\u{200d}\u{1f469}")).await.unwrap();
        events.asked().await;
        events.answer(answer).await.unwrap();
        events.turn_finished().await;
    }
    harness.model.then(reply().call("probe", json!({ "last": true })));
    session.prompt("once more").await.unwrap();
    events.asked().await;
    session.interrupt_and_wait().await.unwrap();
    session.rename("another name").await.unwrap();
    session.id().clone()
}

#[tokio::test]
async fn an_imported_session_equals_the_exported_one() {
    let folder = TempDir::new().unwrap();
    let store = Sqlite::open(folder.path()).unwrap();
    let id = session(store.clone()).await;
    let written = text(&store, &id).await;
    assert_eq!(written, text(&store, &id).await, "the same facts export to the same text");
    let first = String::from_utf8(written.clone()).unwrap().lines().next().unwrap().to_owned();
    assert_eq!(first, format!(r#"{{"format":"holdpoint-session","version":1,"id":"{id}"}}"#));

    let elsewhere = Memory::default();
    assert_eq!(import(&elsewhere, &Limits::default(), &mut &written[..]).await.unwrap(), id);
    assert_eq!(facts(&elsewhere, &id).await, facts(&store, &id).await);
    assert_eq!(text(&elsewhere, &id).await, written);
    let listed = |saved: Vec<holdpoint_session::store::SavedSession>| saved[0].summary.clone();
    assert_eq!(listed(elsewhere.list().await.unwrap()), listed(store.list().await.unwrap()));

    // If its id is taken, the session gets another one, in every place that has the id.
    let other = import(&store, &Limits::default(), &mut &written[..]).await.unwrap();
    assert_ne!(other, id);
    let renamed = String::from_utf8(text(&store, &other).await).unwrap();
    assert!(!renamed.contains(id.as_str()), "{renamed}");
    let (moved, own) = (facts(&store, &other).await, facts(&store, &id).await);
    assert_eq!(moved.len(), own.len());
    assert!(moved.iter().zip(&own).all(|(moved, own)| (moved.seq, moved.at) == (own.seq, own.at)));

    let harness = Harness::with(|engine| engine.store(store));
    let session = harness.sessions().get(other.as_str()).await.unwrap();
    session.prompt("and now?").await.unwrap();
    assert_eq!(session.settled().await.unwrap().last_turn.as_ref().unwrap().outcome, Outcome::Done);
    assert!(
        harness.model.requests()[0].messages.len() > 5,
        "the request has the whole conversation"
    );
}

#[tokio::test]
async fn an_open_turn_in_an_export_is_ended_as_after_a_restart() {
    let store = Arc::new(Memory::default());
    let written = {
        let folder = TempDir::new().unwrap();
        let store = Sqlite::open(folder.path()).unwrap();
        let harness = Harness::with(|engine| engine.store(store.clone()));
        let _answer = harness.model.then_live();
        let session = harness.open().await;
        session.prompt("go").await.unwrap();
        text(&store, session.id()).await
    };
    let id = import(&*store, &Limits::default(), &mut &written[..]).await.unwrap();
    let facts = facts(&*store, &id).await;
    let Some(Fact::Turn(TurnFact::Finished { cause, .. })) = facts.last().unwrap().fact() else {
        panic!("{facts:?}")
    };
    assert_eq!(*cause, Some(CutCause::Restart));
    let unknown: SessionId = "nobody".parse().unwrap();
    let error = export(&*store, &unknown, &mut Vec::new()).await.unwrap_err();
    assert!(matches!(error, ExportError::Store(StoreError::Unknown { .. })), "{error}");
}

/// Imports an invalid text. Returns the line and the message of its refusal.
async fn refused(text: &[u8], how: &str) -> (u64, String) {
    let store = Memory::default();
    let error = match import(&store, &Limits::default(), &mut &*text).await {
        Err(error) => error,
        Ok(_) => panic!("{how}: the import was accepted"),
    };
    assert!(store.list().await.unwrap().is_empty(), "{how}: something changed");
    let ImportError::Line { line, reason } = error else { panic!("{how}: {error}") };
    let lines = text.iter().filter(|byte| **byte == b'\n').count() as u64;
    assert!((1..=lines + 1).contains(&line), "{how}: line {line} of {lines}");
    (line, reason)
}

#[tokio::test]
async fn a_changed_export_is_refused_with_its_line() {
    let folder = TempDir::new().unwrap();
    let store = Sqlite::open(folder.path()).unwrap();
    let id = session(store.clone()).await;
    let whole = text(&store, &id).await;
    let lines: Vec<_> = whole.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let mut random = fastrand::Rng::with_seed(9);
    for cut in (0..whole.len()).step_by(rounds(37, 1)) {
        refused(&whole[..cut], &format!("cut to {cut}")).await;
    }
    for round in 0..rounds(500, 20_000) {
        let mut text = whole.clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..text.len());
            text[at] = text[at].wrapping_add(random.u8(1..));
        }
        refused(&text, &format!("garbled, round {round}")).await;
    }
    for n in 0..lines.len() {
        let mut without = lines.clone();
        without.remove(n);
        refused(&without.concat(), &format!("without line {}", n + 1)).await;
        let mut twice = lines.clone();
        twice.insert(n, lines[n].clone());
        refused(&twice.concat(), &format!("line {} twice", n + 1)).await;
        if n > 0 {
            let mut swapped = lines.clone();
            swapped.swap(n - 1, n);
            refused(&swapped.concat(), &format!("line {} too early", n + 1)).await;
        }
    }
    let (line, reason) = refused(
        br#"{"format":"holdpoint-session","version":2,"id":"x"}
"#,
        "newer",
    )
    .await;
    assert_eq!((line, reason.contains("version 2")), (1, true), "{reason}");
    let (line, _) = refused(b"not even JSON\n", "something else").await;
    assert_eq!(line, 1);
    let mut text = lines[..3].concat();
    text.extend(b"{\"seq\":\n");
    assert_eq!(refused(&text, "a line of garbage").await.0, 4);
}

/// A valid export of these lines.
fn written(id: &str, facts: &[serde_json::Value]) -> Vec<u8> {
    let header = json!({"format": "holdpoint-session", "version": 1, "id": id});
    let lines =
        std::iter::once(&header).chain(facts).map(|line| format!("{line}\n")).collect::<String>();
    let sum = format!("{:016x}", xxhash_rust::xxh3::xxh3_64(lines.as_bytes()));
    format!("{lines}{}\n", json!({"end": {"facts": facts.len(), "checkSum": sum}})).into_bytes()
}

/// The facts of a session under the policy `all`, as JSON.
async fn unbound() -> (SessionId, Vec<serde_json::Value>) {
    let folder = TempDir::new().unwrap();
    let store = Sqlite::open(folder.path()).unwrap();
    let harness = Harness::with(|engine| engine.store(store.clone()));
    let session = harness.open().await;
    session.prompt("go").await.unwrap();
    session.settled().await.unwrap();
    session.rename("a name").await.unwrap();
    let facts = facts(&store, session.id()).await;
    (session.id().clone(), facts.iter().map(|fact| serde_json::to_value(fact).unwrap()).collect())
}

#[tokio::test]
async fn a_number_above_the_bound_is_refused_with_its_line() {
    let (id, facts) = unbound().await;
    for number in [(1_u64 << 48) + 1, 1_000_000_000_000_000, 1 << 63, u64::MAX] {
        let mut facts = facts.clone();
        let last = facts.len() - 1;
        facts[last]["seq"] = number.into();
        let (line, reason) = refused(&written(id.as_str(), &facts), "a large number").await;
        assert_eq!((line, reason.contains("is above")), (last as u64 + 2, true), "{reason}");
    }
}

fn prompt(text: &str) -> serde_json::Value {
    json!({"type": "promptAccepted", "prompt": 50, "text": text, "by": {"name": "them"}})
}

fn run(goal: &str) -> serde_json::Value {
    json!({"type": "runStarted", "run": {"goal": goal}, "by": {"name": "them"}})
}

/// An editor of an export can also correct its checksum.
#[tokio::test]
async fn an_invalid_log_with_a_valid_checksum_is_refused_with_its_line() {
    type Change = fn(&mut Vec<serde_json::Value>);
    let (id, facts) = unbound().await;
    let behind = facts.len() as u64 + 2;
    let changes: [(Change, u64, &str); 9] = [
        (|facts| facts[2]["seq"] = facts[1]["seq"].clone(), 4, "is not above"),
        (|facts| drop(facts.remove(0)), 2, "is not the session's opening"),
        (|facts| facts[0]["body"]["settings"]["id"] = "other".into(), 2, "opens another session"),
        (|facts| add(facts, 1, &facts[0]["body"].clone()), behind, "opens another session"),
        (
            |facts| add(facts, 1, &json!({"type": "text", "item": 1, "text": "x"})),
            behind,
            "not a fact",
        ),
        (
            |facts| add(facts, 9, &json!({"type": "gap", "from": 1, "to": 9_000})),
            behind,
            "not a fact",
        ),
        (
            |facts| add(facts, 9_000, &json!({"type": "gap", "from": 9_000, "to": 1})),
            behind,
            "not a fact",
        ),
        (|facts| add(facts, 1, &prompt("\n")), behind, "the prompt is empty"),
        (|facts| add(facts, 1, &run(" ")), behind, "the goal is empty"),
    ];
    for (change, line, why) in changes {
        let mut facts = facts.clone();
        change(&mut facts);
        let (at, reason) = refused(&written(id.as_str(), &facts), why).await;
        assert_eq!((at, reason.contains(why)), (line, true), "{why}: {reason}");
    }
}

/// With two facts of one id, later references would be ambiguous; and behind the last id there is
/// no other.
#[tokio::test]
async fn a_repeated_or_too_high_id_is_refused_with_its_line() {
    let (id, facts) = unbound().await;
    let by = json!({ "name": "them" });
    let prompt = |n: u64| json!({"type": "promptAccepted", "prompt": n, "text": "x", "by": by});
    let turn = |n: u64| json!({"type": "turnStarted", "turn": n, "prompt": 9});
    let task = |n: u64| json!({"type": "taskAdded", "task": n, "title": "x"});
    let item = |n: u64| {
        let block = json!({"item": n, "kind": "text", "text": "x"});
        json!({"type": "assistantMessage", "blocks": [block], "calls": []})
    };
    let named: [&dyn Fn(u64) -> serde_json::Value; 4] = [&prompt, &turn, &task, &item];
    for fact in named {
        for (name, why) in [(50, "duplicate"), (u64::MAX, "is above")] {
            let mut facts = facts.clone();
            add(&mut facts, 1, &fact(50));
            add(&mut facts, 1, &fact(name));
            let (line, reason) = refused(&written(id.as_str(), &facts), why).await;
            assert_eq!(
                (line, reason.contains(why)),
                (facts.len() as u64 + 1, true),
                "{name}: {reason}"
            );
        }
    }
}

/// One answer would end two asks with the same id.
#[tokio::test]
async fn m_a5_an_ask_with_the_id_of_another_is_refused_with_its_line() {
    let folder = TempDir::new().unwrap();
    let store = Sqlite::open(folder.path()).unwrap();
    let id = session(store.clone()).await;
    let facts = facts(&store, &id).await;
    let mut facts: Vec<_> = facts.iter().map(|fact| serde_json::to_value(fact).unwrap()).collect();
    let asks: Vec<_> =
        (0..facts.len()).filter(|at| facts[*at]["body"]["type"] == "askRaised").collect();
    facts[asks[1]]["body"]["ask"]["id"] = facts[asks[0]]["body"]["ask"]["id"].clone();
    let (line, reason) = refused(&written(id.as_str(), &facts), "an ask's number").await;
    assert_eq!(
        (line, reason.contains("is not that of its event")),
        (asks[1] as u64 + 2, true),
        "{reason}"
    );
}

/// Each of them is compared with all others, on the thread that finds all sessions.
#[tokio::test]
async fn too_many_queued_prompts_or_jobs_are_refused_with_their_line() {
    let (id, facts) = unbound().await;
    let by = json!({ "name": "them" });
    let prompt = |n: u64| json!({"type": "promptAccepted", "prompt": n, "text": "x", "by": by});
    let job = |n: u64| json!({"type": "jobStarted", "job": {"id": n, "turn": 1, "command": "x", "since": 0}});
    for (why, open) in
        [("prompts wait", &prompt as &dyn Fn(u64) -> serde_json::Value), ("jobs run", &job)]
    {
        let mut facts = facts.clone();
        let fits = facts.len() as u64 + 10_000;
        (100..10_101).for_each(|n| add(&mut facts, 1, &open(n)));
        let (line, reason) = refused(&written(id.as_str(), &facts), why).await;
        assert_eq!((line, reason.contains(why)), (fits + 2, true), "{reason}");
    }
}

/// The calls of one turn count together, even if many answers have them.
#[tokio::test]
async fn too_many_open_calls_or_tasks_are_refused_with_their_line() {
    let (id, facts) = unbound().await;
    let by = json!({ "name": "them" });
    let answer = |n: u64| {
        let call = json!({"id": n, "name": "probe", "input": {}});
        json!({"type": "assistantMessage", "blocks": [], "calls": [call]})
    };
    let task = |n: u64| json!({"type": "taskAdded", "task": n, "title": "x"});
    for (why, fits, open) in [
        ("calls are open", 10_000, &answer as &dyn Fn(u64) -> serde_json::Value),
        ("at most 500 tasks", 500, &task),
    ] {
        let mut facts = facts.clone();
        add(&mut facts, 1, &json!({"type": "promptAccepted", "prompt": 50, "text": "x", "by": by}));
        add(&mut facts, 1, &json!({"type": "turnStarted", "turn": 50, "prompt": 50}));
        let line = facts.len() as u64 + fits + 2;
        (100..=100 + fits).for_each(|n| add(&mut facts, 1, &open(n)));
        let (at, reason) = refused(&written(id.as_str(), &facts), why).await;
        assert_eq!((at, reason.contains(why)), (line, true), "{reason}");
    }
}

/// Adds an event with a number that is `further` above the last.
fn add(facts: &mut Vec<serde_json::Value>, further: u64, body: &serde_json::Value) {
    let last = facts.last().unwrap()["seq"].as_u64().unwrap();
    facts.push(json!({"seq": last + further, "at": 0, "body": body}));
}

#[tokio::test]
async fn an_imported_session_gets_safe_settings_and_a_clean_name() {
    let (id, mut facts) = unbound().await;
    add(&mut facts, 1, &json!({"type": "debugChanged", "enabled": true, "by": {"name": "them"}}));
    let whole = serde_json::to_string(&facts).unwrap();
    assert!(whole.contains(r#""policy":"all""#), "{whole}");
    let whole = whole
        .replace(r#""asks":"wait""#, r#""asks":"approve""#)
        .replace(r#""name":""#, r#""name":"evil\n\u001b[2J"#);
    let facts: Vec<serde_json::Value> = serde_json::from_str(&whole).unwrap();
    let store = Memory::default();
    assert_eq!(
        import(&store, &Limits::default(), &mut &written(id.as_str(), &facts)[..]).await.unwrap(),
        id
    );
    let taken = self::facts(&store, &id).await;
    let Some(Fact::Session(SessionFact::Opened { settings })) = taken[0].fact() else {
        panic!("{taken:?}")
    };
    assert_eq!(
        (settings.policy, settings.asks),
        (PolicyMode::Ask, holdpoint_common::AsksMode::Wait)
    );
    assert!(settings.rules.is_empty());
    assert!(!taken.iter().any(|event| matches!(
        event.fact(),
        Some(Fact::Session(SessionFact::DebugChanged { enabled: true, .. }))
    )));
    let folder = std::path::Path::new(&settings.workspace).file_name().unwrap();
    assert_eq!(settings.name.as_str(), folder.to_str().unwrap());
    assert_eq!(store.list().await.unwrap()[0].summary.name, id.as_str(), "the new name is kept");
}

#[tokio::test]
async fn a_line_that_never_ends_is_refused() {
    let mut text = std::io::BufReader::new(std::io::repeat(b' '));
    let Err(ImportError::Line { line, reason }) =
        import(&Memory::default(), &Limits::default(), &mut text).await
    else {
        panic!("taken")
    };
    assert_eq!((line, reason.contains("bytes")), (1, true), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_imports_each_get_their_own_id() {
    let (id, facts) = unbound().await;
    let text = written(id.as_str(), &facts);
    let folder = TempDir::new().unwrap();
    let store = Sqlite::open(folder.path()).unwrap();
    let imports = (0..8).map(|_| {
        let (store, text) = (store.clone(), text.clone());
        tokio::spawn(
            async move { import(&store, &Limits::default(), &mut &text[..]).await.unwrap() },
        )
    });
    let ids: std::collections::BTreeSet<_> =
        futures_util::future::join_all(imports).await.into_iter().map(Result::unwrap).collect();
    assert_eq!((ids.len(), ids.contains(&id)), (8, true));
}
