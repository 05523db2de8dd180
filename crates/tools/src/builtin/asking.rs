//! What whoever is asked about a change is shown of one that would fail.

use holdpoint_common::Verdict;

use crate::act::Act;
use crate::error::ToolError;
use crate::place::Place;
use crate::shown;
use crate::workspace::Workspace;

/// The details of an ask for what would fail as it is. It fails whatever the user says: the error is kept for the call.
///
/// # Errors
/// This one, at once: it tells the model what is in the file, and so it may only if `tool` may read that unasked.
pub(super) fn failing(
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
    let details = format!("{}\n\nAs it is, this will fail: {error}\n", shown::line(place.shown()));
    keep(error);
    Ok(details)
}
