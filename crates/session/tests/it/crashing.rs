//! Processes killed at random moments: acknowledged facts exist once and in order, and every
//! session opens.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use holdpoint_common::{
    AssistantMessage, CutCause, Delta, Event, Fact, Outcome, PromptFact, PromptId, SessionId,
    ToolFact, ToolStatus, TurnFact,
};
use holdpoint_session::model::Message;
use holdpoint_session::state::State;
use holdpoint_session::store::{SessionStore, Sqlite};
use holdpoint_session::testing::{Harness, patience, reply};
use holdpoint_session::{SessionError, SessionHandle};
use holdpoint_tools::ToolOutcome;
use holdpoint_tools::testing::{again, part, rounds};
use serde_json::json;
use tempfile::TempDir;

fn on(store: &Path) -> Harness {
    let store = Sqlite::open(store).unwrap();
    Harness::with(|engine| engine.store(store))
}

/// Starts the same test in another process on a store, to be killed.
fn start(store: &Path) -> (Child, BufReader<ChildStdout>) {
    let mut child = again(store.to_str().unwrap()).stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    (child, output)
}

/// The store that this process was started on, or `None` in the process that kills.
fn store() -> Option<PathBuf> {
    part().map(PathBuf::from)
}

/// Prints a line for the test, whole or not at all.
fn print_line(line: &str) {
    let line = format!("\n> {line}\n");
    let _ = std::io::stdout().lock().write_all(line.as_bytes());
}

/// The next whole line from the process, or `None` when it is gone.
fn next_line(lines: &mut BufReader<ChildStdout>) -> Option<String> {
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        match line.strip_suffix('\n') {
            Some(whole) => match whole.strip_prefix("> ") {
                Some(text) => return Some(text.to_owned()),
                None => continue,
            },
            None => return None,
        }
    }
}

async fn facts(store: &Sqlite, session: &SessionId) -> Vec<std::sync::Arc<Event>> {
    store.open(session).await.unwrap().read(0..u64::MAX).await.unwrap()
}

// ---- busy sessions, killed

/// How many sessions are busy.
const SESSIONS: usize = 4;

/// The acknowledged facts and prompts of one session.
#[derive(Default)]
struct Acknowledged {
    /// Numbers of facts that a client received.
    facts: BTreeSet<u64>,
    /// Prompts that were accepted and saved.
    prompts: BTreeSet<PromptId>,
}

#[tokio::test]
async fn t_u1_nothing_that_was_acknowledged_is_lost_or_doubled_by_kills_at_random_moments() {
    if let Some(folder) = store() {
        return busy(&folder).await;
    }
    let kills = rounds(20, 200);
    let folder = TempDir::new().unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let mut acknowledged: BTreeMap<SessionId, Acknowledged> = BTreeMap::new();
    for kill in 0..kills {
        let (mut child, mut lines) = start(folder.path());
        // When all of its sessions are at work, the process lives for a random time.
        let mut working = BTreeSet::new();
        let mut lives: Option<Instant> = None;
        let while_ = Duration::from_micros(random.u64(0..120_000));
        while let Some(line) = next_line(&mut lines) {
            let words: Vec<_> = line.split(' ').collect();
            let session: SessionId = words[1].parse().unwrap();
            working.insert(session.clone());
            let of = acknowledged.entry(session).or_default();
            match words[0] {
                "fact" => drop(of.facts.insert(words[2].parse().unwrap())),
                "prompt" => drop(of.prompts.insert(words[2].parse().unwrap())),
                other => panic!("{other}"),
            }
            if working.len() == SESSIONS {
                lives.get_or_insert_with(Instant::now);
            }
            if lives.is_some_and(|begun| begun.elapsed() >= while_) {
                // Killing it again does no harm: lines that still arrive were printed before it
                // died.
                let _ = child.kill();
            }
        }
        child.wait().unwrap();
        assert!(lives.is_some(), "kill {kill}: the process did nothing");
        let store = Sqlite::open(folder.path()).unwrap();
        for (session, acknowledged) in &acknowledged {
            let facts = facts(&store, session).await;
            let gaps = facts
                .iter()
                .filter(|event| matches!(event.delta(), Some(Delta::Gap { .. })))
                .count();
            assert_eq!(gaps, 0, "kill {kill}: {session} has gaps");
            assert!(
                facts.is_sorted_by(|one, other| one.seq < other.seq),
                "kill {kill}: {session} is out of order"
            );
            let numbers: BTreeSet<_> = facts.iter().map(|fact| fact.seq).collect();
            let lost: Vec<_> = acknowledged.facts.difference(&numbers).collect();
            assert!(lost.is_empty(), "kill {kill}: {session} lost {lost:?}");
            let prompts: Vec<_> = facts
                .iter()
                .filter_map(|event| match event.fact() {
                    Some(Fact::Prompt(PromptFact::Accepted { prompt, .. })) => Some(*prompt),
                    _ => None,
                })
                .collect();
            let accepted: BTreeSet<_> = prompts.iter().copied().collect();
            assert_eq!(accepted.len(), prompts.len(), "kill {kill}: {session} has a prompt twice");
            assert!(
                acknowledged.prompts.is_subset(&accepted),
                "kill {kill}: {session} lost a prompt"
            );
            assert!(State::fold(&facts).is_some(), "kill {kill}: {session} does not fold");
        }
        assert!(store.salvaged().is_empty());
    }
    assert_eq!(acknowledged.len(), SESSIONS);
    let harness = on(folder.path());
    for session in acknowledged.keys() {
        let session = harness.sessions().get(session.as_str()).await.unwrap();
        session.release().await.unwrap();
        session.prompt("still there?").await.unwrap();
        assert_eq!(
            session.settled().await.unwrap().last_turn.as_ref().unwrap().outcome,
            Outcome::Done
        );
    }
}

