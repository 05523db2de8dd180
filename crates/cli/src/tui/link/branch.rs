//! The git branch of a session's workspace, read from the repository's files without running git.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdpoint_common::{Event, Fact, ToolFact, TurnFact};
use rustix::fs::OFlags;
use tokio::sync::Notify;

use super::super::message::Message;
use super::Shared;

/// How many bytes are read of `.git` or `HEAD`.
const MAX_BYTES: u64 = 4_096;

/// How many characters of a detached commit are shown.
const COMMIT: usize = 8;

/// Whether these events may have changed the branch.
pub(super) fn may_change(events: &[Arc<Event>]) -> bool {
    events.iter().any(|event| {
        matches!(
            event.fact(),
            Some(Fact::Tool(ToolFact::Finished(_)) | Fact::Turn(TurnFact::Finished { .. }))
        )
    })
}

/// Sends the folder's branch now, and after each `refresh` if it has changed.
pub(super) async fn watch(shared: Shared, attachment: u64, folder: PathBuf, refresh: Arc<Notify>) {
    let mut last_sent = None;
    loop {
        let folder = folder.clone();
        // A file system can block.
        let Ok(branch) = tokio::task::spawn_blocking(move || branch_of(&folder)).await else {
            return;
        };
        if last_sent != branch {
            last_sent.clone_from(&branch);
            shared.send(Message::Branch { attachment, branch }).await;
        }
        refresh.notified().await;
    }
}

/// The branch of the repository around the folder, or its detached commit in parentheses.
fn branch_of(folder: &Path) -> Option<String> {
    let git = folder.ancestors().find_map(repository)?;
    let head = read(&git.join("HEAD"))?;
    match head.trim().strip_prefix("ref: ") {
        // Git writes this placeholder for repositories with a reftable.
        Some("refs/heads/.invalid") => None,
        Some(name) => Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()),
        None => Some(format!("({})", head.trim().get(..COMMIT)?)),
    }
}

/// The folder's git directory. In a worktree, a file named `.git` has its path.
fn repository(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    if fs::metadata(&git).ok()?.is_dir() {
        return Some(git);
    }
    let place = read(&git)?;
    Some(folder.join(place.trim().strip_prefix("gitdir: ")?))
}

/// Reads the beginning of a regular file. A pipe, for example, might never end.
fn read(path: &Path) -> Option<String> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use tempfile::TempDir;

    use super::*;

    fn git(folder: &Path, args: &[&str]) {
        let who =
            ["-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "init.defaultBranch=main"];
        let mut command = Command::new("git");
        // Ignores the user's configuration and a repository named by the environment.
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", folder);
        let ran = command.args(who).args(args).current_dir(folder).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
    }

    #[test]
    fn the_branch_is_what_git_says() {
        let place = TempDir::new().unwrap();
        let folder = place.path().join("code");
        fs::create_dir_all(folder.join("deep/er")).unwrap();
        assert_eq!(branch_of(&folder), None);
        git(&folder, &["init", "-q"]);
        assert_eq!(branch_of(&folder).as_deref(), Some("main"));
        git(&folder, &["commit", "-q", "--allow-empty", "-m", "one"]);
        git(&folder, &["switch", "-q", "-c", "feature/x"]);
        assert_eq!(branch_of(&folder.join("deep/er")).as_deref(), Some("feature/x"));
        git(&folder, &["worktree", "add", "-q", "../other", "main"]);
        assert_eq!(branch_of(&place.path().join("other")).as_deref(), Some("main"));
        git(&folder, &["checkout", "-q", "--detach"]);
        let detached = branch_of(&folder).unwrap();
        assert!(detached.len() == COMMIT + 2 && detached.starts_with('('), "{detached}");
    }

    #[test]
    fn a_head_that_names_nothing_is_no_branch() {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join(".git")).unwrap();
        for head in ["", "\n", "12\n"] {
            fs::write(folder.path().join(".git/HEAD"), head).unwrap();
            assert_eq!(branch_of(folder.path()), None);
        }
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_not_read() {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join(".git")).unwrap();
        let pipe = folder.path().join(".git/HEAD");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert_eq!(branch_of(folder.path()), None);
    }
}
