//! The project's own instructions, from its `AGENTS.md`, as a quotation in the system prompt.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdpoint_common::limits::MAX_PROJECT_BYTES;
use rustix::fs::OFlags;

/// The file in a workspace that is addressed to agents.
const FILE: &str = "AGENTS.md";

/// The system prompt for a session in this workspace, and a message for the user if a part of the
/// project's file is left out of it.
pub(crate) async fn system_prompt(
    system: &Arc<str>,
    workspace: &Path,
) -> (Arc<str>, Option<String>) {
    let root = PathBuf::from(workspace);
    let read =
        tokio::task::spawn_blocking(move || read(&root)).await.map_err(io::Error::other).flatten();
    let (text, notice) = match read {
        Ok(None) => (None, None),
        Ok(Some(Instructions { text, bytes, is_utf8 })) => {
            let notices: Vec<_> =
                too_long_notice(bytes).into_iter().chain(not_utf8_notice(is_utf8)).collect();
            (Some(text), (!notices.is_empty()).then(|| notices.join("; ")))
        }
        Err(error) => (None, Some(format!("{FILE} is left out: {error}"))),
    };
    if let Some(notice) = &notice {
        tracing::warn!("{notice}");
    }
    (text.map_or_else(|| Arc::clone(system), |text| add_quotation(system, &text).into()), notice)
}

/// The text of the file, at most [`MAX_PROJECT_BYTES`] bytes of it.
struct Instructions {
    text: String,
    /// The size of the whole file in bytes.
    bytes: u64,
    /// Whether the text is valid UTF-8.
    is_utf8: bool,
}

fn not_utf8_notice(is_utf8: bool) -> Option<String> {
    let notice =
        format!("{FILE} is not UTF-8: the model gets \u{fffd} for invalid bytes; save it as UTF-8");
    (!is_utf8).then_some(notice)
}

fn too_long_notice(bytes: u64) -> Option<String> {
    let most = MAX_PROJECT_BYTES as u64;
    (bytes > most).then(|| {
        let [most, all] = [most, bytes].map(|bytes| bytes.div_ceil(1024));
        format!("{FILE} is too long: the model gets only the first {most} of its {all} KiB")
    })
}

/// Reads the file; `None` if it does not exist or is blank. Never blocks: a pipe or a device is
/// refused without reading it.
///
/// # Errors
/// The file can't be read, is not text, or is a link that leads out of the workspace or to a
/// missing file.
fn read(workspace: &Path) -> io::Result<Option<Instructions>> {
    let root = workspace.canonicalize()?;
    let path = match root.join(FILE).canonicalize() {
        Ok(path) if path.starts_with(&root) => path,
        Ok(_) => return Err(io::Error::other("it is a link that leads out of the workspace")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let is_link = root.join(FILE).symlink_metadata().is_ok();
            return if is_link { Err(io::Error::other("it is a dangling link")) } else { Ok(None) };
        }
        Err(error) => return Err(error),
    };
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut start = Vec::new();
    file.take(MAX_PROJECT_BYTES as u64 + 1).read_to_end(&mut start)?;
    // The file may have grown in the meantime.
    let bytes = metadata.len().max(start.len() as u64);
    if start.contains(&0) {
        return Err(io::Error::other(
            "it contains zero bytes, like binary or UTF-16 text; save it as UTF-8",
        ));
    }
    // A character that the limit splits does not make the file invalid.
    let is_utf8 = str::from_utf8(&start)
        .map_or_else(|error| error.error_len().is_none() && bytes > start.len() as u64, |_| true);
    let mut text = String::from_utf8_lossy(&start).into_owned();
    if start.len() > MAX_PROJECT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_PROJECT_BYTES));
        text.push_str("\n[... the rest is left out: the file is too long ...]");
    }
    Ok((!text.trim().is_empty()).then_some(Instructions { text, bytes, is_utf8 }))
}

/// Adds the project's text to the system prompt. Each line is quoted, so that no line can end the
/// quotation.
fn add_quotation(system: &str, text: &str) -> String {
    let mut prompt = format!("{}\n\n{}\n\n", system.trim_end(), INTRODUCTION.trim_end());
    // A character that might end a line for a model ends one here.
    let text = text
        .replace("\r\n", "\n")
        .replace(['\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'], "\n");
    for line in text.trim_end().lines() {
        prompt.push_str(if line.is_empty() { ">" } else { "> " });
        prompt.extend(
            line.chars()
                .map(|char| if char.is_control() && char != '\t' { '\u{fffd}' } else { char }),
        );
        prompt.push('\n');
    }
    prompt
}

/// The text before the quotation.
const INTRODUCTION: &str = include_str!("../prompts/project.md");
