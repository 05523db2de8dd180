//! Third-party agents, against the scripted model server.

use std::io::{BufRead, BufReader};
use std::time::Instant;

use holdpoint_common::{AgentStart, Fact, TurnFact};
use holdpoint_tests::model_server::{ModelServer, Reply, Request};
use rustix::process::{Signal, kill_process};
use serde_json::json;

use super::calls::open_asks;
use super::installed;
use super::log_of;
use super::restarting::starts;
use crate::world::{Ran, World, patience, rounds};

/// The newest instruction in a prompt. Agents add text of their own, and one that can't continue its
/// session gets earlier prompts, too.
fn instruction(prompt: &str) -> &str {
    let starts = ["run: ", "call: ", "say "].iter().filter_map(|word| prompt.rfind(word));
    starts.max().and_then(|start| prompt[start..].lines().next()).unwrap_or_default()
}

/// A server with a model that runs the command in the prompt, after `run: `, and then is done.
pub(super) fn server() -> ModelServer {
    let server = ModelServer::start();
    server.answer(|request: &Request| {
        let messages = request.body["messages"].as_array().unwrap();
        let is_result = messages.last().is_some_and(|message| message["role"] == "tool");
        let prompt = request.texts("user").pop().unwrap_or_default();
        match instruction(&prompt).strip_prefix("run: ") {
            // A request for a title has no tools.
            _ if request.body["tools"].as_array().is_none_or(Vec::is_empty) => {
                Reply::text(["A title"])
            }
            Some(command) if !is_result => {
                let arguments = json!({ "command": command, "description": "A test" });
                // The ids of calls have the index, and must differ in a conversation.
                let calls = messages.iter().filter(|message| message["tool_calls"].is_array());
                let call = Reply::stream().call(calls.count(), "bash", &arguments.to_string());
                call.finish("tool_calls")
            }
            _ => Reply::text(["All ", "done."]),
        }
    });
    server
}

/// Configures OpenCode to use the server, and to ask before it runs a command. It may start.
fn configure(world: &World, server: &ModelServer) {
    world.config("[rules]\nallow = [\"agent(opencode)\"]\n");
    opencode_settings(world, server);
}

/// Writes the settings with which OpenCode uses the server, and asks before it runs a command.
pub(super) fn opencode_settings(world: &World, server: &ModelServer) {
    let config = json!({
        "provider": { "scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "options": { "baseURL": server.base_url(), "apiKey": "none" },
            "models": { "m": { "name": "m" } },
        } },
        "model": "scripted/m",
        "small_model": "scripted/m",
        "permission": { "bash": "ask" },
        "autoupdate": false,
        "share": "disabled",
    });
    let folder = world.path("config/opencode");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("opencode.json"), config.to_string()).unwrap();
}

#[test]
fn m_h3_opencode_is_approved_denied_and_interrupted() {
    let (world, server) = (World::new(), server());
    configure(&world, &server);
    let agent = format!("'{}' acp", installed::opencode().display());
    let open = ["new", "--agent", &agent, "--name", "one", "run: touch made; echo to-see"];
    world.run(&open).code(0);
    world.run(&["wait", "one"]).code(0);
    let inbox = world.run(&["inbox", "--json"]).code(0);
    assert!(inbox.out.contains("touch made; echo to-see"), "{inbox:#?}");
    assert!(!world.work("made").exists());
    world.run(&["approve", &open_asks(&world)[0]]).code(0);
    world.run(&["wait", "one"]).code(0);
    let log = world.run(&["logs", "one"]).code(0).out;
    assert!(world.work("made").exists(), "{log}");
    assert!(log.contains("  │ to-see") && log.contains("All done."), "{log}");

    world.run(&["prompt", "one", "run: touch other"]).code(0);
    world.run(&["wait", "one"]).code(0);
    world.run(&["deny", &open_asks(&world)[0]]).code(0);
    world.run(&["wait", "one"]).code(0);
    assert!(!world.work("other").exists());
    let log = world.run(&["logs", "one"]).code(0).out;
    assert!(log.contains("rejected permission"), "{log}");

    world.run(&["prompt", "one", "run: touch third"]).code(0);
    world.run(&["wait", "one"]).code(0);
    let ran = world.run(&["interrupt", "one"]).code(0);
    assert!(ran.out.contains("Agent interrupted"), "{ran:#?}");
    let opencode = |line: &str| line.contains("opencode");
    let living = world.census.living();
    assert!(!living.iter().any(|(_, line)| opencode(line) && line.contains(" acp")), "{living:?}");

    // It is started again, and knows the conversation.
    world.run(&["prompt", "one", "run: touch fourth"]).code(0);
    world.run(&["wait", "one"]).code(0);
    world.run(&["approve", &open_asks(&world)[0]]).code(0);
    world.run(&["wait", "one"]).code(0);
    assert!(world.work("fourth").exists() && !world.work("third").exists());
    let events = world.run(&["logs", "--json", "one"]).code(0).events();
    let hows: Vec<_> = events
        .iter()
        .filter_map(|event| match event.fact() {
            Some(Fact::Turn(TurnFact::AgentStarted { how, .. })) => Some(*how),
            _ => None,
        })
        .collect();
    assert!(
        matches!(hows[..], [AgentStart::New, AgentStart::Resumed | AgentStart::Loaded]),
        "{hows:?}"
    );
    let last = server.requests().pop().unwrap();
    assert!(last.texts("user").iter().any(|text| text.contains("touch made")), "{last:?}");
    world.run(&["close", "one"]).code(0);
    let living = world.census.living();
    assert!(!living.iter().any(|(_, line)| opencode(line)), "{living:?}");
}

