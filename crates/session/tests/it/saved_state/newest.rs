//! The first request after an opening, for which only the newest facts are read.

use std::num::NonZeroU64;

use futures_util::future::BoxFuture;
use holdpoint_common::{HistoryCut, Limits, RunLimits};
use holdpoint_session::RunRequest;
use holdpoint_session::testing::within_patience;
use holdpoint_tools::{
    Act, Intent, NamedContent, Refreshed, SourceContext, Tool, ToolContext, ToolError, ToolOutcome,
    ToolSource, Toolbox, Workspace,
};
use serde_json::Value;

use super::*;

const MAX_TOKENS: u64 = 4_000;

/// An engine with a small context, on the sessions of this folder.
fn narrow(folder: &TempDir) -> Harness {
    let limits = Limits { max_history_tokens: MAX_TOKENS, ..Limits::default() };
    let store = Sqlite::open(folder.path()).unwrap();
    Harness::with(|engine| engine.store(store).limits(limits))
}

/// A copy of the folder, with this change to its database.
fn changed(folder: &TempDir, change: &str) -> TempDir {
    let copy = TempDir::new().unwrap();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    assert!(database(&copy).execute(change, []).unwrap() > 0);
    copy
}

/// The messages of the first request, and the cut that was reported.
async fn first_request(folder: &TempDir, id: &SessionId) -> (Vec<Message>, HistoryCut) {
    let harness = narrow(folder);
    let session = harness.sessions().get(id.as_str()).await.unwrap();
    let mut events = harness.watch(&session).await;
    turn(&harness, &session, TURNS).await;
    let cut = |event: &Event| match event.fact() {
        Some(Fact::Turn(TurnFact::HistoryCut(cut))) => Some(*cut),
        _ => None,
    };
    let cut = events.until("the cut", cut).await;
    assert_eq!(session.snapshot().gaps, Gaps::default(), "it has read facts that are lost");
    (harness.model.requests()[0].messages.clone(), cut)
}

#[tokio::test]
async fn m_e3_the_first_request_after_an_opening_reads_only_the_newest_facts() {
    let folder = TempDir::new().unwrap();
    let before = filled_with(&folder, |number| "word ".repeat(300) + &number.to_string()).await;
    let id = &before.settings.id;
    let all_read = changed(&folder, "DELETE FROM states");
    let (all, cut) = first_request(&all_read, id).await;
    // Without the oldest half of the log, which the saved state covers.
    let half = saved_upto(&folder) / 2;
    let newest = changed(&folder, &format!("DELETE FROM facts WHERE seq > 1 AND seq < {half}"));
    assert_eq!(first_request(&newest, id).await, (all, cut));
    assert!(cut.tokens > MAX_TOKENS - 200 && cut.messages > 150, "{cut:?}");
}

#[tokio::test]
async fn m_e3_more_facts_are_read_while_all_of_the_newest_fit() {
    let folder = TempDir::new().unwrap();
    // These take few tokens for their size.
    let before = filled_with(&folder, |number| format!("{}{number}", " ".repeat(3_000))).await;
    let id = &before.settings.id;
    let all_read = changed(&folder, "DELETE FROM states");
    let (all, cut) = first_request(&all_read, id).await;
    assert_eq!(first_request(&folder, id).await, (all, cut));
    assert!(cut.tokens > MAX_TOKENS - 200, "{cut:?}");
}

#[tokio::test]
async fn m_b7_the_newest_facts_are_read_when_a_client_attaches() {
    let folder = TempDir::new().unwrap();
    let before = filled(&folder).await;
    let store = GatedReads::new(folder.path());
    let harness = Harness::with(|engine| engine.store(store.clone()));
    let session = harness.sessions().get(before.settings.id.as_str()).await.unwrap();
    let _client = session.attach(AttachFrom::now()).await.unwrap();
    let mut read = store.read.subscribe();
    within_patience("the read", read.wait_for(|read| *read > 0)).await.unwrap();
    // Nothing else has to be read.
    store.open.send_replace(false);
    turn(&harness, &session, TURNS).await;
    assert!(prompts(&harness.model.requests()[0]).len() > TURNS);
}

/// A source whose content every prompt names.
struct Page;

impl ToolSource for Page {
    fn refresh<'a>(&'a mut self, _: &'a SourceContext) -> BoxFuture<'a, Refreshed> {
        async { Refreshed::default() }.boxed()
    }

