//! Installs the servers of others, in the versions that `tests/mcp` names.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder with the lists of packages, and with our own servers.
pub(super) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp")
}

/// The file of a server that npm installs.
pub(super) fn npm(path: &str) -> String {
    let installed = installed("npm", &["package.json", "package-lock.json"], |target| {
        for list in ["package.json", "package-lock.json"] {
            fs::copy(folder().join(list), target.join(list)).unwrap();
        }
        let options = ["ci", "--ignore-scripts", "--silent", "--no-audit", "--no-fund"];
        run(Command::new("npm").args(options).current_dir(target));
    });
    installed.join("node_modules/@modelcontextprotocol").join(path).to_str().unwrap().to_owned()
}

/// A Python with the packages that the tests need.
pub(super) fn python() -> String {
    let installed = installed("python", &["requirements.txt"], |target| {
        run(Command::new("python3").args(["-m", "venv", "venv"]).current_dir(target));
        let list = folder().join("requirements.txt");
        run(Command::new(target.join("venv/bin/pip")).args(["install", "-q", "-r"]).arg(list));
    });
    installed.join("venv/bin/python").to_str().unwrap().to_owned()
}

/// The folder where packages are installed. A change of a list installs them again. Tests that run
/// at the same time wait for each other.
fn installed(kind: &str, lists: &[&str], install: impl FnOnce(&Path)) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp").join(kind);
    fs::create_dir_all(&target).unwrap();
    let lock = File::create(target.join("lock")).unwrap();
    lock.lock().unwrap();
    let wanted: Vec<u8> =
        lists.iter().flat_map(|list| fs::read(folder().join(list)).unwrap()).collect();
    let done = target.join("done");
    if fs::read(&done).ok().as_ref() != Some(&wanted) {
        install(&target);
        fs::write(done, wanted).unwrap();
    }
    target
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
