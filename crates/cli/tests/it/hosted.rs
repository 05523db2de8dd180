//! End-to-end tests of hosted agents: agents of the protocol as the model and the tools of sessions.

mod calls;
mod clients;
mod codex;
mod ending;
mod files;
mod holds;
mod inbox;
mod installed;
mod killed;
mod known;
mod misbehaving;
mod models;
mod others;
mod own_folders;
mod restarting;
mod restrained;
mod sandboxed;
mod served;
mod terminals;

use std::path::Path;

use crate::world::World;

/// The command of the scripted agent, with these arguments. It may start without a sandbox.
fn scripted(world: &World, args: &str) -> String {
    world.config("[rules]\nallow = [\"agent(python)\"]\n");
    // A program in a sandbox may not see the folder of this test.
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/hosted/agent.py");
    std::fs::copy(script, world.path("home/agent.py")).unwrap();
    let (python, script) = (installed::python(), world.path("home/agent.py"));
    format!("'{}' '{}' {args}", python.display(), script.display())
}

/// The command of the agent that needs only Python. Its script is in the workspace, which is also
/// visible in a sandbox. It may start without one.
pub(crate) fn plain(world: &World) -> String {
    world.config("[rules]\nallow = [\"agent(python3)\"]\n");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/hosted/plain.py");
    std::fs::copy(script, world.work("plain.py")).unwrap();
    "python3 plain.py".to_owned()
}

/// The transcript of the session `one`.
fn log_of(world: &World) -> String {
    world.run(&["logs", "one"]).code(0).out
}

/// Prompts the session `one`, waits for the end of the turn or an ask, and returns the transcript.
fn prompt(world: &World, script: &str) -> String {
    world.run(&["prompt", "one", script]).code(0);
    world.run(&["wait", "one"]).code(0);
    log_of(world)
}
