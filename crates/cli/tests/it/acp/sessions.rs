//! Sessions of an editor: listed, loaded, resumed, shared with other clients, closed and deleted.

use std::io::{BufRead, BufReader};
use std::time::Instant;

use serde_json::{Value, json};

use super::editor::{Editor, again, folder};
use crate::world::{World, patience, wait};

const TALK: &str = "think Hm.\nsay One.\ncall list_dir {}\n---\nsay Two.";

#[test]
fn m_h1_a_loaded_session_is_replayed_and_a_resumed_one_is_not() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let prompt = editor.prompt(&session, TALK);
    let cursor = editor.reply(prompt).unwrap()["_meta"]["holdpoint"]["seq"].clone();
    editor.play(&session, "say Three.");
    drop(editor);

    let mut editor = Editor::new(&world);
    let reply = editor.call("session/load", again(&world, &session));
    assert_eq!(reply["modes"]["currentModeId"], "ask");
    // The history is complete when the reply arrives.
    assert_eq!(editor.text("user_message_chunk"), format!("{TALK}say Three."));
    assert_eq!(editor.text("agent_thought_chunk"), "Hm.");
    assert_eq!(editor.text("agent_message_chunk"), "One.Two.Three.");
    assert_eq!(editor.updates("tool_call").len(), 1);
    assert_eq!(editor.play(&session, "say Four."), "end_turn");
    assert_eq!(editor.text("agent_message_chunk"), "One.Two.Three.Four.");
    drop(editor);

    let mut editor = Editor::new(&world);
    editor.call("session/resume", again(&world, &session));
    assert_eq!(editor.play(&session, "say Five."), "end_turn");
    assert_eq!(editor.text("agent_message_chunk"), "Five.");
    drop(editor);

    // With a cursor, a resumed session continues after it.
    let mut editor = Editor::new(&world);
    let mut params = again(&world, &session);
    params["_meta"] = json!({ "holdpoint": { "cursor": cursor } });
    editor.call("session/resume", params.clone());
    assert_eq!(editor.text("agent_message_chunk"), "Three.Four.Five.");
    params["_meta"]["holdpoint"]["cursor"] = json!("first");
    assert_eq!(editor.fails("session/resume", params)["code"], -32602);
}

#[test]
fn m_h1_sessions_are_listed_by_folder() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    editor.play(&session, "say One.");
    let list = |editor: &mut Editor, cwd: &str| {
        let listed = editor.call("session/list", json!({ "cwd": world.path(cwd) }));
        listed["sessions"].as_array().unwrap().clone()
    };
    let sessions = list(&mut editor, "work");
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0]["sessionId"], session.as_str());
    assert_eq!(sessions[0]["title"], "say One.");
    assert!(sessions[0]["updatedAt"].as_str().unwrap().ends_with('Z'));
    assert_eq!(list(&mut editor, "home"), Vec::<Value>::new());
    assert_eq!(editor.call("session/list", json!({}))["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(editor.fails("session/list", json!({ "cursor": "x" }))["code"], -32602);
}

#[test]
fn m_h1_a_closed_session_stays_saved_until_it_is_deleted() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let id = json!({ "sessionId": session });
    let prompt = editor.prompt(&session, "say One.\nhang");
    editor.update("agent_message_chunk", |_| true);
    assert!(editor.fails("session/delete", id.clone())["data"]["hint"].is_string());
    editor.call("session/close", id.clone());
    assert_eq!(editor.reply(prompt).unwrap()["stopReason"], "cancelled");
    let closed = editor.prompt(&session, "say Two.");
    assert_eq!(editor.reply(closed).unwrap_err()["code"], -32002);
    editor.call("session/load", again(&world, &session));
    assert!(editor.text("agent_message_chunk").contains("One."));
    editor.call("session/close", id.clone());
    editor.call("session/delete", id.clone());
    assert_eq!(editor.fails("session/load", again(&world, &session))["code"], -32002);
}

