//! The branch of git that a session's folder is on: read from the files of the repository, so that no program runs.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdpoint_common::{Event, Fact};
use rustix::fs::OFlags;
use tokio::sync::Notify;

use super::super::message::Message;
use super::Shared;

/// Bytes that are read of a file that names the repository or the branch.
const MOST: u64 = 4_096;

/// Characters of a commit that no branch is on.
const COMMIT: usize = 8;

/// Whether these may have changed the branch.
pub(super) fn may_change(events: &[Arc<Event>]) -> bool {
    events.iter().any(|event| matches!(event.fact(), Some(Fact::ToolFinished(_) | Fact::TurnFinished { .. })))
}

/// Sends the branch of this folder: now, and after each `look` if it has changed.
pub(super) async fn watch(shared: Shared, attachment: u64, folder: PathBuf, look: Arc<Notify>) {
    let mut told = None;
    loop {
        let folder = folder.clone();
        // A file system may take its time.
        let Ok(branch) = tokio::task::spawn_blocking(move || branch_of(&folder)).await else { return };
        if told != branch {
            told.clone_from(&branch);
            shared.tell(Message::Branch { attachment, branch }).await;
        }
        look.notified().await;
    }
}

/// The branch of the repository that this folder is in, or its commit in brackets.
fn branch_of(folder: &Path) -> Option<String> {
    let git = folder.ancestors().find_map(repository)?;
    let head = read(&git.join("HEAD"))?;
    match head.trim().strip_prefix("ref: ") {
        // A repository whose references are in a table has this for them.
        Some("refs/heads/.invalid") => None,
        Some(name) => Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()),
        None => Some(format!("({})", head.trim().get(..COMMIT)?)),
    }
}

/// Where a folder's own repository keeps its files; a worktree names the place in a file.
fn repository(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    if fs::metadata(&git).ok()?.is_dir() {
        return Some(git);
    }
    let place = read(&git)?;
    Some(folder.join(place.trim().strip_prefix("gitdir: ")?))
}

/// The beginning of a regular file. Others, as a pipe, may never end.
fn read(path: &Path) -> Option<String> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    file.take(MOST).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use tempfile::TempDir;

    use super::*;

    fn git(folder: &Path, args: &[&str]) {
        let who = ["-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "init.defaultBranch=main"];
        let mut command = Command::new("git");
        // Without the user's configuration, and without a repository named by the environment.
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
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        assert_eq!(branch_of(folder.path()), None);
    }
}
