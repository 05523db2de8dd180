//! Editing the prompt in the user's own editor.

use std::io::{self, Write};
use std::process::Command;

/// Opens the text in `$VISUAL`, `$EDITOR` or `vi`, and returns the saved text. Blocks until the
/// editor ends.
///
/// # Errors
/// Fails if the editor can't be started or reports failure.
pub(super) fn edit(text: &str) -> io::Result<String> {
    // The file has an unpredictable name, only the user can read it, and it is deleted when `draft`
    // is dropped.
    let mut draft = tempfile::Builder::new().prefix("holdpoint-").suffix(".md").tempfile()?;
    draft.write_all(text.as_bytes())?;
    let from_env = |name| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    let editor =
        from_env("VISUAL").or_else(|| from_env("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    // The editor may have arguments, as in `code --wait`. It handles Ctrl+C itself; the shell
    // ignores the signal.
    let script = format!("trap : INT QUIT; {editor} \"$1\"");
    let status = Command::new("sh").args(["-c", &script, "sh"]).arg(draft.path()).status()?;
    if !status.success() {
        return Err(io::Error::other(format!("{editor}: {status}")));
    }
    std::fs::read_to_string(draft.path())
}