/// A server whose model, over Gemini's protocol, runs the command in the prompt, or calls the tool
/// after `call: `, and then is done.
pub(super) fn gemini_server() -> ModelServer {
    let server = ModelServer::start();
    server.answer(|request: &Request| {
        let contents = request.body["contents"].as_array().unwrap();
        let last = contents.last().unwrap().to_string();
        let prompt = request.prompt().unwrap_or_default();
        let line = instruction(&prompt);
        let call = line.strip_prefix("call: ").and_then(|call| call.split_once(' '));
        match (line.strip_prefix("run: "), call) {
            _ if last.contains("functionResponse") => Reply::text(["All ", "done."]),
            (_, Some((tool, arguments))) => {
                Reply::stream().call(0, tool, arguments).finish("tool_calls")
            }
            (Some(command), _) => {
                let arguments = json!({ "command": command, "description": "A test" });
                let call = Reply::stream().call(0, "run_shell_command", &arguments.to_string());
                call.finish("tool_calls")
            }
            _ => Reply::text(["All ", "done."]),
        }
    });
    server
}

/// Runs a command of a user who has installed the agents, and has a key for Gemini.
pub(super) fn run(world: &World, server: &ModelServer, args: &[&str]) -> Ran {
    let mut command = world.command(args);
    let (bin, path) = (installed::agents(), std::env::var("PATH").unwrap());
    command.env("PATH", format!("{}:{path}", bin.display()));
    command.env("GEMINI_API_KEY", "none");
    let base_url = server.base_url();
    command.env("GOOGLE_GEMINI_BASE_URL", base_url.trim_end_matches("/v1"));
    Ran::of(command)
}

#[test]
fn m_h3_gemini_is_approved_denied_and_interrupted() {
    let (world, server) = (World::new(), gemini_server());
    world.config("[rules]\nallow = [\"agent(gemini)\"]\n");
    let open = ["new", "--agent", "gemini", "--model", "gemini-2.5-pro", "--name", "one"];
    run(&world, &server, &[&open[..], &["run: touch made"]].concat()).code(0);
    world.run(&["wait", "one"]).code(0);
    let inbox = world.run(&["inbox", "--json"]).code(0);
    assert!(inbox.out.contains("touch made"), "{inbox:#?} {:?}", server.violations());
    assert!(!world.work("made").exists());
    world.run(&["approve", &open_asks(&world)[0]]).code(0);
    world.run(&["wait", "one"]).code(0);
    let log = world.run(&["logs", "one"]).code(0).out;
    assert!(world.work("made").exists() && log.contains("All done."), "{log}");

    world.run(&["prompt", "one", "run: touch other"]).code(0);
    world.run(&["wait", "one"]).code(0);
    world.run(&["deny", &open_asks(&world)[0]]).code(0);
    world.run(&["wait", "one", "--for", "idle"]).code(0);
    assert!(!world.work("other").exists());

    world.run(&["prompt", "one", "run: touch third"]).code(0);
    world.run(&["wait", "one"]).code(0);
    let ran = world.run(&["interrupt", "one"]).code(0);
    assert!(ran.out.contains("Agent interrupted"), "{ran:#?}");
    let is_gemini = |line: &str| line.contains("gemini") && line.contains("--acp");
    let living = world.census.living();
    assert!(!living.iter().any(|(_, line)| is_gemini(line)), "{living:?}");

    // It is started again, with the same model.
    run(&world, &server, &["prompt", "one", "run: touch fourth"]).code(0);
    world.run(&["wait", "one"]).code(0);
    let log = world.run(&["logs", "one"]).code(0).out;
    assert!(log.contains("the agent was started again, and "), "{log}");
    // The session says so if the server refuses each later prompt. Another one is not affected.
    let is_refused = server.violations().iter().any(|why| why.contains(KNOWN_VIOLATION));
    let session = if is_refused { "two" } else { "one" };
    if is_refused {
        assert!(log.contains("failed: the agent failed: gemini: it reported: "), "{log}");
        world.run(&["close", "one"]).code(0);
        let open = ["new", "--agent", "gemini", "--model", "gemini-2.5-pro", "--name", session];
        run(&world, &server, &[&open[..], &["run: touch fourth"]].concat()).code(0);
        world.run(&["wait", session]).code(0);
    }
    assert_eq!(open_asks(&world).len(), 1, "{log} {:?}", server.violations());
    world.run(&["approve", &open_asks(&world)[0]]).code(0);
    world.run(&["wait", session]).code(0);
    assert!(world.work("fourth").exists() && !world.work("third").exists());
    assert!(server.requests().iter().all(|request| request.path.contains("gemini-2.5-pro")));
    world.run(&["close", session]).code(0);
    let living = world.census.living();
    assert!(!living.iter().any(|(_, line)| is_gemini(line)), "{living:?}");
}

