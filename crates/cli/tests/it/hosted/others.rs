//! Third-party agents, against the scripted model server.

use holdpoint_common::{AgentStart, Fact, TurnFact};
use holdpoint_tests::model_server::{ModelServer, Reply, Request};
use serde_json::json;

use super::calls::open_asks;
use super::installed;
use crate::world::{Ran, World};

/// A server whose model runs the command in the prompt, after `run: `, and then is done.
fn server() -> ModelServer {
    let server = ModelServer::start();
    server.answer(|request: &Request| {
        let messages = request.body["messages"].as_array().unwrap();
        let is_result = messages.last().is_some_and(|message| message["role"] == "tool");
        let prompt = request.texts("user").pop().unwrap_or_default();
        let command = prompt.split("run: ").nth(1).and_then(|rest| rest.lines().next());
        match command {
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

/// Configures OpenCode to use the server, and to ask before it runs a command.
fn configure(world: &World, server: &ModelServer) {
    world.config("[rules]\nallow = [\"agent(opencode)\"]\n");
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
fn gemini_server() -> ModelServer {
    let server = ModelServer::start();
    server.answer(|request: &Request| {
        let contents = request.body["contents"].as_array().unwrap();
        let last = contents.last().unwrap().to_string();
        let prompt = request.prompt().unwrap_or_default();
        let command = prompt.rsplit("run: ").next().and_then(|rest| rest.lines().next());
        let call = prompt.rsplit("call: ").next().and_then(|rest| rest.lines().next());
        let call = call.and_then(|call| call.split_once(' '));
        match command {
            _ if last.contains("functionResponse") => Reply::text(["All ", "done."]),
            _ if prompt.contains("call: ") => {
                let (tool, arguments) = call.unwrap();
                Reply::stream().call(0, tool, arguments).finish("tool_calls")
            }
            Some(command) if prompt.contains("run: ") && !last.contains("functionResponse") => {
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
fn run(world: &World, server: &ModelServer, args: &[&str]) -> Ran {
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
    // Gemini saves its own conversation late. If the interrupt has ended it in between, a strict server
    // refuses the rest of the conversation, and the session says so.
    if server.violations().iter().any(|why| why.contains("which was not called")) {
        assert!(log.contains("failed: the agent failed: gemini: it reported: "), "{log}");
    } else {
        assert_eq!(open_asks(&world).len(), 1, "{log} {:?}", server.violations());
        world.run(&["approve", &open_asks(&world)[0]]).code(0);
        world.run(&["wait", "one"]).code(0);
        assert!(world.work("fourth").exists());
    }
    assert!(!world.work("third").exists());
    assert!(server.requests().iter().all(|request| request.path.contains("gemini-2.5-pro")));
    world.run(&["close", "one"]).code(0);
    let living = world.census.living();
    assert!(!living.iter().any(|(_, line)| is_gemini(line)), "{living:?}");
}

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
