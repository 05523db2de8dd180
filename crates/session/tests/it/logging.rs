//! Log lines: a span for each session, turn, step and call, and a line for every user action.

use std::io::Write;
use std::sync::{Arc, Mutex};

use holdpoint_common::{Answer, PauseKind, PolicyMode};
use holdpoint_session::store::Sqlite;
use holdpoint_session::testing::{Harness, reply};
use holdpoint_tools::ToolOutcome;
use holdpoint_tools::testing::in_own_process;
use serde_json::json;
use tempfile::TempDir;

/// Collects the lines as they are written.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    /// Collects all lines of this process.
    fn collect() -> Self {
        let lines = Self::default();
        let writer = lines.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        tracing::subscriber::set_global_default(subscriber).unwrap();
        lines
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn user_actions_and_turn_events_are_logged_in_their_session() {
    if !in_own_process() {
        return;
    }
    let lines = Lines::collect();
    let harness = Harness::start();
    harness.probe.does(|_, context| {
        tracing::info!("the tool is at work");
        context.pause(PauseKind::Continue, "?", None);
        Ok(ToolOutcome::default())
    });
    let secret = "sk-a-key-in-a-prompt";
    harness.model.then(reply().call("probe", json!({ "key": secret }))).then(reply());
    let session = harness.sessions().open(harness.session().policy(PolicyMode::Ask)).await.unwrap();
    let mut events = harness.watch(&session).await;
    session.prompt(format!("go {secret}")).await.unwrap();
    for answer in [Answer::Approve { always: false }, Answer::Resume] {
        events.asked().await;
        events.answer(answer).await.unwrap();
    }
    events.turn_finished().await;
    session.hold().await.unwrap();
    session.release().await.unwrap();
    let _silent = harness.model.then_live();
    session.prompt("again").await.unwrap();
    session.interrupt_and_wait().await.unwrap().unwrap();
    drop(events);
    session.close().await.unwrap();

    let text = lines.text();
    let id = session.id();
    let acts = [
        "attach",
        "detach",
        "prompt accepted",
        "asked",
        "answered",
        "hold",
        "interrupt",
        "turn finished",
        "close",
    ];
    for act in acts {
        let reported = text
            .lines()
            .any(|line| line.contains(act) && line.contains(&format!("session{{id={id}}}")));
        assert!(reported, "no line reports `{act}`:\n{text}");
    }
    assert!(
        text.lines().any(|line| line.contains("hold=Standing"))
            && text.lines().any(|line| line.contains("hold=Off"))
    );
    // On any thread, a call's span is inside those of its step, its turn and its session.
    let at_work = text.lines().find(|line| line.contains("the tool is at work")).unwrap();
    for span in [
        format!("session{{id={id}}}"),
        "turn{turn=1}".into(),
        "step{step=1}".into(),
        "call{call=".into(),
    ] {
        assert!(at_work.contains(&span), "{span}: {at_work}");
    }
    assert!(!text.contains(secret), "neither prompts nor arguments are logged:\n{text}");
}

/// The session keeps an open policy Confirm, so it needs mending at every start.
#[tokio::test]
async fn a_restart_that_ends_no_work_is_not_logged_as_mending() {
    if !in_own_process() {
        return;
    }
    let lines = Lines::collect();
    let folder = TempDir::new().unwrap();
    let start = || {
        let store = Sqlite::open(folder.path()).unwrap();
        Harness::with(|engine| engine.store(store))
    };
    let harness = start();
    harness.model.then(reply().call("probe", json!({})));
    let session = harness.sessions().open(harness.session().policy(PolicyMode::Ask)).await.unwrap();
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    events.asked().await;
    drop((events, session, harness));
    for _ in 0..3 {
        let again = start();
        assert!(again.sessions().list().await.unwrap()[0].waits_for.is_some());
    }
    let text = lines.text();
    assert_eq!(text.matches("session mended").count(), 1, "{text}");
}
