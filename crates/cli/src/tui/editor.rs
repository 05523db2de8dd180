//! Editing the prompt in the user's own editor.

use std::io::{self, Write};
use std::process::Command;

/// Opens the text in `$VISUAL`, `$EDITOR` or `vi`, and returns the saved text. Blocks until the
/// editor ends.
///
/// # Errors
/// Fails if the editor can't be started or reports failure.
pub(super) fn edit(text: &str) -> io::Result<String> {
    // The name is unpredictable, only the user can read the file, and dropping it deletes it.
    let mut draft = tempfile::Builder::new().prefix("holdpoint-").suffix(".md").tempfile()?;
    draft.write_all(text.as_bytes())?;
    let named = |name| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    let editor = named("VISUAL").or_else(|| named("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    // The editor may have arguments, as in `code --wait`. It handles Ctrl+C itself; the shell
    // ignores the signal.
    let script = format!("trap : INT QUIT; {editor} \"$1\"");
    let status = Command::new("sh").args(["-c", &script, "sh"]).arg(draft.path()).status()?;
    if !status.success() {
        return Err(io::Error::other(format!("{editor}: {status}")));
    }
    std::fs::read_to_string(draft.path())
}
