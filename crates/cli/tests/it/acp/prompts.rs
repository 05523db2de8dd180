//! Prompts: their text, their updates, and the reason of their end.

use holdpoint_tests::model_server::{ModelServer, Reply};
use serde_json::{Value, json};

use super::editor::{Editor, again, folder};
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
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once", "reject_always"]);
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

/// A world with the server as its model, and a window of 10,000 tokens.
fn world_of(server: &ModelServer) -> World {
    let world = World::new();
    world.config(&format!(
        "model = \"openai/scripted\"\n[providers.openai]\nbase_url = \"{}\"\n\
         [models.\"openai/scripted\"]\nwindow = 10000\n",
        server.base_url()
    ));
    world
}

#[test]
fn m_h1_links_and_embedded_text_of_a_prompt_reach_the_model() {
    let server = ModelServer::start();
    server.reply(Reply::text(["Done."]));
    let world = world_of(&server);
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let link = |uri: &str| json!({ "type": "resource_link", "name": "n", "uri": uri });
    let resource = json!({ "uri": "file:///w/c.md", "mimeType": "text/markdown", "text": "# C\n" });
    let prompt = json!([
        { "type": "text", "text": "Compare " },
        link("file:///w/a%20b.rs"),
        { "type": "text", "text": " with " },
        link("https://example.com/d"),
        { "type": "text", "text": " and " },
        { "type": "resource", "resource": resource },
        { "type": "text", "text": "." },
    ]);
    let params = json!({ "sessionId": session, "prompt": prompt });
    assert_eq!(editor.call("session/prompt", params)["stopReason"], "end_turn");
    let expected = "Compare /w/a b.rs with https://example.com/d and /w/c.md.\n\n\
                    Contents of /w/c.md:\n```\n# C\n```";
    assert_eq!(server.request(0).prompt().as_deref(), Some(expected));
    server.assert_no_violations();
}

#[test]
fn m_h1_usage_reaches_the_editor_after_each_step_and_when_it_loads() {
    let server = ModelServer::start();
    server.reply(Reply::calls([("list_dir", "{}")])).reply(Reply::text(["Done."]));
    let world = world_of(&server);
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    assert_eq!(editor.play(&session, "Look."), "end_turn");
    let usage = |editor: &Editor| {
        let updates = editor.updates("usage_update").into_iter();
        updates.map(|update| (update["used"].clone(), update["size"].clone())).collect::<Vec<_>>()
    };
    // The server counts 11 tokens in and 7 out, each time. The limit is less than the window, which
    // has room for the answer.
    let shown: Value =
        serde_json::from_str(&world.run(&["show", "--json", &session]).code(0).out).unwrap();
    let limit = shown["context"]["limit"].clone();
    assert!(limit.as_u64().is_some_and(|limit| limit < 10_000), "{shown}");
    let step = (json!(18), limit);
    assert_eq!(usage(&editor), [step.clone(), step.clone()]);
    drop(editor);
    let mut editor = Editor::new(&world);
    editor.call("session/resume", again(&world, &session));
    editor.update("usage_update", |_| true);
    assert_eq!(usage(&editor), [step]);
}

#[test]
fn m_h1_tasks_reach_the_editor_as_a_plan() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let script = "call tasks {\"action\": \"add\", \"titles\": [\"one\", \"two\"]}\n---\n\
                  call tasks {\"action\": \"start\"}\n---\n\
                  call tasks {\"action\": \"finish\"}\n---\n\
                  call tasks {\"action\": \"drop\", \"task\": 2}\n---\nsay Done.";
    assert_eq!(editor.play(&session, script), "end_turn");
    let plan = |update: &Value| {
        let entries = update["entries"].as_array().unwrap().iter();
        let entry = |entry: &Value| format!("{} {}", entry["content"], entry["status"]);
        entries.map(entry).collect::<Vec<_>>().join(", ").replace('"', "")
    };
    let plans: Vec<_> = editor.updates("plan").into_iter().map(plan).collect();
    let expected = [
        "one pending, two pending",
        "one in_progress, two pending",
        "one completed, two pending",
        "one completed",
    ];
    // Added tasks can be shown one by one.
    assert_eq!(plans[plans.len().saturating_sub(expected.len())..], expected);
    drop(editor);
    let mut editor = Editor::new(&world);
    editor.call("session/load", again(&world, &session));
    assert_eq!(plan(&editor.update("plan", |_| true)), expected[3]);
    assert_eq!(editor.updates("plan").len(), 1, "the history has no older plans");
}

#[test]
fn m_h1_the_output_of_a_command_fills_a_terminal_of_the_editor_while_it_runs() {
    let world = World::new();
    world.config("policy = \"all\"\n");
    let mut editor = Editor::with(&world, json!({ "_meta": { "terminal_output": true } }));
    let session = editor.open(&world);
    let script = "shell: echo first; until [ -e go ]; do sleep 0.02; done; echo second; exit 3";
    let prompt = editor.prompt(&session, script);
    let call = editor.update("tool_call", |_| true);
    let id = call["toolCallId"].as_str().unwrap().to_owned();
    let folder = world.work("").canonicalize().unwrap();
    assert_eq!(call["_meta"]["terminal_info"], json!({ "terminal_id": id, "cwd": folder }));
    assert_eq!(call["content"], json!([{ "type": "terminal", "terminalId": id }]));
    let has_data = |update: &Value| update["_meta"]["terminal_output"].is_object();
    let shown = editor.update("tool_call_update", has_data);
    let output = json!({ "terminal_id": id, "data": "first\n" });
    assert_eq!(shown["_meta"]["terminal_output"], output);
    std::fs::write(world.work("go"), "").unwrap();
    assert_eq!(editor.reply(prompt).unwrap()["stopReason"], "end_turn");
    let updates = editor.updates("tool_call_update");
    let data = updates.iter().filter_map(|it| it["_meta"]["terminal_output"]["data"].as_str());
    let data = data.collect::<String>();
    assert!(data.starts_with("first\nsecond\n") && data.contains("exit code 3"), "{data}");
    assert_eq!(data.matches("first").count(), 1, "{data}");
    let last = updates.last().unwrap();
    let exit = json!({ "terminal_id": id, "exit_code": 1, "signal": null });
    assert_eq!((&last["_meta"]["terminal_exit"], &last["status"]), (&exit, &json!("failed")));
}

/// An editor without terminals gets all of the output as text.
#[test]
fn m_h1_the_output_of_a_command_reaches_the_editor_as_text_while_it_runs() {
    let world = World::new();
    world.config("policy = \"all\"\n");
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let script = "shell: echo first; until [ -e go ]; do sleep 0.02; done; echo second";
    let prompt = editor.prompt(&session, script);
    let text = |update: &Value| update["content"][0]["content"]["text"].clone();
    let shown = editor.update("tool_call_update", |update| text(update).is_string());
    assert_eq!(text(&shown), "```\nfirst\n```");
    std::fs::write(world.work("go"), "").unwrap();
    assert_eq!(editor.reply(prompt).unwrap()["stopReason"], "end_turn");
    let last = editor.updates("tool_call_update").pop().unwrap();
    let all = text(last);
    assert!(all.as_str().unwrap().contains("first\nsecond\n"), "{last}");
    assert_eq!(last["status"], "completed");
}
