//! Third-party programs from npm and PyPI, installed once for all tests.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Installs programs into a folder below `target`, which is `CARGO_TARGET_TMPDIR`, and returns it.
/// Other `versions` are installed again. Tests that run at the same time wait for each other. What
/// one user has installed, another one can use.
///
/// # Panics
/// If the folder can't be written, or `install` panics.
#[must_use]
#[expect(clippy::expect_used, reason = "tests report faults by panicking")]
pub fn installed(
    target: &Path,
    name: &str,
    versions: &str,
    install: impl FnOnce(&Path),
) -> PathBuf {
    let folder = target.join(name);
    let done = folder.join("installed");
    let is_done = || fs::read_to_string(&done).is_ok_and(|installed| installed == versions);
    if is_done() {
        return folder;
    }
    fs::create_dir_all(&folder).expect("a folder for the programs");
    let lock = File::create(folder.join("lock")).expect("a lock");
    lock.lock().expect("the lock");
    if !is_done() {
        // Another test must not take the folder for complete meanwhile.
        let _ = fs::remove_file(&done);
        install(&folder);
        fs::write(&done, versions).expect("a mark");
    }
    folder
}

/// Runs a command that installs something.
///
/// # Panics
/// If it fails, with its output.
#[track_caller]
#[expect(clippy::expect_used, reason = "tests report faults by panicking")]
pub fn run_installer(command: &mut Command) {
    let ran = command.output().expect("the program starts");
    assert!(ran.status.success(), "{command:?}: {ran:?}");
}