#[test]
fn m_h1_two_editors_and_a_terminal_share_a_session() {
    let world = World::new();
    let mut one = Editor::new(&world);
    let session = one.open(&world);
    let mut two = Editor::new(&world);
    two.call("session/load", again(&world, &session));
    assert_eq!(one.play(&session, "say One."), "end_turn");
    two.update("user_message_chunk", |update| update["content"]["text"] == "say One.");
    two.update("agent_message_chunk", |update| update["content"]["text"] == "One.");
    world.run(&["prompt", &session, "say Two."]).code(0);
    for editor in [&mut one, &mut two] {
        editor.update("user_message_chunk", |update| update["content"]["text"] == "say Two.");
        editor.update("agent_message_chunk", |update| update["content"]["text"] == "Two.");
    }
    world.run(&["policy", "set", &session, "edits"]).code(0);
    for editor in [&mut one, &mut two] {
        editor.update("current_mode_update", |update| update["currentModeId"] == "edits");
    }
}

#[test]
fn m_h1_a_session_outlives_its_editor() {
    let world = World::new();
    for is_killed in [true, false] {
        let mut editor = Editor::new(&world);
        let session = editor.open(&world);
        editor.prompt(&session, "say One.\nshell: touch made\n---\nsay Two.");
        let (_, request) = editor.asked("session/request_permission");
        if is_killed {
            editor.child.kill().unwrap();
        } else {
            assert_eq!(editor.end(), Some(0), "it ends with its input");
        }
        drop(editor);
        let ask = request["_meta"]["holdpoint"]["ask"].as_str().unwrap();
        world.run(&["approve", ask]).code(0);
        world.run(&["wait", &session]).code(0);
        let log = world.run(&["logs", &session]).code(0);
        assert!(log.out.contains("One.") && log.out.contains("Two."), "{log:?}");
    }
}

#[test]
fn m_h1_running_sessions_of_a_killed_editor_stay_live_and_can_be_attached() {
    // The agent is killed with its editor, or only loses it.
    for is_agent_killed in [true, false] {
        outlive(is_agent_killed);
    }
}

fn outlive(is_agent_killed: bool) {
    let world = World::new();
    world.config("policy = \"all\"\n");
    let mut editor = Editor::new(&world);
    let sessions = [0, 1, 2].map(|n| {
        let session = editor.open(&world);
        let script = format!(
            "shell: touch runs-{n}; until [ -e go-{n} ]; do sleep 0.02; done\n---\nsay End {n}."
        );
        editor.prompt(&session, &script);
        session
    });
    let by = Instant::now() + patience();
    while !(0..3).all(|n| world.work(&format!("runs-{n}")).exists()) {
        assert!(Instant::now() < by, "all three run");
    }
    if is_agent_killed {
        editor.child.kill().unwrap();
        editor.child.wait().unwrap();
    } else {
        assert_eq!(editor.end(), Some(0));
    }
    let mut clients = sessions.clone().map(|session| {
        let mut child = world.command(&["attach", "--json", &session]).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        (child, lines.map(Result::unwrap))
    });
    for (n, (_, lines)) in clients.iter_mut().enumerate() {
        assert!(lines.any(|line| line.contains("\"type\":\"toolStarted\"")), "{n}");
    }
    let list = world.run(&["list", "--json"]).code(0).out;
    let list: Value = serde_json::from_str(&list).unwrap();
    let is_running = |session: &&Value| session["live"] == true && session["status"] == "running";
    let running = list["sessions"].as_array().unwrap().iter().filter(is_running);
    assert_eq!(running.count(), 3, "{list}");
    for (n, (_, lines)) in clients.iter_mut().enumerate() {
        std::fs::write(world.work(&format!("go-{n}")), "").unwrap();
        assert!(lines.any(|line| line.contains(&format!("End {n}."))), "{n}");
        assert!(lines.any(|line| line.contains("\"type\":\"turnFinished\"")), "{n}");
    }
    for (session, (mut child, _)) in sessions.iter().zip(clients) {
        world.run(&["prompt", session, "say Again."]).code(0);
        world.run(&["wait", session, "--for", "idle"]).code(0);
        let log = world.run(&["logs", session]).code(0).out;
        assert!(log.contains("\nAgain."), "{log}");
        world.run(&["close", session]).code(0);
        wait(&mut child);
    }
}

