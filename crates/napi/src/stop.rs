//! A tool that stops and waits for a Continue: for the tests, and there alone.

use holdpoint_common::{PauseKind, PauseResponse};
use holdpoint_tools::{Act, Intent, Tool, ToolContext, ToolError, ToolOutcome, Workspace};
use serde_json::{Value, json};

/// Stops until it is told to go on.
#[derive(Default)]
pub(crate) struct Stop;

impl Tool for Stop {
    fn name(&self) -> &'static str {
        "stop"
    }

    fn description(&self) -> &'static str {
        "Stops until the user says so."
    }

    fn schema(&self) -> Value {
        json!({ "type": "object" })
    }

    fn intent(&self, _: &Value, _: &Workspace) -> Result<Intent, ToolError> {
        Ok(Intent::new(Act::Talk, "Stop?"))
    }

    fn call(&mut self, _: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        match context.pause(PauseKind::Continue, "Look at the page", None) {
            PauseResponse::Interrupted => Err(ToolError::Interrupted),
            response => Ok(ToolOutcome::text(format!("{response:?}"))),
        }
    }
}