async fn busy(folder: &Path) {
    let harness = on(folder);
    harness.probe.does(|_, context| {
        context.output("some output");
        Ok(ToolOutcome::text("fine"))
    });
    let mut busy = Vec::new();
    for n in 0..SESSIONS {
        let session = open_or_make(&harness, &format!("s{n}")).await;
        let mut events = harness.watch(&session).await;
        busy.push(tokio::spawn(async move {
            while let Some(event) = events.next().await {
                if event.fact().is_some() {
                    print_line(&format!(
                        "fact {} {}",
                        events.attachment().snapshot().settings.id,
                        event.seq
                    ));
                }
            }
        }));
        let model = harness.model.clone();
        busy.push(tokio::spawn(async move {
            session.release().await.unwrap();
            loop {
                model.then(reply().text("I look.").call("probe", json!({})));
                match session.prompt("Go on. ".repeat(fastrand::usize(1..500))).await {
                    Ok(prompted) if prompted.saved => {
                        print_line(&format!("prompt {} {}", session.id(), prompted.prompt))
                    }
                    // On a slow disk the save is late, so the prompt is not acknowledged.
                    Ok(_) => {}
                    Err(SessionError::Refused(_)) => drop(session.settled().await),
                    Err(error) => panic!("{error}"),
                }
            }
        }));
    }
    for task in busy {
        task.await.unwrap();
    }
}

async fn open_or_make(harness: &Harness, name: &str) -> SessionHandle {
    match harness.sessions().get(name).await {
        Ok(session) => session,
        Err(SessionError::UnknownSession { .. }) => {
            harness.sessions().open(harness.session().name(name)).await.unwrap()
        }
        Err(error) => panic!("{error}"),
    }
}

// ---- an answer that is still streaming

/// How many words must be saved before the process is killed.
const SAVED: usize = 10;

/// How many words of the only session's streaming answer are saved.
async fn saved_words(store: &Sqlite) -> usize {
    let Some(saved) = store.list().await.unwrap().pop() else { return 0 };
    let pieces = store.open(&saved.summary.id).await.unwrap().draft().await.unwrap();
    let words = pieces.iter().map(|piece| match piece.delta() {
        Some(Delta::Text { text, .. }) => text.split_whitespace().count(),
        _ => 0,
    });
    words.sum()
}

/// A kill loses at most the two seconds that the specification allows. How soon a word is saved
/// depends on the disk, so the benchmark measures it; here the process is killed once the store has
/// some words.
#[tokio::test]
async fn m_b7_the_saved_part_of_a_streaming_answer_survives_a_kill() {
    if let Some(folder) = store() {
        return streaming(&folder).await;
    }
    let folder = TempDir::new().unwrap();
    let (mut child, mut lines) = start(folder.path());
    let mut words: Vec<String> = Vec::new();
    let mut due = 0;
    let by = Instant::now() + patience();
    let watched = Sqlite::open(folder.path()).unwrap();
    while let Some(word) = next_line(&mut lines) {
        words.push(word);
        // Words printed before the kill are still read.
        if due < SAVED {
            assert!(Instant::now() < by, "{due} of {} words are saved", words.len());
            due = saved_words(&watched).await;
            if due >= SAVED {
                child.kill().unwrap();
            }
        }
    }
    child.wait().unwrap();
    drop(watched);
    assert!(due >= SAVED, "the process ended by itself");

    let harness = on(folder.path());
    let line = harness.sessions().list().await.unwrap().remove(0);
    assert_eq!(line.last_turn.unwrap().cause, Some(CutCause::Restart));
    let store = Sqlite::open(folder.path()).unwrap();
    let facts = facts(&store, &line.id).await;
    let answers: Vec<&AssistantMessage> = facts
        .iter()
        .filter_map(|event| match event.fact() {
            Some(Fact::Turn(TurnFact::AssistantMessage(message))) => Some(&**message),
            _ => None,
        })
        .collect();
    let [answer] = answers[..] else { panic!("{} answers", answers.len()) };
    assert!(answer.partial);
    let kept: Vec<_> =
        answer.blocks.iter().flat_map(|block| block.text.split_whitespace()).collect();
    let printed: Vec<_> = words.iter().map(String::as_str).collect();
    assert!(kept.len() >= due, "{} of {due} saved words are kept", kept.len());
    let common = kept.len().min(printed.len());
    assert_eq!(kept[..common], printed[..common], "each kept word once and in order");
}

