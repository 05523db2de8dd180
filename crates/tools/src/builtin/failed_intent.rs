//! The details of an ask about a file change that is known to fail.

use holdpoint_common::Verdict;

use crate::act::Act;
use crate::error::ToolError;
use crate::place::Place;
use crate::shown;
use crate::workspace::Workspace;

/// Returns the details of an ask about a call that will fail with `error`, even if it is approved.
/// The error is passed to `keep` for the call.
///
/// # Errors
/// Returns `error` at once if `tool` may read the file without approval. Otherwise the model must
/// not get the error before the user approves, because it can reveal the file's content.
pub(super) fn failure_details(
    error: ToolError,
    tool: &str,
    place: &Place,
    workspace: &Workspace,
    keep: impl FnOnce(ToolError),
) -> Result<String, ToolError> {
    let reads = [Act::Read(place.clone())];
    if workspace.policy().judge(tool, &reads, workspace.root()).verdict == Verdict::Allow {
        return Err(error);
    }
    let details = format!("{}\n\nThis call will fail: {error}\n", shown::line(place.shown()));
    keep(error);
    Ok(details)
}
