//! `codex-acp`, against a scripted server of the Responses protocol.

use std::io::{BufRead, BufReader};
use std::process::Command;
use std::time::Instant;

use holdpoint_common::AgentStart;
use holdpoint_tests::model_server::{ModelServer, Reply, Request, responses};
use rustix::process::{Signal, kill_process};
use serde_json::json;

use super::calls::open_asks;
use super::ending::interrupt;
use super::installed;
use super::log_of;
use super::restarting::starts;
use crate::world::{Ran, World, patience, rounds};

/// The settings with which Codex asks its user before it runs a command outside of its own sandbox.
/// Without them, a model reviews these commands. The page about agents has the same lines.
const ASKING: &str = r#"
approval_policy = "on-request"
approvals_reviewer = "user"
default_permissions = "asking"

[permissions.asking]
extends = ":workspace"
"#;

/// A server whose model runs the command in the prompt, after `run: `, outside of the sandbox of
/// Codex, and then is done. While the command runs, it says nothing.
fn server() -> ModelServer {
    let server = ModelServer::start();
    server.answer(|request: &Request| {
        let prompt = responses::prompts(request).pop().unwrap_or_default();
        // The last line is the newest prompt. An agent that can't continue its session gets more.
        let line = prompt.lines().next_back().unwrap_or_default();
        let command = line.strip_prefix("run: ");
        let result = responses::last_result(request);
        let is_running = result.as_ref().is_some_and(|text| text.contains("Process running"));
        match command {
            _ if !has_tools(request) => responses::text(&["A title"]),
            _ if is_running => Reply::silence(),
            Some(command) if result.is_none() => call(request, command),
            _ => responses::text(&["All ", "done."]),
        }
    });
    server
}

/// Whether a request is one of the conversation. The request for a title has no tools.
fn has_tools(request: &Request) -> bool {
    request.body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
}

/// The newest request of the conversation.
fn last_request(server: &ModelServer) -> Request {
    server.requests().into_iter().rfind(has_tools).unwrap()
}

/// The call that runs a command outside of the sandbox of Codex.
fn call(request: &Request, command: &str) -> Reply {
    let arguments = json!({
        "cmd": command, "sandbox_permissions": "require_escalated", "justification": "A test?",
    });
    let calls = responses::results(request).len();
    responses::call(calls, "exec_command", &arguments)
}

/// A world in which Codex uses the server, with these settings.
fn world(server: &ModelServer, settings: &str) -> World {
    let world = World::new();
    world.config("[rules]\nallow = [\"agent(codex)\"]\n");
    let provider = format!(
        "[model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{}\"\n\
         wire_api = \"responses\"\n",
        server.base_url()
    );
    let folder = world.path("home/.codex");
    std::fs::create_dir_all(&folder).unwrap();
    let model = "model = \"scripted\"\nmodel_provider = \"scripted\"\n";
    std::fs::write(folder.join("config.toml"), format!("{model}{settings}{provider}")).unwrap();
    world
}

/// A command of a user who has installed Codex. It may start a daemon, which then finds Codex, too.
fn command(world: &World, args: &[&str]) -> Command {
    let mut command = world.command(args);
    let (bin, path) = (installed::agents(), std::env::var("PATH").unwrap());
    command.env("PATH", format!("{}:{path}", bin.display()));
    command
}

fn run(world: &World, args: &[&str]) -> Ran {
    Ran::of(command(world, args))
}

/// Opens the session `one` with this prompt.
fn open(world: &World, args: &[&str], prompt: &str) {
    let open = ["new", "--agent", "codex", "--name", "one"];
    run(world, &[&open[..], args, &[prompt]].concat()).code(0);
}

/// Prompts the session `one`, and waits for the end of the turn or an ask.
fn prompt(world: &World, text: &str) {
    run(world, &["prompt", "one", text]).code(0);
    world.run(&["wait", "one"]).code(0);
}

/// Answers the only open ask, and waits for the end of the turn.
fn answer(world: &World, verb: &str) {
    let asks = open_asks(world);
    assert_eq!(asks.len(), 1, "{}", log_of(world));
    world.run(&[verb, &asks[0]]).code(0);
    world.run(&["wait", "one", "--for", "idle"]).code(0);
}

/// The living processes of Codex, and of its commands.
fn living(world: &World) -> Vec<String> {
    let parts = ["codex-acp", "app-server", "sleep 1000"];
    let living = world.census.living().into_iter().map(|(_, line)| line);
    living.filter(|line| parts.iter().any(|part| line.contains(part))).collect()
}

#[test]
fn m_h3_codex_without_a_login_says_how_to_log_in() {
    let world = World::new();
    let ran = run(&world, &["run", "--agent", "codex", "--policy", "all", "say A."]).code(1);
    assert!(ran.err.contains("Authentication required"), "{ran:#?}");
    assert!(ran.err.contains("hint: log in with the agent's own program first"), "{ran:#?}");
    assert_eq!(living(&world), [""; 0]);
    let ran = run(&world, &["agents", "--check", "codex"]).code(0);
    assert!(ran.out.contains("codex-acp 2.6.0"), "{ran:#?}");
}

