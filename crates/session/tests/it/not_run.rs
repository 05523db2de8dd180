//! Tools that are notified that their call does not run.

use std::sync::mpsc::{Sender, channel};

use holdpoint_common::{Fact, Outcome, ToolFact, ToolStatus};
use holdpoint_session::testing::{Harness, reply};
use holdpoint_tools::{Intent, Tool, ToolContext, ToolError, ToolOutcome, Toolbox, Workspace};
use serde_json::{Value, json};

/// A tool with an intent that panics. It reports why its call does not run.
struct Panics(Sender<String>);

impl Tool for Panics {
    fn name(&self) -> &'static str {
        "panics"
    }

    fn description(&self) -> &'static str {
        "Panics before its call."
    }

    fn schema(&self) -> Value {
        json!({ "type": "object" })
    }

    fn intent(&self, _: &Value, _: &Workspace) -> Result<Intent, ToolError> {
        panic!("the intent fell over")
    }

    fn call(&mut self, _: Value, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
        Ok(ToolOutcome::default())
    }

    fn not_run(&mut self, why: &str) {
        self.0.send(why.to_owned()).unwrap();
    }
}

#[tokio::test]
async fn t_t1_m_b8_a_tool_is_notified_that_its_intent_has_panicked() {
    let (sender, reasons) = channel();
    let harness = Harness::with(|engine| {
        engine.tools(move |_| {
            let sender = sender.clone();
            Toolbox::new().with(move || Panics(sender.clone()))
        })
    });
    harness.model.then(reply().call("panics", json!({})));
    let session = harness.open().await;
    let mut events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    let end = events.turn_finished().await;
    assert_eq!(end.outcome, Outcome::Panicked);
    let why = "the tool panicked before it started: the intent fell over";
    assert_eq!(end.error.as_deref(), Some(why));
    assert_eq!(reasons.try_iter().collect::<Vec<_>>(), [why]);
    let result = events.facts().find_map(|fact| match fact {
        Fact::Tool(ToolFact::Finished(result)) => Some(result.clone()),
        _ => None,
    });
    let result = result.unwrap();
    assert_eq!((result.status, result.result.as_str()), (ToolStatus::Panicked, why));
    session.prompt("again").await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
}
