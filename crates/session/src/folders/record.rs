//! Small private files with one record each. A record is complete or is not there, also after a crash.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::private::{make, open};
use super::{FoldersError, check_file};

/// Maximum size of a record in bytes. The content of the largest trusted file fits with all its
/// escapes.
const MAX_RECORD: u64 = 8 * 1024 * 1024;

/// Writes a record in place of an earlier one, and creates its folder.
///
/// # Errors
/// [`FoldersError`] if the record can't be written.
pub(super) fn write(path: &Path, record: &impl Serialize) -> Result<(), FoldersError> {
    path.parent().map_or(Ok(()), make)?;
    let draft = path.with_extension(format!("{}.draft", std::process::id()));
    let failed = |error| FoldersError::Io { path: path.to_owned(), error };
    let mut file = open(&draft, OpenOptions::new().write(true))?;
    let json = serde_json::to_vec(record).map_err(|error| failed(error.into()))?;
    let written = file
        .set_len(0)
        .and_then(|()| file.write_all(&json))
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&draft, path));
    written.map_err(|error| {
        // The draft is not a record, so it does no harm if it stays.
        let _ = std::fs::remove_file(&draft);
        failed(error)
    })
}

/// Reads a record; `None` if there is none.
///
/// # Errors
/// [`FoldersError`] if the record can't be read, or another user could have changed it.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, FoldersError> {
    check_file(path)?;
    let failed = |error| FoldersError::Io { path: path.to_owned(), error };
    let mut text = String::new();
    match OpenOptions::new().read(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(failed)?.take(MAX_RECORD).read_to_string(&mut text).map_err(failed)?,
    };
    serde_json::from_str(&text).map(Some).map_err(|error| failed(error.into()))
}

/// Removes a record. Returns whether there was one.
///
/// # Errors
/// [`FoldersError`] if the record can't be removed.
pub(super) fn remove(path: &Path) -> Result<bool, FoldersError> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(FoldersError::Io { path: path.to_owned(), error }),
    }
}
