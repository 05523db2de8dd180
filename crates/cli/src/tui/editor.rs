//! The prompt in the user's own editor.

use std::io::{self, Write};
use std::process::Command;

/// What the user makes of a text in `$VISUAL`, `$EDITOR` or `vi`. Blocks until it ends.
///
/// # Errors
/// There is no such editor, or it failed.
pub(super) fn edit(text: &str) -> io::Result<String> {
    // Of a name that nobody can know before, for the user alone, and gone when it is dropped.
    let mut draft = tempfile::Builder::new().prefix("holdpoint-").suffix(".md").tempfile()?;
    draft.write_all(text.as_bytes())?;
    let named = |name| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    let editor = named("VISUAL").or_else(|| named("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    // It may have arguments, as in `code --wait`. What Ctrl+C does is for it to say: the shell waits for its end.
    let script = format!("trap : INT QUIT; {editor} \"$1\"");
    let status = Command::new("sh").args(["-c", &script, "sh"]).arg(draft.path()).status()?;
    if !status.success() {
        return Err(io::Error::other(format!("{editor}: {status}")));
    }
    std::fs::read_to_string(draft.path())
}
