//! The prompt in the user's own editor.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Command;

/// A file that is gone when it is dropped.
struct Draft(PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What the user makes of a text in `$VISUAL`, `$EDITOR` or `vi`. Blocks until it ends.
///
/// # Errors
/// There is no such editor, or it failed.
pub(super) fn edit(text: &str) -> io::Result<String> {
    let draft = Draft(std::env::temp_dir().join(format!("holdpoint-{}.md", std::process::id())));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft.0)?;
    file.write_all(text.as_bytes())?;
    let named = |name| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    let editor = named("VISUAL").or_else(|| named("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    // It may have arguments, as in `code --wait`.
    let status = Command::new("sh").args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(&draft.0).status()?;
    if !status.success() {
        return Err(io::Error::other(format!("{editor}: {status}")));
    }
    std::fs::read_to_string(&draft.0)
}
