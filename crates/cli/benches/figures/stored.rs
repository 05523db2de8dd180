//! The store: the time to list and to open saved sessions.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_common::{
    AsksMode, AssistantMessage, Block, BlockKind, Body, Event, Fact, ItemId, Outcome, PolicyMode,
    PolicyRules, PromptFact, PromptId, SandboxSettings, SessionFact, SessionId, SessionSettings,
    SessionSummary, Timestamp, TurnFact, TurnId, Usage, Who,
};
use holdpoint_session::Engine;
use holdpoint_session::model::Catalog;
use holdpoint_session::state::State;
use holdpoint_session::store::{NewLog, SessionStore, Sqlite};
use tempfile::TempDir;

use crate::support::MODEL;
use crate::table::{Amount, Table};

/// Lists and opens sessions in a fresh process, and prints the cost.
pub(crate) const STORED: &str = "--stored";

/// The facts of the long session, and the bytes of text in every fifth of them.
const FACTS: u64 = 100_000;
const SIZES: [(&str, usize); 2] = [("100,000 events", 400), ("500 MiB in 100,000 events", 26_000)];

const ROUNDS: usize = 5;

pub(crate) fn measure(table: &Table) {
    if !table.wants("stored", &["sessions listed", "events listed", "events opened"]) {
        return;
    }
    let folder = TempDir::new().unwrap();
    (0..10).for_each(|n| make(folder.path(), &format!("short{n}"), 100, 400));
    let [listed, ..] = median(folder.path(), "");
    table.figure("store opened again, 10 sessions listed", Amount::Time(listed), Amount::ms(200));
    for (what, bytes) in SIZES {
        let folder = TempDir::new().unwrap();
        make(folder.path(), "long", FACTS, bytes);
        let [listed, opened, resident] = median(folder.path(), "long");
        table.figure(
            &format!("{what} in one session: listed"),
            Amount::Time(listed),
            Amount::ms(300),
        );
        table.figure(
            &format!("{what} in one session: opened"),
            Amount::Time(opened),
            Amount::ms(30),
        );
        let resident = u64::try_from(resident.as_nanos()).unwrap_or(u64::MAX);
        table.figure(
            &format!("{what} in one session: memory then"),
            Amount::Bytes(resident),
            Amount::mib(40),
        );
    }
}

/// The medians, over fresh processes, of the time to list all sessions, the time to open one, and
/// the memory (bytes as nanoseconds).
fn median(folder: &Path, session: &str) -> [Duration; 3] {
    let rounds: Vec<[u64; 3]> = (0..ROUNDS)
        .map(|_| {
            let this = std::env::current_exe().unwrap();
            let output = Command::new(this).arg(STORED).arg(folder).arg(session).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let numbers = String::from_utf8(output.stdout).unwrap();
            let numbers: Vec<u64> =
                numbers.split_whitespace().map(|number| number.parse().unwrap()).collect();
            numbers.try_into().unwrap()
        })
        .collect();
    [0, 1, 2].map(|which| {
        let mut values: Vec<u64> = rounds.iter().map(|round| round[which]).collect();
        values.sort_unstable();
        Duration::from_nanos(values[ROUNDS / 2])
    })
}

/// Prints the nanoseconds from an unopened store to the list, the nanoseconds to open the session,
/// and the peak memory in bytes.
pub(crate) fn stored(args: &[String]) {
    let [folder, session] = args else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let begun = Instant::now();
        let store = Sqlite::open(folder.as_ref()).unwrap();
        let engine = Engine::builder(Catalog::default()).store(store).start().unwrap();
        let sessions = engine.sessions(Who::named("figures"));
        assert!(!sessions.list().await.unwrap().is_empty());
        let listed = begun.elapsed();
        let begun = Instant::now();
        if !session.is_empty() {
            sessions.get(session).await.unwrap();
        }
        let opened = begun.elapsed();
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let most = line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024;
        println!("{} {} {most}", listed.as_nanos(), opened.as_nanos());
    });
}

/// Makes a session with this many facts, five for each turn, and answers of this many bytes.
pub(crate) fn make(folder: &Path, name: &str, facts: u64, bytes: usize) {
    make_for(folder, name, "rehearsal", facts, bytes);
}

/// Like [`make`], for a session with this model.
pub(crate) fn make_for(folder: &Path, name: &str, model: &str, facts: u64, bytes: usize) {
    let (id, first, summary) = session(folder, name, model);
    let text = "some words ".repeat(bytes / 11);
    let fact = |n: u64| {
        let turn = n / 5 + 1;
        match n % 5 {
            0 => Fact::Prompt(PromptFact::Accepted {
                prompt: PromptId(turn),
                text: "go".into(),
                by: Who::named("figures"),
                typed_bytes: None,
                idempotency_key: None,
            }),
            1 => Fact::Turn(TurnFact::Started { turn: TurnId(turn), prompt: PromptId(turn) }),
            2 => Fact::Turn(TurnFact::StepStarted),
            3 => {
                let block = Block {
                    item: ItemId(turn),
                    kind: BlockKind::Text,
                    text: text.clone(),
                    signature: None,
                    calls_before: 0,
                };
                Fact::Turn(TurnFact::AssistantMessage(
                    AssistantMessage { blocks: vec![block], ..AssistantMessage::default() }.into(),
                ))
            }
            _ => {
                let usage = Usage::default();
                Fact::Turn(TurnFact::Finished {
                    outcome: Outcome::Done,
                    error: None,
                    cause: None,
                    receipt: None,
                    usage,
                })
            }
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = Sqlite::open(folder).unwrap();
        let log = store.create(&id, NewLog::default()).await.unwrap();
        log.append(0, vec![first], summary.clone()).await.unwrap();
        for from in (0..facts).step_by(1_000) {
            let page = (from..facts.min(from + 1_000)).map(|n| event(n + 2, fact(n))).collect();
            log.append(from + 1, page, summary.clone()).await.unwrap();
        }
    });
}

/// Makes sessions that have only their first fact, with the ids `saved-0`, `saved-1` and so on.
pub(crate) fn make_many(folder: &Path, count: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = Sqlite::open(folder).unwrap();
        let create = |n| {
            let (id, first, summary) = session(folder, &format!("saved-{n}"), MODEL);
            store.create(&id, NewLog { first: Some((first, summary)), reserved: 1 })
        };
        for page in (0..count).step_by(1_000) {
            let create = (page..count.min(page + 1_000)).map(create);
            futures_util::future::try_join_all(create).await.unwrap();
        }
    });
}

/// The first fact and the summary of a session.
fn session(folder: &Path, name: &str, model: &str) -> (SessionId, Arc<Event>, SessionSummary) {
    let id: SessionId = name.parse().unwrap();
    let settings = SessionSettings {
        id: id.clone(),
        name: name.to_owned(),
        workspace: folder.display().to_string(),
        model: model.to_owned(),
        agent: None,
        asks: AsksMode::Wait,
        policy: PolicyMode::Ask,
        rules: PolicyRules::default(),
        sandbox: SandboxSettings::off(),
        max_steps: 0,
        max_turn_tokens: 0,
    };
    let first = event(1, Fact::Session(SessionFact::Opened { settings }));
    let state = State::open(&first).unwrap();
    let summary =
        SessionSummary { live: false, ..SessionSummary::from(&state.snapshot(1, 0, None)) };
    (id, first, summary)
}

fn event(seq: u64, fact: Fact) -> Arc<Event> {
    Arc::new(Event {
        seq,
        at: Timestamp(1_790_000_000_000 + seq),
        turn: None,
        step: None,
        body: Body::Fact(fact),
    })
}
