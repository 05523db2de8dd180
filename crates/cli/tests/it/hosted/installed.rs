//! Installs the Python SDK of the protocol, and third-party agents, once for all tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use holdpoint_tools::testing::run_installer;

/// The Python SDK of the protocol.
const SDK: &str = "agent-client-protocol==0.12.1";

/// OpenCode, from npm. Its lock file would need packages for systems that a registry may not have.
const OPENCODE: &str = "opencode-ai@1.18.33";

/// The program of OpenCode.
pub(super) fn opencode() -> PathBuf {
    let folder = installed("agent-opencode", OPENCODE, |folder| {
        run_installer(
            Command::new("npm")
                .args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
                .arg(folder)
                .arg(OPENCODE),
        );
    });
    folder.join("node_modules/.bin/opencode")
}

/// The packages of other third-party agents, from npm.
const AGENTS: [(&str, &str); 2] = [
    ("package.json", include_str!("agents/package.json")),
    ("package-lock.json", include_str!("agents/package-lock.json")),
];

/// The folder with the programs `gemini` and `codex-acp`.
pub(super) fn agents() -> PathBuf {
    let versions = AGENTS.map(|(_, text)| text).concat();
    let folder = installed("agents", &versions, |folder| {
        for (name, text) in AGENTS {
            fs::write(folder.join(name), text).unwrap();
        }
        let options = ["ci", "--silent", "--no-audit", "--no-fund", "--prefix"];
        run_installer(Command::new("npm").args(options).arg(folder));
    });
    folder.join("node_modules/.bin")
}

/// A Python with the SDK.
pub(super) fn python() -> PathBuf {
    let folder = installed("agent-sdk", SDK, |folder| {
        run_installer(
            Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder.join("venv")),
        );
        run_installer(Command::new(folder.join("venv/bin/pip")).args(["install", "--quiet", SDK]));
    });
    folder.join("venv/bin/python")
}

/// The folder where packages of these versions are installed.
fn installed(name: &str, versions: &str, install: impl FnOnce(&Path)) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    holdpoint_tools::testing::installed(target, name, versions, install)
}
