//! Third-party agents in the sandbox of their session, by their names. They get their needs, and no
//! more.

use std::fs;
use std::path::Path;

use holdpoint_tests::model_server::ModelServer;

use super::calls::open_asks;
use super::installed;
use super::log_of;
use super::others::{gemini_server, opencode_settings, server};
use crate::world::{Ran, World};

/// A command that also tries what the sandbox does not allow. Agents do not read the inner script.
const PROMPT: &str = "run: touch made; sh -c 'touch ~/outside; ls $XDG_DATA_HOME/holdpoint'";

/// A world with mounts in its sandbox, in a folder that no other one replaces there. `None` if no
/// sandbox can have mounts here.
fn world(config: &str) -> Option<World> {
    let world = World::within(Path::new("/var/tmp"));
    world.config(&format!("{config}\n[sandbox]\nlevel = \"bwrap\"\n"));
    let ran = world.run(&["run", "--model", "rehearsal", "--policy", "all", "shell: echo works"]);
    if ran.code == Some(1) && ran.err.contains("does not work here") {
        println!("skipped: {}", ran.err);
        return None;
    }
    assert!(ran.err.contains("works"), "{ran:#?}");
    Some(world)
}

/// Runs a command of a user who has installed the agents, and has these variables.
fn run(world: &World, variables: &[(&str, &str)], args: &[&str]) -> Ran {
    let mut command = world.command(args);
    let opencode = installed::opencode();
    let bins = [installed::agents(), opencode.parent().unwrap().to_owned()];
    let bins = bins.map(|bin| bin.display().to_string()).join(":");
    command.env("PATH", format!("{bins}:{}", std::env::var("PATH").unwrap()));
    command.envs(variables.iter().copied());
    Ran::of(command)
}

/// Approves the only open ask of the session `one`, and checks that its text contains these parts.
fn approve(world: &World, server: &ModelServer, parts: &[&str]) {
    world.run(&["wait", "one"]).code(0);
    let inbox = world.run(&["inbox", "--json"]).code(0).out;
    let asks = open_asks(world);
    assert_eq!(asks.len(), 1, "{} {:?}", log_of(world), server.violations());
    for part in parts {
        assert!(inbox.contains(part), "{part}: {inbox}");
    }
    world.run(&["approve", &asks[0]]).code(0);
}

/// Its server is on this machine, which the proxy of the sandbox reaches by a rule with the port.
#[test]
fn m_h3_gemini_works_in_the_sandbox_with_its_own_needs() {
    let server = gemini_server();
    let port = server.address().port();
    let Some(world) = world(&format!("[web]\nallow = [\"localhost:{port}\"]")) else { return };
    let url = format!("http://localhost:{port}");
    let variables = [("GEMINI_API_KEY", "none"), ("GOOGLE_GEMINI_BASE_URL", &*url)];
    let open = ["new", "--agent", "gemini", "--model", "gemini-2.5-pro", "--name", "one", PROMPT];
    run(&world, &variables, &open).code(0);
    approve(&world, &server, &["its server is localhost", "/.gemini"]);
    approve(&world, &server, &["touch made"]);
    world.run(&["wait", "one", "--for", "idle"]).code(0);
    let log = log_of(&world);
    assert!(world.work("made").exists() && log.contains("All done."), "{log}");
    // Its own folder is the only further one.
    assert!(fs::read_dir(world.path("home/.gemini")).unwrap().count() > 0);
    assert!(!world.path("home/outside").exists() && !log.contains("daemon.lock"), "{log}");
    world.run(&["close", "one"]).code(0);
}

/// Its server is one of another provider, which it reaches because the configuration allows the
/// network.
#[test]
fn m_h3_opencode_works_in_the_sandbox_with_its_own_needs() {
    let server = server();
    let Some(world) = world("") else { return };
    world.config("[sandbox]\nlevel = \"bwrap\"\nnetwork = true\n");
    opencode_settings(&world, &server);
    run(&world, &[], &["new", "--agent", "opencode", "--name", "one", PROMPT]).code(0);
    approve(&world, &server, &["/opencode"]);
    approve(&world, &server, &["touch made"]);
    world.run(&["wait", "one", "--for", "idle"]).code(0);
    let log = log_of(&world);
    assert!(world.work("made").exists() && log.contains("All done."), "{log}");
    assert!(fs::read_dir(world.path("data/opencode")).unwrap().count() > 0);
    assert!(!world.path("home/outside").exists() && !log.contains("daemon.lock"), "{log}");
    world.run(&["close", "one"]).code(0);
}
