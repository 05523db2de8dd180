//! Third-party agents, against the scripted model server.

use holdpoint_common::{AgentStart, Fact, TurnFact};
use holdpoint_tests::model_server::{ModelServer, Reply, Request};
use serde_json::json;

use super::calls::open_asks;
use super::installed;
use crate::world::World;

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
