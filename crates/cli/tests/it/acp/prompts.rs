//! Prompts: their text, their updates, and the reason of their end.

use serde_json::{Value, json};

use super::editor::{Editor, folder};
use crate::world::World;

#[test]
fn m_h1_an_editor_is_introduced_to_version_1() {
    let world = World::new();
    for version in [1, 2, 99] {
        let mut editor = Editor::start(&world);
        let reply = editor.call("initialize", json!({ "protocolVersion": version }));
        assert_eq!(reply["protocolVersion"], 1);
        assert_eq!(reply["agentInfo"]["name"], "holdpoint");
        let capabilities = &reply["agentCapabilities"];
        assert_eq!(capabilities["loadSession"], true);
        assert_eq!(capabilities["promptCapabilities"]["embeddedContext"], true);
        assert_ne!(capabilities["promptCapabilities"]["image"], true);
        for session in ["list", "delete", "resume", "close"] {
            assert!(capabilities["sessionCapabilities"][session].is_object(), "{session}");
        }
        assert_eq!(editor.end(), Some(0));
    }
    assert_eq!(world.daemon(), None, "no daemon was needed");
}

#[test]
fn m_h1_a_prompt_streams_its_updates_and_then_ends() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let script = "think Hm.\nsay Hello.\n\
                  call write_file {\"path\": \"a.txt\", \"content\": \"x\"}\n---\nsay Done.";
    let prompt = editor.prompt(&session, script);
    let (id, request) = editor.asked("session/request_permission");
    let options = request["options"].as_array().unwrap();
    let kinds: Vec<_> = options.iter().map(|option| option["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"]);
    editor.choose(&id, "allow_once");
    let reply = editor.reply(prompt).unwrap();
    assert_eq!(reply["stopReason"], "end_turn");
    assert_eq!(reply["_meta"]["holdpoint"]["outcome"], "done");
    assert_eq!(std::fs::read_to_string(world.work("a.txt")).unwrap(), "x");

    assert_eq!(editor.text("agent_thought_chunk"), "Hm.");
    assert_eq!(editor.text("agent_message_chunk"), "Hello.Done.");
    let calls = editor.updates("tool_call");
    assert_eq!(calls.len(), 1);
    assert_eq!(
        (&calls[0]["kind"], &calls[0]["content"][0]["newText"]),
        (&json!("edit"), &json!("x"))
    );
    let path = world.work("a.txt").canonicalize().unwrap();
    assert_eq!(calls[0]["locations"][0]["path"], json!(path));
    let last = editor.updates("tool_call_update").pop().unwrap().clone();
    assert_eq!(last["status"], "completed");
    assert!(editor.updates("user_message_chunk").is_empty(), "the editor has its own prompt");
    assert!(!editor.updates("available_commands_update").is_empty());
    let title = editor.updates("session_info_update").pop().unwrap()["title"].clone();
    assert_eq!(title, "think Hm.");
}

#[test]
fn m_h1_the_reason_of_a_turns_end_reaches_the_editor() {
    let world = World::new();
    world.config("max_steps = 2\n");
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    assert_eq!(editor.play(&session, "say One."), "end_turn");
    let looks = "call list_dir {}\n---\n".repeat(5);
    assert_eq!(editor.play(&session, &looks), "max_turn_requests");
    let failed = editor.prompt(&session, "say One.\nfail no luck today");
    let error = editor.reply(failed).unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("no luck today"), "{error}");
    assert!(error["data"]["hint"].is_string(), "{error}");
    // A prompt that the session refuses is an error, too.
    let empty = editor.prompt(&session, "  ");
    let error = editor.reply(empty).unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("empty"), "{error}");
    assert!(!error.to_string().contains("standard input"), "{error}");
    assert_eq!(editor.play(&session, "say Still here."), "end_turn");
    drop(editor);

    world.config("max_turn_tokens = 1\n");
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    assert_eq!(editor.play(&session, &looks), "max_tokens");
}