async fn streaming(folder: &Path) {
    let harness = on(folder);
    let answer = harness.model.then_live();
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    for n in 0.. {
        let word = format!("word-{n}");
        answer.text(format!("{word} "));
        let has_word = |event: &Event| match event.delta() {
            Some(Delta::Text { text, .. }) => text.contains(&word).then_some(()),
            _ => None,
        };
        events.until_new("the word", has_word).await;
        print_line(&word);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

// ---- a call that had started

#[tokio::test]
async fn t_u15_a_call_that_had_begun_is_marked_and_never_run_again() {
    if let Some(folder) = store() {
        return calling(folder).await;
    }
    let folder = TempDir::new().unwrap();
    let (mut child, mut lines) = start(folder.path());
    assert_eq!(next_line(&mut lines).as_deref(), Some("begun"));
    child.kill().unwrap();
    child.wait().unwrap();

    let harness = on(folder.path());
    let ran = folder.path().join("ran");
    harness.probe.does(|_, _| panic!("the lost call ran again"));
    let line = harness.sessions().list().await.unwrap().remove(0);
    let session = harness.sessions().get(line.id.as_str()).await.unwrap();
    let facts = facts(&Sqlite::open(folder.path()).unwrap(), &line.id).await;
    let receipt = facts.iter().find_map(|event| match event.fact() {
        Some(Fact::Turn(TurnFact::Finished { receipt, .. })) => receipt.clone(),
        _ => None,
    });
    assert_eq!(receipt.unwrap().to_string(), "1 tool lost, processes were not counted");
    session.prompt("and then?").await.unwrap();
    assert_eq!(session.settled().await.unwrap().last_turn.as_ref().unwrap().outcome, Outcome::Done);
    assert_eq!(fs::read_to_string(ran).unwrap(), "once\n");
    let sent = harness.model.requests().pop().unwrap().messages;
    let [Message::User(_), Message::Assistant(answer), Message::Tool(result), Message::User(next)] =
        &sent[..]
    else {
        panic!("no provider would accept {sent:?}")
    };
    assert_eq!((answer.calls[0].id, result.status), (result.call, ToolStatus::Interrupted));
    assert!(result.result.contains("restarted"), "{result:?}");
    assert_eq!(next, "and then?");
}

async fn calling(folder: PathBuf) {
    let harness = on(&folder);
    harness.probe.does(move |_, _| {
        let mut ran = File::options().append(true).create(true).open(folder.join("ran")).unwrap();
        writeln!(ran, "once").unwrap();
        print_line("begun");
        std::thread::sleep(Duration::from_secs(600));
        Ok(ToolOutcome::default())
    });
    harness.model.then(reply().text("I do it.").call("probe", json!({})));
    let session = harness.open().await;
    session.prompt("go").await.unwrap();
    session.settled().await.unwrap();
}

// ---- text of all kinds

#[tokio::test]
async fn t_u16_wide_characters_are_never_cut_wherever_a_limit_falls() {
    let folder = TempDir::new().unwrap();
    let id = {
        let harness = on(folder.path());
        let session = harness.open().await;
        let mut events = harness.watch(&session).await;
        for shift in 0..4 {
            // For some shift, a character lies across each limit of pieces and of kept text.
            let wide = format!("{}{}", "x".repeat(shift), "\u{1f600}".repeat(9_000));
            let output = wide.clone();
            harness.probe.does(move |_, context| {
                context.output(&output);
                Ok(ToolOutcome::text("\u{1f468}\u{200d}\u{1f469}"))
            });
            // Half a surrogate is not a character: the call is refused, and its turn continues.
            harness.model.then(reply().raw_call("probe", r#"{"half": "\ud83d"}"#));
            harness.model.then(
                reply()
                    .thought(wide.clone())
                    .text(wide.clone())
                    .call("probe", json!({ "wide": wide })),
            );
            session.prompt(wide.as_str()).await.unwrap();
            assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
        }
        session.id().clone()
    };
    let harness = on(folder.path());
    let session = harness.sessions().get(id.as_str()).await.unwrap();
    let mut events = harness.watch(&session).await;
    session.prompt("go on").await.unwrap();
    assert_eq!(session.settled().await.unwrap().last_turn.as_ref().unwrap().outcome, Outcome::Done);
    let last = |event: &Event| matches!(event.fact(), Some(Fact::Prompt(PromptFact::Accepted { text, .. })) if &**text == "go on");
    events.until("the last prompt", |event| last(event).then_some(())).await;
    let outputs = events.facts().filter_map(|fact| match fact {
        Fact::Tool(ToolFact::Finished(result)) => Some(&result.output),
        _ => None,
    });
    let outputs: Vec<_> = outputs.filter(|output| !output.is_empty()).collect();
    assert_eq!(outputs.len(), 4);
    assert!(outputs.iter().all(|output| !output.to_text().contains('\u{fffd}')));
}
