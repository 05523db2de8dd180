//! The MCP servers that an editor brings.

use serde_json::{Value, json};

use super::editor::{Editor, again, folder};
use crate::hosted::plain;
use crate::http_server::HttpServer;
use crate::oauth_server::{OauthServer, log_in_as_hinted};
use crate::world::World;

/// A server with the tool `work`.
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tools/tests/mcp/bad.py");

#[test]
fn m_h1_the_servers_of_an_editor_serve_its_sessions() {
    let world = World::new();
    // A program in a sandbox may not see the folder of this test.
    std::fs::copy(SERVER, world.work("server.py")).unwrap();
    let servers = json!([{
        "name": "My Server", "command": "python3", "args": ["server.py", "none"],
        "env": [{ "name": "MARK", "value": "marked" }],
    }]);
    let mut editor = Editor::new(&world);
    let mut params = folder(&world.path("work"));
    params["mcpServers"] = servers.clone();
    let session = editor.call("session/new", params)["sessionId"].as_str().unwrap().to_owned();
    let call = "call mcp__my-server__work {\"path\": \"a\"}";
    let work = |editor: &mut Editor| {
        let prompt = editor.prompt(&session, call);
        let (id, _) = editor.asked("session/request_permission");
        editor.choose(&id, "allow_once");
        assert_eq!(editor.reply(prompt).unwrap()["stopReason"], "end_turn");
        let update = editor.updates("tool_call_update").pop().unwrap().to_string();
        assert!(update.contains("completed") && update.contains("worked"), "{update}");
        assert!(update.contains("marked"), "the server has its variables: {update}");
    };
    work(&mut editor);
    // A live session keeps its servers, and the editor learns it.
    let mut params = again(&world, &session);
    params["mcpServers"] = json!([{ "name": "Other", "command": "false", "args": [], "env": [] }]);
    editor.call("session/load", params);
    let notice = editor.update("agent_message_chunk", |update| {
        update["content"]["text"]
            .as_str()
            .is_some_and(|text| text.contains("keeps the MCP servers"))
    });
    assert!(notice["messageId"].is_string(), "{notice}");
    work(&mut editor);
    // They are not saved: the editor that opens the session again brings them.
    editor.call("session/close", json!({ "sessionId": session }));
    let mut params = again(&world, &session);
    params["mcpServers"] = servers;
    editor.call("session/resume", params);
    work(&mut editor);
}

#[test]
fn m_h3_an_editor_is_notified_that_a_hosted_agent_does_not_get_its_servers() {
    let world = World::new();
    let agent = plain(&world);
    world.run(&["new", "--name", "one", "--agent", &agent, "say One."]).code(0);
    world.run(&["wait", "one"]).code(0);
    let list: Value = serde_json::from_str(&world.run(&["list", "--json"]).code(0).out).unwrap();
    let session = list["sessions"][0]["id"].as_str().unwrap();
    world.run(&["close", "one"]).code(0);
    let mut editor = Editor::new(&world);
    let mut params = again(&world, session);
    params["mcpServers"] = json!([{ "name": "Other", "command": "false", "args": [], "env": [] }]);
    editor.call("session/load", params);
    editor.update("agent_message_chunk", |update| {
        let text = update["content"]["text"].as_str();
        text.is_some_and(|text| text.contains("of this editor are not used"))
    });
}

#[test]
fn m_h2_a_server_over_http_of_an_editor_serves_its_session() {
    let server = HttpServer::start(&["needs-key"]);
    let world = World::new();
    let mut editor = Editor::new(&world);
    let mut params = folder(&world.path("work"));
    params["mcpServers"] = json!([{
        "type": "http", "name": "Wiki", "url": server.url(),
        "headers": [{ "name": "Authorization", "value": "Bearer right-key" }],
    }]);
    let session = editor.call("session/new", params)["sessionId"].as_str().unwrap().to_owned();
    let prompt = editor.prompt(&session, "call mcp__wiki__work {}");
    let (id, _) = editor.asked("session/request_permission");
    editor.choose(&id, "allow_once");
    assert_eq!(editor.reply(prompt).unwrap()["stopReason"], "end_turn");
    let update = editor.updates("tool_call_update").pop().unwrap().to_string();
    assert!(update.contains("completed") && update.contains("worked"), "{update}");
}

#[test]
fn m_h2_the_hint_for_a_login_at_a_server_of_an_editor_works() {
    let server = OauthServer::start("plain");
    let world = World::new();
    let mut editor = Editor::new(&world);
    let mut params = folder(&world.path("work"));
    params["mcpServers"] =
        json!([{ "type": "http", "name": "Wiki", "url": server.url(), "headers": [] }]);
    let session = editor.call("session/new", params)["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(editor.play(&session, "say One."), "end_turn");
    let log = world.run(&["logs", &session]).code(0).out;
    assert!(log.contains(&format!("mcp login wiki --url {})", server.url())), "{log}");
    log_in_as_hinted(&world, &log);
    let prompt = editor.prompt(&session, "call mcp__wiki__work {}");
    let (id, _) = editor.asked("session/request_permission");
    editor.choose(&id, "allow_once");
    assert_eq!(editor.reply(prompt).unwrap()["stopReason"], "end_turn");
    let update = editor.updates("tool_call_update").pop().unwrap().to_string();
    assert!(update.contains("completed") && update.contains("worked"), "{update}");
}

/// The settings of a project in an editor must not get the user's variables.
#[test]
fn m_h2_texts_of_an_editors_servers_are_literal() {
    let server = HttpServer::start(&["needs-key"]);
    let world = World::new();
    let mut editor = Editor::new(&world);
    let mut params = folder(&world.path("work"));
    params["mcpServers"] = json!([{
        "type": "http", "name": "Wiki", "url": server.url(),
        "headers": [{ "name": "Authorization", "value": "Bearer ${HOME}" }],
    }]);
    let session = editor.call("session/new", params)["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(editor.play(&session, "say One."), "end_turn");
    let log = world.run(&["logs", &session]).code(0).out;
    // The server has got this text, which is not its key.
    assert!(log.contains("it does not accept the key in its header `Authorization`"), "{log}");
}
