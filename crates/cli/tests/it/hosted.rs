//! End-to-end tests of hosted agents: agents of the protocol as the model and the tools of sessions.

mod calls;
mod ending;
mod installed;
mod misbehaving;
mod others;
mod restarting;

use std::path::Path;

use crate::world::World;

/// The command of the scripted agent, with these arguments.
fn scripted(world: &World, args: &str) -> String {
    // A program in a sandbox may not see the folder of this test.
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/hosted/agent.py");
    std::fs::copy(script, world.path("home/agent.py")).unwrap();
    let (python, script) = (installed::python(), world.path("home/agent.py"));
    format!("'{}' '{}' {args}", python.display(), script.display())
}
