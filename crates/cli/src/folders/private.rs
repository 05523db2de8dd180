//! Folders that nobody but their user gets into.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

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
    let found = folder.metadata().map_err(failed)?;
    if found.uid() != geteuid().as_raw() {
        let what = format!("{shown} belongs to somebody else (uid {})", found.uid());
        return Err(CliError::usage(what).hint("name another place by --state-dir"));
    }
    let mode = found.mode() & 0o777;
    if mode & 0o077 != 0 {
        let what = format!("others get into {shown} (mode {mode:04o})");
        return Err(CliError::usage(what).hint(format!("look at what is in it, then: chmod 700 {shown}")));
    }
    Ok(())
}
