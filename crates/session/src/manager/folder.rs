//! The folder that a session works in, as an absolute path without links.

use std::io;
use std::path::{Path, PathBuf};

use holdpoint_common::SessionError;

use crate::session_env::EngineEnv;

/// Resolves the path of a folder. Disks can be slow, so a blocking thread does it, unless the
/// kernel has the path in its cache.
///
/// # Errors
/// There is no such folder, or it can't be reached.
pub(super) async fn resolve_folder(
    engine: &EngineEnv,
    path: PathBuf,
) -> Result<PathBuf, SessionError> {
    if let Some(folder) = cached_path(&path) {
        return Ok(folder);
    }
    let shown = path.display().to_string();
    let resolved = engine
        .runtime
        .spawn_blocking(move || canonical_folder(&path))
        .await
        .map_err(|_| SessionError::Stopped)?;
    resolved.map_err(|error| SessionError::Workspace { path: shown, message: error.to_string() })
}

fn canonical_folder(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize()? {
        folder if folder.is_dir() => Ok(folder),
        _ => Err(io::Error::other("it is not a folder")),
    }
}

/// Resolves a path that the kernel has in its cache, if no link is part of it. Most folders that
/// are opened have just been used. Never blocks; `None` does not mean that the folder is missing.
#[cfg(target_os = "linux")]
fn cached_path(path: &Path) -> Option<PathBuf> {
    use std::path::Component;

    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};

    // Without links, the real path differs only in `//` and `/./`.
    let is_plain = path.is_absolute() && path.components().all(|part| part != Component::ParentDir);
    let how = ResolveFlags::CACHED | ResolveFlags::NO_SYMLINKS;
    let is_cached = || {
        openat2(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty(), how)
            .is_ok()
    };
    (is_plain && is_cached()).then(|| path.components().collect())
}

/// Other systems have no such lookup.
#[cfg(not(target_os = "linux"))]
fn cached_path(_: &Path) -> Option<PathBuf> {
    None
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::{create_dir, write};
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_cached_path_equals_the_resolved_path() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().canonicalize().unwrap();
        create_dir(root.join("a")).unwrap();
        create_dir(root.join("a/b")).unwrap();
        write(root.join("file"), "").unwrap();
        symlink(root.join("a"), root.join("link")).unwrap();
        symlink(root.join("nowhere"), root.join("dangling")).unwrap();
        let at = |path: &str| root.join(path);
        for path in [
            root.clone(),
            at("a"),
            at("a/b"),
            at("a//b/"),
            at("a/./b"),
            at("."),
            PathBuf::from("/"),
        ] {
            // When another process renames a file, the kernel sometimes returns no answer.
            let cached = (0..1_000).find_map(|_| cached_path(&path));
            assert_eq!(cached, Some(canonical_folder(&path).unwrap()), "{}", path.display());
        }
        for path in ["a/..", "link", "link/b", "dangling", "nowhere", "file", "file/"].map(at) {
            assert_eq!(cached_path(&path), None, "{}", path.display());
        }
        assert_eq!(cached_path(Path::new(".")), None);
        assert_eq!(cached_path(Path::new("")), None);
    }
}
