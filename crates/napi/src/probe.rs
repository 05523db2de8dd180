//! The tool `probe`, which raises a Continue. For the tests.

use holdpoint_common::{PauseKind, PauseResponse};
use holdpoint_session::testing::{Probe, ProbeTool};
use holdpoint_tools::{ToolError, ToolOutcome};

pub(crate) fn probe_tool() -> ProbeTool {
    let probe = Probe::default();
    probe.does(|_, context| match context.pause(PauseKind::Continue, "Look at the page", None) {
        PauseResponse::Interrupted => Err(ToolError::Interrupted),
        response => Ok(ToolOutcome::text(format!("{response:?}"))),
    });
    probe.tool()
}