#[test]
fn m_h1_a_second_prompt_waits_in_the_queue() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let first = editor.prompt(&session, "say One.\nwait 200ms");
    let second = editor.prompt(&session, "say Two.");
    let ended = editor.until("an end", |message| message["result"]["stopReason"].is_string());
    assert_eq!(ended["id"], first);
    assert_eq!(editor.reply(second).unwrap()["stopReason"], "end_turn");
    assert_eq!(editor.text("agent_message_chunk"), "One.Two.");
}

#[test]
fn m_h1_content_that_was_not_announced_is_refused_and_the_session_stays() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let image = json!({ "type": "image", "data": "", "mimeType": "image/png" });
    let prompt = json!({ "sessionId": session, "prompt": [image] });
    let error = editor.fails("session/prompt", prompt);
    assert_eq!(error["code"], -32602);
    assert!(error["message"].as_str().unwrap().contains("image"), "{error}");
    assert_eq!(editor.play(&session, "say One."), "end_turn");
}

#[test]
fn m_h1_the_mode_and_the_model_can_be_set() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let reply = editor.call("session/new", folder(&world.path("work")));
    assert_eq!(reply["modes"]["currentModeId"], "ask");
    assert_eq!(reply["modes"]["availableModes"].as_array().unwrap().len(), 5);
    let session = reply["sessionId"].as_str().unwrap().to_owned();

    editor.call("session/set_mode", json!({ "sessionId": session, "modeId": "edits" }));
    editor.update("current_mode_update", |update| update["currentModeId"] == "edits");
    let write = "call write_file {\"path\": \"a.txt\", \"content\": \"x\"}\n---\nsay Done.";
    assert_eq!(editor.play(&session, write), "end_turn", "the edit was not asked about");

    let error = editor.fails("session/set_mode", json!({ "sessionId": session, "modeId": "yolo" }));
    assert!(error["message"].as_str().unwrap().contains("readonly"), "{error}");
    let option =
        |id: &str, value: &str| json!({ "sessionId": session, "configId": id, "value": value });
    let reply = editor.call("session/set_config_option", option("mode", "readonly"));
    let value = |reply: &Value, id: &str| {
        let options = reply["configOptions"].as_array().unwrap().iter();
        let option = options.clone().find(|option| option["id"] == id).unwrap();
        option["currentValue"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        (value(&reply, "mode"), value(&reply, "model")),
        ("readonly".into(), "rehearsal".into())
    );
    let error = editor.fails("session/set_config_option", option("model", "nowhere/x"));
    assert!(error["data"]["hint"].is_string(), "{error}");
}

#[test]
fn m_h1_a_hold_is_shown_and_only_a_command_releases_it() {
    let world = World::new();
    let mut editor = Editor::with(&world, json!({ "session": { "notices": {} } }));
    let session = editor.open(&world);
    world.run(&["hold", &session]).code(0);
    editor.update("notice", |notice| notice["title"].as_str().unwrap().contains("PAUSED"));
    let prompt = editor.prompt(&session, "say One.");
    editor.update("session_info_update", |update| update["title"] == "say One.");
    let release = editor.prompt(&session, "/release");
    assert_eq!(editor.reply(release).unwrap()["stopReason"], "end_turn");
    assert_eq!(editor.reply(prompt).unwrap()["stopReason"], "end_turn");
    assert_eq!(editor.text("agent_message_chunk"), "One.");
}

#[test]
fn m_h1_a_prompt_with_the_id_of_an_open_one_is_refused() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let prompt = editor.prompt(&session, "shell: touch made");
    editor.asked("session/request_permission");
    let again = json!({
        "jsonrpc": "2.0", "id": prompt, "method": "session/prompt",
        "params": { "sessionId": session, "prompt": [{ "type": "text", "text": "say Hi." }] },
    });
    editor.line(again.to_string().as_bytes());
    let error = editor.reply(prompt).unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("request id is open"), "{error}");
    // The first one can still be cancelled.
    editor.notify("session/cancel", json!({ "sessionId": session }));
    editor.update("session_info_update", |update| update["title"] == "shell: touch made");
    world.run(&["wait", &session]).code(0);
}