#[test]
fn m_h1_a_new_session_without_a_prompt_does_not_outlive_its_editor() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let unused = editor.open(&world);
    let used = editor.open(&world);
    editor.play(&used, "say One.");
    assert_eq!(editor.end(), Some(0));
    world.run(&["show", &unused]).code(1);
    world.run(&["show", &used]).code(0);
}

#[test]
fn m_h1_a_session_whose_prompts_were_refused_does_not_outlive_its_editor() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let mut unused = Vec::new();
    let image = json!({ "type": "image", "data": "", "mimeType": "image/png" });
    for block in [image, json!({ "type": "text", "text": "" })] {
        let session = editor.open(&world);
        editor.fails("session/prompt", json!({ "sessionId": session, "prompt": [block] }));
        unused.push(session);
    }
    let held = editor.open(&world);
    assert_eq!(editor.play(&held, "/hold"), "end_turn");
    let closed = editor.open(&world);
    editor.fails("session/prompt", json!({ "sessionId": closed, "prompt": [] }));
    editor.call("session/close", json!({ "sessionId": closed }));
    let used = editor.open(&world);
    editor.fails("session/prompt", json!({ "sessionId": used, "prompt": [] }));
    editor.play(&used, "say One.");
    assert_eq!(editor.end(), Some(0));
    for session in unused.iter().chain([&held, &closed]) {
        world.run(&["show", session]).code(1);
    }
    world.run(&["show", &used]).code(0);
}

#[test]
fn m_h1_a_session_that_is_loaded_twice_is_shown_once() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let open = editor.prompt(&session, "say One.\nshell: touch made\n---\nsay Two.");
    let (old, _) = editor.asked("session/request_permission");
    editor.call("session/load", again(&world, &session));
    editor.reply(open).unwrap_err();
    let (new, _) = editor.asked("session/request_permission");
    assert_ne!(old, new);
    let withdrawn = editor.seen.iter().filter(|message| message["method"] == "$/cancel_request");
    assert_eq!(withdrawn.map(|m| m["params"]["requestId"].clone()).collect::<Vec<_>>(), [old]);
    editor.choose(&new, "allow_once");
    editor.update("agent_message_chunk", |update| update["content"]["text"] == "Two.");
    assert_eq!(editor.text("agent_message_chunk").matches("Two.").count(), 1);
}

#[test]
fn m_h1_a_folder_must_be_absolute_and_exist() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let error = editor.fails("session/new", json!({ "cwd": "work", "mcpServers": [] }));
    assert_eq!(error["code"], -32602);
    assert!(error["message"].as_str().unwrap().contains("absolute"), "{error}");
    let error = editor.fails("session/new", folder(&world.path("gone")));
    assert!(error["data"]["hint"].is_string(), "{error}");
    assert!(!error.to_string().contains("--cwd"), "the editor has no such option: {error}");
}

/// They were not announced, and leaving them out would not be noticed.
#[test]
fn m_h1_parameters_that_have_no_effect_are_refused() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    for (name, value) in [
        ("additionalDirectories", json!([world.path("home")])),
        (
            "systemPrompt",
            json!({ "mode": "append", "content": [{ "type": "text", "text": "Be brief." }] }),
        ),
    ] {
        for method in ["session/new", "session/load", "session/resume"] {
            let mut params = again(&world, &session);
            params[name] = value.clone();
            let error = editor.fails(method, params);
            assert_eq!(error["code"], -32602);
            assert!(error["message"].as_str().unwrap().contains(name), "{method}: {error}");
            assert!(error["data"]["hint"].is_string(), "{method}: {error}");
        }
    }
    let mut params = folder(&world.path("work"));
    params["additionalDirectories"] = json!([]);
    params["systemPrompt"] = Value::Null;
    params["_meta"] = json!({ "other": 1 });
    editor.call("session/new", params);
}
