//! The words of a project: what its `AGENTS.md` says, added to the system prompt and marked as what it is.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdpoint_common::limits::MAX_PROJECT_WORDS;
use rustix::fs::OFlags;

/// The file of a workspace that speaks to agents.
const FILE: &str = "AGENTS.md";

/// The system prompt for a session in this workspace. A file that can't be read is logged, and left out.
pub(crate) async fn system_prompt(system: &Arc<str>, workspace: &Path) -> Arc<str> {
    let root = PathBuf::from(workspace);
    let words = match tokio::task::spawn_blocking(move || read(&root)).await {
        Ok(Ok(words)) => words,
        Ok(Err(error)) => {
            tracing::warn!(%error, "{FILE} can't be read and is left out");
            None
        }
        Err(panic) => {
            tracing::error!(%panic, "{FILE} could not be read");
            None
        }
    };
    words.map_or_else(|| Arc::clone(system), |words| add(system, &words).into())
}

/// What the project says, at most [`MAX_PROJECT_WORDS`] of it; nothing where it says nothing, or only through a link
/// that leads out of the workspace. Waits for nothing: neither a pipe nor a device is opened as if it were a file.
fn read(workspace: &Path) -> io::Result<Option<String>> {
    let root = workspace.canonicalize()?;
    let path = match root.join(FILE).canonicalize() {
        Ok(path) if path.starts_with(&root) => path,
        Ok(_) => return Err(io::Error::other("it is a link that leads out of the workspace")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_PROJECT_WORDS as u64 + 1).read_to_end(&mut bytes)?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if bytes.len() > MAX_PROJECT_WORDS {
        text.truncate(text.floor_char_boundary(MAX_PROJECT_WORDS));
        text.push_str("\n[... the rest is left out: it is too long ...]");
    }
    Ok(Some(text).filter(|text| !text.trim().is_empty()))
}

/// The system prompt with the project's words, each line quoted, so that nothing in them can end the quotation.
fn add(system: &str, words: &str) -> String {
    let mut text = format!("{}\n\n{}\n\n", system.trim_end(), INTRODUCTION.trim_end());
    // Whatever may end a line for a model does so here.
    let words = words.replace("\r\n", "\n").replace(['\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'], "\n");
    for line in words.trim_end().lines() {
        text.push_str(if line.is_empty() { ">" } else { "> " });
        text.extend(line.chars().map(|char| if char.is_control() && char != '\t' { '\u{fffd}' } else { char }));
        text.push('\n');
    }
    text
}

/// What is said before the project's words.
const INTRODUCTION: &str = include_str!("../prompts/project.md");
