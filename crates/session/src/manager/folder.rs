//! The folder that a session works in: absolute, links resolved.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::SessionError;
use crate::outfit::Base;

/// Where a folder really is. Disks may not answer: it is looked at on a thread that may wait, unless it is at hand.
///
/// # Errors
/// There is none, or it can't be reached.
pub(super) async fn folder(base: &Base, path: PathBuf) -> Result<PathBuf, SessionError> {
    if let Some(folder) = at_hand(&path) {
        return Ok(folder);
    }
    let shown = path.display().to_string();
    let looked = base.runtime.spawn_blocking(move || look(&path)).await.map_err(|_| SessionError::Stopped)?;
    looked.map_err(|error| SessionError::Workspace { path: shown, message: error.to_string() })
}

fn look(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize()? {
        folder if folder.is_dir() => Ok(folder),
        _ => Err(io::Error::other("it is not a folder")),
    }
}

/// The same of a folder that the system knows without asking a disk, if no link leads there: most that are opened have just
/// been used. It never waits, and what it does not say means nothing.
#[cfg(target_os = "linux")]
fn at_hand(path: &Path) -> Option<PathBuf> {
    use std::path::Component;

    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};

    // Of such a path, without links, the real one differs in nothing but `//` and `/./`.
    let plain = path.is_absolute() && path.components().all(|part| part != Component::ParentDir);
    let how = ResolveFlags::CACHED | ResolveFlags::NO_SYMLINKS;
    let opens = || openat2(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty(), how).is_ok();
    (plain && opens()).then(|| path.components().collect())
}

/// Other systems have no such question.
#[cfg(not(target_os = "linux"))]
fn at_hand(_: &Path) -> Option<PathBuf> {
    None
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::{create_dir, write};
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_at_hand_is_what_a_look_says() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().canonicalize().unwrap();
        create_dir(root.join("a")).unwrap();
        create_dir(root.join("a/b")).unwrap();
        write(root.join("file"), "").unwrap();
        symlink(root.join("a"), root.join("link")).unwrap();
        symlink(root.join("nowhere"), root.join("dangling")).unwrap();
        let at = |path: &str| root.join(path);
        for path in [root.clone(), at("a"), at("a/b"), at("a//b/"), at("a/./b"), at("."), PathBuf::from("/")] {
            // Another process that renames something has the system say nothing, now and then.
            let said = (0..1_000).find_map(|_| at_hand(&path));
            assert_eq!(said, Some(look(&path).unwrap()), "{}", path.display());
        }
        for path in ["a/..", "link", "link/b", "dangling", "nowhere", "file", "file/"].map(at) {
            assert_eq!(at_hand(&path), None, "{}", path.display());
        }
        assert_eq!(at_hand(Path::new(".")), None);
        assert_eq!(at_hand(Path::new("")), None);
    }
}
