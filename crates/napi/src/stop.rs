//! The tool `probe`, which here stops and waits for a Continue: for the tests, and there alone.

use holdpoint_common::{PauseKind, PauseResponse};
use holdpoint_session::testing::{Probe, ProbeTool};
use holdpoint_tools::{ToolError, ToolOutcome};

/// The tool.
pub(crate) fn stop() -> ProbeTool {
    let probe = Probe::default();
    probe.does(|_, context| match context.pause(PauseKind::Continue, "Look at the page", None) {
        PauseResponse::Interrupted => Err(ToolError::Interrupted),
        response => Ok(ToolOutcome::text(format!("{response:?}"))),
    });
    probe.tool()
}