/// Gemini saves the result of a call also as a message of the user. Unless it has merged both by
/// then, the conversation that it loads has the result twice. A strict server refuses that for this
/// reason.
const KNOWN_VIOLATION: &str = "which was not called";

/// Gemini asks for permission with the diff, and then requests its client to write the file.
#[test]
fn m_h3_gemini_reads_and_writes_files_with_the_tools_of_the_session() {
    let (world, server) = (World::new(), gemini_server());
    world.config("[rules]\nallow = [\"agent(gemini)\"]\n");
    let path = world.path("work").canonicalize().unwrap().join("a.txt");
    std::fs::write(&path, "the old text\n").unwrap();
    let open = ["new", "--agent", "gemini", "--model", "gemini-2.5-pro", "--name", "one"];
    let arguments = json!({ "file_path": path, "content": "the new text\n" });
    let call = format!("call: write_file {arguments}");
    run(&world, &server, &[&open[..], &[&call]].concat()).code(0);
    world.run(&["wait", "one"]).code(0);
    let inbox = world.run(&["inbox", "--json"]).code(0).out;
    assert!(inbox.contains("+the new text"), "{inbox} {:?}", server.violations());
    // Its own request, and the change that our tool makes.
    for _ in 0..2 {
        world.run(&["approve", &open_asks(&world)[0]]).code(0);
        world.run(&["wait", "one"]).code(0);
    }
    let log = world.run(&["logs", "one"]).code(0).out;
    // It reads the old text first.
    assert!(log.contains("● read_file") && log.contains("the old text"), "{log}");
    assert!(log.contains("● write_file") && log.contains("wrote a.txt"), "{log}");
    assert_eq!(open_asks(&world).len(), 0, "{log}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "the new text\n");
}

/// The events of an endless turn up to its command, at least. The next moment is the running command.
const EVENTS: usize = 5;

/// Kills the daemon at a random moment of a turn of the session `one`, which has begun after
/// `before` events. Its command makes the file `made` and does not end. Waits until nothing of
/// the agent lives. Returns the moment.
fn kill_at_a_moment(world: &World, before: usize, is_agent: fn(&str) -> bool) -> String {
    // The start of the agent is a moment, too: before its first event.
    let moment = fastrand::usize(0..=EVENTS);
    let by = Instant::now() + patience();
    if moment == EVENTS {
        while !world.work("made").exists() {
            assert!(Instant::now() < by, "the command runs: {}", log_of(world));
        }
    } else {
        let mut logs = world.command(&["logs", "-f", "--json", "one"]).spawn().unwrap();
        let lines = BufReader::new(logs.stdout.take().unwrap()).lines();
        let lines = lines.take(before + moment);
        assert_eq!(lines.count(), before + moment, "the turn does not end by itself");
        logs.kill().unwrap();
        logs.wait().unwrap();
    }
    kill_process(world.daemon().unwrap(), Signal::KILL).unwrap();
    let moment = format!("{moment} after {before}");
    while let living = living(world, is_agent)
        && !living.is_empty()
    {
        assert!(Instant::now() < by, "moment {moment}: {living:?}");
    }
    moment
}

/// The living processes of an agent, and of its commands.
fn living(world: &World, is_agent: fn(&str) -> bool) -> Vec<String> {
    let living = world.census.living().into_iter().map(|(_, line)| line);
    living.filter(|line| is_agent(line) || line.contains("sleep 1000")).collect()
}

/// Kills the daemon at random moments of an agent's turn. Each time, nothing lives afterwards, and
/// the session continues or says why not. `open` are the arguments that open a session. A turn may
/// only fail if the server has refused a request with `known` in the reason. Returns how the agent
/// was started.
fn survives_killed_daemons(
    server: fn() -> ModelServer,
    configure: fn(&World, &ModelServer),
    open: &[&str],
    is_agent: fn(&str) -> bool,
    known: Option<&str>,
) -> Vec<AgentStart> {
    let mut hows = Vec::new();
    for round in 0..rounds(2, 50) {
        let (world, server) = (World::new(), server());
        configure(&world, &server);
        let open = |prompt: &str| {
            let new = ["new", "--name", "one", "--policy", "all"];
            run(&world, &server, &[&new[..], open, &[prompt]].concat()).code(0);
        };
        // In every second round, the agent has a session with an answer.
        let before = match round % 2 {
            0 => {
                open(ENDLESS);
                0
            }
            _ => {
                open("say First.");
                world.run(&["wait", "one", "--for", "idle"]).code(0);
                let events = world.run(&["logs", "--json", "one"]).code(0).events();
                run(&world, &server, &["prompt", "one", ENDLESS]).code(0);
                events.len()
            }
        };
        let moment = kill_at_a_moment(&world, before, is_agent);
        run(&world, &server, &["wait", "one", "--for", "idle"]).code(0);
        run(&world, &server, &["prompt", "one", "say Continued."]).code(0);
        world.run(&["wait", "one", "--for", "idle"]).code(0);
        let log = log_of(&world);
        let (_, last) = log.rsplit_once("say Continued.").unwrap();
        let violations = server.violations();
        let is_known = known.is_some_and(|known| violations.iter().any(|it| it.contains(known)));
        let is_refused = is_known && last.contains("failed: ");
        assert!(last.contains("All done.") || is_refused, "{moment}: {violations:?} {log}");
        // It continues its session, or the transcript says that it has another one, or it was killed
        // before its first answer, and gets both prompts as one.
        let starts = starts(&world);
        hows.extend(starts.iter().map(|&(_, how)| how));
        let is_own = starts.iter().all(|(session, _)| *session == starts[0].0);
        let is_shown = log.contains("it got the conversation so far as text");
        let has_both = |request: &Request| {
            let body = request.body.to_string();
            body.contains(ENDLESS) && body.contains("say Continued.")
        };
        let is_complete = before == 0 && server.requests().iter().any(has_both);
        assert!(is_own || is_shown || is_complete, "{moment}: {starts:?} {log}");
        world.run(&["close", "one"]).code(0);
        assert_eq!(living(&world, is_agent), [""; 0], "{moment}");
    }
    hows
}

/// A command that does not end by itself.
const ENDLESS: &str = "run: touch made; sleep 1000";

#[test]
fn m_h3_opencode_continues_its_session_after_a_killed_daemon() {
    let agent = format!("'{}' acp", installed::opencode().display());
    let is_agent = |line: &str| line.contains("opencode");
    let open = ["--agent", &agent];
    let hows = survives_killed_daemons(server, configure, &open, is_agent, None);
    let is_own = |how: &AgentStart| matches!(how, AgentStart::Resumed | AgentStart::Loaded);
    assert!(hows.iter().any(is_own), "{hows:?}");
}

#[test]
fn m_h3_gemini_continues_its_session_after_a_killed_daemon() {
    let open = ["--agent", "gemini", "--model", "gemini-2.5-pro"];
    let configure = |world: &World, _: &ModelServer| {
        world.config("[rules]\nallow = [\"agent(gemini)\"]\n");
    };
    let is_agent = |line: &str| line.contains("gemini") && line.contains("--acp");
    let known = Some(KNOWN_VIOLATION);
    let hows = survives_killed_daemons(gemini_server, configure, &open, is_agent, known);
    // It does not always have its session after a kill. Then it gets the conversation as text.
    assert!(hows.iter().any(|how| *how != AgentStart::New), "{hows:?}");
}