#[test]
fn m_h3_codex_is_approved_denied_and_interrupted() {
    let server = server();
    let world = world(&server, ASKING);
    open(&world, &[], "run: touch made; echo to-see");
    world.run(&["wait", "one"]).code(0);
    let inbox = world.run(&["inbox", "--json"]).code(0);
    assert!(inbox.out.contains("touch made; echo to-see"), "{inbox:#?}");
    assert!(!world.work("made").exists());
    answer(&world, "approve");
    let log = log_of(&world);
    assert!(world.work("made").exists(), "{log}");
    assert!(log.contains("  │ to-see") && log.contains("All done."), "{log}");

    // Codex ends its turn after a denial, and knows of it in the next one.
    prompt(&world, "run: touch other");
    answer(&world, "deny");
    let log = log_of(&world);
    assert!(!world.work("other").exists() && !log.contains("the agent failed"), "{log}");
    prompt(&world, "say Again.");
    let results = responses::results(&last_request(&server));
    assert!(results.last().unwrap().contains("aborted by user"), "{results:?}");

    prompt(&world, "run: touch third");
    assert_eq!(open_asks(&world).len(), 1, "{}", log_of(&world));
    let receipt = interrupt(&world);
    assert!(receipt.processes.not_ended.is_empty(), "{receipt:?}");
    assert_eq!(living(&world), [""; 0]);

    // It is started again, and knows the conversation.
    prompt(&world, "run: touch fourth");
    answer(&world, "approve");
    let log = log_of(&world);
    assert!(world.work("fourth").exists() && !world.work("third").exists(), "{log}");
    let hows: Vec<_> = starts(&world).into_iter().map(|(_, how)| how).collect();
    assert_eq!(hows, [AgentStart::New, AgentStart::Resumed], "{log}");
    let prompts = responses::prompts(&last_request(&server));
    assert!(prompts.iter().any(|prompt| prompt.contains("touch made")), "{prompts:?}");
    world.run(&["close", "one"]).code(0);
    assert_eq!(living(&world), [""; 0]);
    server.assert_no_violations();
}

#[test]
fn m_h3_an_interrupt_ends_a_command_of_codex() {
    let server = server();
    let world = world(&server, ASKING);
    open(&world, &["--policy", "all"], "run: touch begun; sleep 1000");
    let by = Instant::now() + patience();
    let is_command = |line: &String| line.contains("sleep 1000");
    while !world.work("begun").exists() || !living(&world).iter().any(is_command) {
        assert!(Instant::now() < by, "{}", log_of(&world));
    }
    let receipt = interrupt(&world);
    assert!(receipt.processes.terminated + receipt.processes.killed > 0, "{receipt:?}");
    assert!(receipt.processes.not_ended.is_empty(), "{receipt:?}");
    assert_eq!(living(&world), [""; 0]);
    world.run(&["close", "one"]).code(0);
}

#[test]
fn m_h3_codex_continues_its_session_after_a_killed_daemon() {
    for round in 0..rounds(2, 20) {
        let server = server();
        let world = world(&server, ASKING);
        let script = "run: touch made; sleep 1000";
        // In every second round, Codex has a session with an answer.
        let before = match round % 2 {
            0 => {
                open(&world, &["--policy", "all"], script);
                0
            }
            _ => {
                open(&world, &["--policy", "all"], "say First.");
                world.run(&["wait", "one", "--for", "idle"]).code(0);
                let events = world.run(&["logs", "--json", "one"]).code(0).events();
                run(&world, &["prompt", "one", script]).code(0);
                events.len()
            }
        };
        // The start of the agent is a moment, too: before its first event.
        let moment = before + fastrand::usize(0..6);
        let mut logs = command(&world, &["logs", "-f", "--json", "one"]).spawn().unwrap();
        let lines = BufReader::new(logs.stdout.take().unwrap()).lines();
        assert_eq!(lines.take(moment).count(), moment, "the turn does not end by itself");
        kill_process(world.daemon().unwrap(), Signal::KILL).unwrap();
        logs.wait().unwrap();
        let by = Instant::now() + patience();
        while let living = living(&world)
            && !living.is_empty()
        {
            assert!(Instant::now() < by, "round {round}, moment {moment}: {living:?}");
        }

        run(&world, &["wait", "one", "--for", "idle"]).code(0);
        prompt(&world, "say Continued.");
        let log = log_of(&world);
        assert!(log.contains("All done."), "round {round}, moment {moment}: {log}");
        // Codex continues its session, or the transcript says that it has another one.
        let starts = starts(&world);
        let (own, _) = &starts[0];
        let is_own = starts.iter().all(|(session, _)| session == own);
        let is_shown = log.contains("it got the conversation so far as text");
        assert!(is_own || is_shown, "round {round}, moment {moment}: {starts:?} {log}");
        world.run(&["close", "one"]).code(0);
        assert_eq!(living(&world), [""; 0], "round {round}, moment {moment}");
    }
}

/// The page about agents says so.
#[test]
fn m_h3_codex_does_not_ask_unless_its_settings_say_so() {
    let server = server();
    let world = world(&server, "");
    open(&world, &[], "run: touch made");
    world.run(&["wait", "one"]).code(0);
    let log = log_of(&world);
    assert!(open_asks(&world).is_empty() && !world.work("made").exists(), "{log}");
    assert!(log.contains("Guardian Review") && log.contains("All done."), "{log}");
}
