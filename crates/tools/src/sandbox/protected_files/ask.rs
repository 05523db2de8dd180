//! Asks the user about changes of protected files.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use holdpoint_common::{PauseKind, PauseResponse};

use super::entry::{Content, Entry};
use super::put::Put;
use super::{Change, Compared, RunningCommand, name, names};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::shown;
use crate::tool::ToolOutcome;

/// The most bytes of paths in one ask. Further changes are in the next one.
const MAX_LISTED: usize = 256 * 1024;

/// The most bytes of contents that one ask compares and shows.
const MAX_SHOWN: usize = 256 * 1024;

/// Ends a command that has run in the sandbox: compares the protected files, and asks the user about
/// all changes that were put aside, also those of jobs that have ended.
pub(crate) fn settle(
    running: Option<RunningCommand>,
    outcome: Result<ToolOutcome, ToolError>,
    context: &ToolContext,
) -> Result<ToolOutcome, ToolError> {
    let Some(running) = running else { return outcome };
    let files = running.files.clone();
    let has_living = !context.processes().so_far().not_ended.is_empty();
    let compared = running.end(has_living);
    // The next command asks.
    if context.is_cancelled() {
        context.output(&compared.line());
        return outcome;
    }
    let Compared { mut problems, aside, .. } = compared;
    let mut room = MAX_LISTED;
    let changes = files.take_pending(|path| {
        let taken = room.checked_sub(path.as_os_str().len());
        room = taken.unwrap_or_default();
        taken.is_some()
    });
    if !changes.is_empty() {
        let message = match changes.len() {
            1 => "Keep the change of a protected file?".to_owned(),
            many => format!("Keep the changes of {many} protected files?"),
        };
        let paths = names(changes.keys());
        let note = match context.pause(PauseKind::Confirm, message, Some(details(&changes))) {
            PauseResponse::Approved | PauseResponse::Resumed => {
                problems.splice(..0, files.put_in_place(changes));
                format!("the user approved the changes of protected files: {paths}")
            }
            PauseResponse::Denied { reason } => {
                let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
                format!(
                    "the user denied the changes of protected files, which are in {}: {paths}{reason}",
                    name(&aside)
                )
            }
            PauseResponse::Interrupted => {
                files.keep_pending(changes);
                return Err(ToolError::Interrupted);
            }
        };
        problems.insert(0, note);
    }
    // On the line of the result, which is the one that clients show.
    let notes: String = problems.iter().map(|note| format!(" [{note}]")).collect();
    match outcome {
        Ok(outcome) => Ok(ToolOutcome { output: outcome.output + &notes, ..outcome }),
        Err(ToolError::Failed { message }) => Err(ToolError::failed(message + &notes)),
        Err(error) => Err(error),
    }
}

/// The list of changes, and their diffs as far as they are not too long.
fn details(changes: &BTreeMap<PathBuf, Change>) -> String {
    let mut list = String::new();
    let (mut diffs, mut room) = (String::new(), MAX_SHOWN);
    for (path, change) in changes {
        let verb = match (&change.old, &change.new) {
            (None, _) => "created",
            (_, None) => "removed",
            _ => "changed",
        };
        let mode = match (&change.old, &change.new) {
            (Some(old), Some(new)) if old.mode() == new.mode() => String::new(),
            (_, Some(new)) if matches!(new.content, Content::File(_)) => {
                format!(", mode {:03o}", new.mode())
            }
            _ => String::new(),
        };
        // Writing to a string does not fail.
        let _ = writeln!(list, "{verb}: {}{mode}", name(path));
        diffs.push_str(&diff(path, change, &mut room));
    }
    format!("{list}{diffs}")
}

/// The diff of one change, or its sizes and the place of the new file.
fn diff(path: &Path, change: &Change, room: &mut usize) -> String {
    let sides = [&change.old, &change.new].map(|entry| entry.as_deref().map_or(Some(""), text));
    if let [Some(old), Some(new)] = sides
        && let Some(left) = room.checked_sub(old.len() + new.len())
    {
        *room = left;
        let shown = path.to_string_lossy();
        let is_new = change.old.is_none();
        if let Ok(diff) = shown::diff(&shown, (!is_new).then_some(old), new) {
            return format!("\n{diff}");
        }
    }
    let side = |entry: &Option<_>| match entry.as_deref() {
        None => "nothing".to_owned(),
        Some(Entry { content: Content::Link(target), .. }) => {
            format!("a link to {}", shown::line(&String::from_utf8_lossy(target)))
        }
        Some(Entry { content: Content::File(bytes), .. }) => {
            format!("{} bytes, BLAKE3 {}", bytes.len(), blake3::hash(bytes).to_hex())
        }
        Some(entry @ Entry { content: Content::NotKept(why), .. }) => {
            format!("{} bytes ({why})", entry.size())
        }
    };
    let [old, new] = [&change.old, &change.new].map(side);
    let place = match &change.put {
        Some(Put::Aside(path)) => format!(", in {}", name(path)),
        Some(Put::Renamed(_)) | None => String::new(),
    };
    format!("\n{}: not shown\n- {old}\n+ {new}{place}\n", name(path))
}

/// The text of a file; `None` if it has none.
fn text(entry: &Entry) -> Option<&str> {
    match &entry.content {
        Content::File(bytes) => str::from_utf8(bytes).ok(),
        Content::Link(_) | Content::NotKept(_) => None,
    }
}
