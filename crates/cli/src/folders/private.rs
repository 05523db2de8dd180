//! Folders and files that nobody but their user gets at.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::process::geteuid;

use crate::error::CliError;

/// Makes the folder with mode 0700 if it is not there, and what is above it where that is missing.
///
/// # Errors
/// It can't be made; or it is there and somebody else's, or others get into it: then it is left as it is, for who
/// opened it may have meant it, and who came in may be in it still.
pub(super) fn make(folder: &Path) -> Result<(), CliError> {
    let shown = folder.display();
    let failed = |error| CliError::failed(format!("{shown}: {error}"));
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    check(folder, &folder.metadata().map_err(failed)?, 0o700)
}

/// Opens a file of ours as `how` says, and makes it with mode 0600 if it is not there.
///
/// # Errors
/// It can't be opened; or it is a link, or somebody else's, or others get at it: then it is left as it is.
pub(crate) fn open(path: &Path, how: &mut OpenOptions) -> Result<File, CliError> {
    let shown = path.display();
    let failed = |error: io::Error| match error.raw_os_error() {
        Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => {
            CliError::usage(format!("{shown} is a link")).hint("it is left as it is: look at it, and move it away")
        }
        _ => CliError::failed(format!("{shown}: {error}")),
    };
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let file = how.create(true).truncate(false).mode(0o600).custom_flags(flags).open(path).map_err(failed)?;
    check(path, &file.metadata().map_err(failed)?, 0o600)?;
    Ok(file)
}

/// Refuses a file of ours that is there, if it is somebody else's, or others get at it.
///
/// # Errors
/// See above; or it can't be looked at.
pub(crate) fn check_file(path: &Path) -> Result<(), CliError> {
    match path.metadata() {
        Ok(found) if found.is_file() => check(path, &found, 0o600),
        // What is in its place is told when it is opened.
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(CliError::failed(format!("{}: {error}", path.display()))),
    }
}

/// Whether it is this user's alone; else `mode` is what it should have.
fn check(path: &Path, found: &Metadata, mode: u32) -> Result<(), CliError> {
    let shown = path.display();
    if found.uid() != geteuid().as_raw() {
        let what = format!("{shown} belongs to somebody else (uid {})", found.uid());
        return Err(CliError::usage(what).hint("name another place by --state-dir"));
    }
    let has = found.mode() & 0o777;
    if has & 0o077 != 0 {
        let (what, look) = if found.is_dir() { ("into", "look at what is in it") } else { ("at", "look at it") };
        let what = format!("others get {what} {shown} (mode {has:04o})");
        return Err(CliError::usage(what).hint(format!("{look}, then: chmod {mode:o} {shown}")));
    }
    Ok(())
}
