//! Installs the Python SDK of the protocol, and third-party agents, once for all tests.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FlockOperation, flock};

/// The Python SDK of the protocol.
const SDK: &str = "agent-client-protocol==0.12.1";

/// OpenCode, from npm.
const OPENCODE: &str = "opencode-ai@1.18.33";

/// The program of OpenCode.
pub(super) fn opencode() -> PathBuf {
    let folder = installed("agent-opencode", OPENCODE, |folder| {
        run(Command::new("npm")
            .args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
            .arg(folder)
            .arg(OPENCODE));
    });
    folder.join("node_modules/.bin/opencode")
}

/// A Python with the SDK.
pub(super) fn python() -> PathBuf {
    let folder = installed("agent-sdk", SDK, |folder| {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder.join("venv")));
        run(Command::new(folder.join("venv/bin/pip")).args(["install", "--quiet", SDK]));
    });
    folder.join("venv/bin/python")
}

/// The folder where packages are installed. Another version installs them again. Tests that run at
/// the same time wait for each other.
fn installed(name: &str, versions: &str, install: impl FnOnce(&Path)) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    let lock = File::create(folder.join("lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let done = folder.join("installed");
    if fs::read_to_string(&done).is_ok_and(|installed| installed == versions) {
        return folder;
    }
    install(&folder);
    fs::write(done, versions).unwrap();
    folder
}

#[track_caller]
fn run(command: &mut Command) {
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{command:?}: {ran:?}");
}