    fn named_content<'a>(&'a mut self, _: &'a str) -> BoxFuture<'a, Result<NamedContent, String>> {
        let parts = vec![("page".to_owned(), "the page".to_owned())];
        async { Ok(NamedContent { parts, ..NamedContent::default() }) }.boxed()
    }
}

#[tokio::test]
async fn m_e3_named_content_is_in_a_request_once_although_facts_are_read_after_it() {
    let folder = TempDir::new().unwrap();
    let before = filled(&folder).await;
    let store = Sqlite::open(folder.path()).unwrap();
    let harness = Harness::with(|engine| {
        engine.store(store).tools(|_| Toolbox::new().with_source(Box::new(Page)))
    });
    let session = harness.sessions().get(before.settings.id.as_str()).await.unwrap();
    turn(&harness, &session, TURNS).await;
    let request = &harness.model.requests()[0];
    assert!(prompts(request).len() > TURNS);
    assert_eq!(prompts(request).concat().matches("the page").count(), 1);
}

/// One iteration of a run. Its task remains.
async fn one_iteration(harness: &Harness, session: &SessionHandle, goal: &str, task: &str) {
    harness.model.then(reply().text("Later."));
    let limits = RunLimits { iterations: NonZeroU64::new(1), ..RunLimits::default() };
    let run = RunRequest { tasks: vec![task.to_owned()], limits, ..RunRequest::new(goal) };
    session.start_run(run).await.unwrap();
    session.settled().await.unwrap();
    session.interrupt(None).await.unwrap();
}

#[tokio::test]
async fn m_d5_a_run_in_a_session_that_was_partly_read_has_all_tasks() {
    let folder = TempDir::new().unwrap();
    let store = Sqlite::open(folder.path()).unwrap();
    let harness = Harness::with(|engine| engine.store(store.clone()));
    let session = harness.open().await;
    one_iteration(&harness, &session, "the old goal", "the old task").await;
    let before = fill(harness, session, store, |_| "word ".repeat(300)).await;

    let harness = narrow(&folder);
    let session = harness.sessions().get(before.settings.id.as_str()).await.unwrap();
    turn(&harness, &session, TURNS).await;
    assert!(prompts(&harness.model.requests()[0]).len() < 10);
    one_iteration(&harness, &session, "the goal", "the task").await;
    let opening = prompts(&harness.model.requests()[1]).concat();
    for part in ["the goal", "the old task", "the task"] {
        assert!(opening.contains(part), "{opening}");
    }
    assert!(!opening.contains("the old goal"), "{opening}");
}

/// A tool with the name of one of a server.
#[derive(Clone, Copy)]
struct OfServer {
    name: &'static str,
    works: bool,
}

impl Tool for OfServer {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        "Works or fails."
    }

    fn schema(&self) -> Value {
        json!({ "type": "object" })
    }

    fn intent(&self, _: &Value, _: &Workspace) -> Result<Intent, ToolError> {
        Ok(Intent::new(Act::Other, "Go?"))
    }

    fn call(&mut self, _: Value, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let failed = ToolError::failed("no");
        if self.works { Ok(ToolOutcome::default()) } else { Err(failed) }
    }
}

/// The calls are in a part of the log that no request needs.
#[tokio::test]
async fn m_h2_servers_that_are_gone_are_named_after_an_opening_from_a_saved_state() {
    let folder = TempDir::new().unwrap();
    let store = Sqlite::open(folder.path()).unwrap();
    let tools = [("mcp__gone__page", true), ("mcp__broken__page", false)];
    let harness = Harness::with(|engine| {
        engine.store(store.clone()).tools(move |_| {
            let tools = tools.map(|(name, works)| OfServer { name, works });
            tools.into_iter().fold(Toolbox::new(), |toolbox, tool| toolbox.with(move || tool))
        })
    });
    let session = harness.open().await;
    let calls = tools.iter().fold(reply(), |reply, (name, _)| reply.call(*name, json!({})));
    harness.model.then(calls);
    turn(&harness, &session, 0).await;
    let before = fill(harness, session, store, |_| "word ".repeat(300)).await;

    let harness = narrow(&folder);
    let session = harness.sessions().get(before.settings.id.as_str()).await.unwrap();
    let mut events = harness.watch(&session).await;
    let missing = |event: &Event| match event.fact() {
        Some(Fact::Turn(TurnFact::ToolsMissing { reason })) => Some(reason.to_string()),
        _ => None,
    };
    turn(&harness, &session, TURNS).await;
    let missing = events.until("a notice", missing).await;
    assert!(missing.contains("servers that it no longer has: `gone`."), "{missing}");
}
