//! The folders whose MCP servers the user trusts, each with the content that is trusted.
//!
//! Each folder has a file of its own in the data folder, so that two programs can change different
//! ones at the same time.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use holdpoint_common::Timestamp;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::{FoldersError, record};

/// A folder that the user trusts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrustedFolder {
    /// The absolute path of the folder, without links.
    pub folder: PathBuf,
    /// The content that is trusted: see `holdpoint_common::FolderServers::content`.
    pub content: String,
    /// The time at which the user trusted it.
    pub since: Timestamp,
}

/// The folders that the user trusts. Cheap to clone; every call reads or writes the files.
#[derive(Debug, Clone)]
pub struct TrustStore(PathBuf);

impl TrustStore {
    /// The store in this folder, which need not exist.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// The record of a folder; `None` if it has never been trusted.
    ///
    /// # Errors
    /// [`FoldersError`] if the record can't be read, or another user could have changed it.
    pub fn get(&self, folder: &Path) -> Result<Option<TrustedFolder>, FoldersError> {
        let record = record::read::<TrustedFolder>(&self.path(folder))?;
        // Another folder could only have the same name by a collision of the hash.
        Ok(record.filter(|record| record.folder == folder))
    }

    /// Trusts this content of the folder, in place of an earlier one. The record is complete or is
    /// not there, also after a crash.
    ///
    /// # Errors
    /// [`FoldersError`] if the record can't be written.
    pub fn trust(&self, record: &TrustedFolder) -> Result<(), FoldersError> {
        record::write(&self.path(&record.folder), record)
    }

    /// No longer trusts the folder. Returns whether it was trusted.
    ///
    /// # Errors
    /// [`FoldersError`] if the record can't be removed.
    pub fn remove(&self, folder: &Path) -> Result<bool, FoldersError> {
        record::remove(&self.path(folder))
    }

    /// All folders that the user trusts, by path, and the reasons why records don't count: those that
    /// can't be read, or that another user could have changed.
    ///
    /// # Errors
    /// [`FoldersError`] if the folder with the records can't be read.
    pub fn list(&self) -> Result<(Vec<TrustedFolder>, Vec<FoldersError>), FoldersError> {
        let failed = |error| FoldersError::Io { path: self.0.clone(), error };
        let entries = match std::fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Default::default()),
            entries => entries.map_err(failed)?,
        };
        let (mut folders, mut damaged) = (Vec::new(), Vec::new());
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                match record::read::<TrustedFolder>(&path) {
                    Ok(folder) => folders.extend(folder),
                    Err(error) => damaged.push(error),
                }
            }
        }
        folders.sort_by(|one, other| one.folder.cmp(&other.folder));
        Ok((folders, damaged))
    }

    fn path(&self, folder: &Path) -> PathBuf {
        let hash = blake3::hash(folder.as_os_str().as_encoded_bytes());
        self.0.join(format!("{}.json", hash.to_hex()))
    }
}

/// Reads a file of a folder that may be hostile: not a link, not a pipe, and at most `max` bytes.
/// `None` if there is no such file.
///
/// # Errors
/// The file can't be read, is of another kind, is larger, or is not text.
pub(crate) fn read_untrusted(path: &Path, max: u64) -> io::Result<Option<String>> {
    use std::os::unix::fs::OpenOptionsExt;

    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(_) if path.is_symlink() => return Err(io::Error::other("it is a link")),
        file => file?,
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut text = String::new();
    file.take(max + 1).read_to_string(&mut text)?;
    if text.len() as u64 > max {
        return Err(io::Error::other(format!("it has more than {max} bytes")));
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn record(folder: &str, content: &str) -> TrustedFolder {
        let (folder, content) = (folder.into(), content.to_owned());
        TrustedFolder { folder, content, since: Timestamp(7) }
    }

    #[test]
    fn m_g5_trusted_folders_are_kept_private() {
        let home = tempfile::tempdir().unwrap();
        let store = TrustStore::new(home.path().join("data/trust"));
        assert!(
            matches!(store.list(), Ok((folders, damaged)) if folders.is_empty() && damaged.is_empty())
        );
        assert!(!store.remove(Path::new("/a")).unwrap());
        for record in [record("/b", "1"), record("/a", "2"), record("/a", "3")] {
            store.trust(&record).unwrap();
        }
        let listed = || store.list().map(|(folders, damaged)| (folders, damaged.len())).unwrap();
        assert_eq!(listed(), (vec![record("/a", "3"), record("/b", "1")], 0));
        std::fs::write(store.path(Path::new("/b")), "{").unwrap();
        assert_eq!(listed(), (vec![record("/a", "3")], 1));
        assert_eq!(store.get(Path::new("/a")).unwrap(), Some(record("/a", "3")));
        assert_eq!(
            store.get(Path::new("/a/")).unwrap().map(|found| found.content).as_deref(),
            None
        );
        for entry in std::fs::read_dir(&store.0).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            std::fs::set_permissions(entry.path(), PermissionsExt::from_mode(0o666)).unwrap();
        }
        assert!(matches!(store.get(Path::new("/a")), Err(FoldersError::Exposed(_))));
        assert!(store.remove(Path::new("/a")).unwrap());
        assert_eq!(store.get(Path::new("/a")).unwrap(), None);
    }

    #[test]
    fn m_g5_a_hostile_file_is_not_read() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        std::fs::write(path("file"), "text").unwrap();
        std::os::unix::fs::symlink(path("file"), path("link")).unwrap();
        std::fs::create_dir(path("folder")).unwrap();
        std::fs::write(path("binary"), b"\xff").unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), rustix::fs::Mode::RUSR).unwrap();
        assert_eq!(read_untrusted(&path("file"), 4).unwrap().as_deref(), Some("text"));
        assert_eq!(read_untrusted(&path("none"), 4).unwrap(), None);
        for (name, max) in [("file", 3), ("link", 4), ("folder", 4), ("binary", 4), ("pipe", 4)] {
            assert!(read_untrusted(&path(name), max).is_err(), "{name}");
        }
    }
}
