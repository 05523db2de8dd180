//! Asks at the editor: answered there, answered elsewhere, and not answered.

use serde_json::json;

use super::editor::{Editor, again};
use crate::world::World;

const RUN: &str = "shell: touch made\n---\nsay Done.";

#[test]
fn m_h1_a_denial_carries_its_reason_to_the_model() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let prompt = editor.prompt(&session, RUN);
    let (id, request) = editor.asked("session/request_permission");
    let content = request["toolCall"]["content"].to_string();
    assert!(content.contains("touch made"), "the command is shown whole: {content}");
    let outcome = json!({ "outcome": "selected", "optionId": "reject_once" });
    let meta = json!({ "holdpoint": { "reason": "use mktemp" } });
    editor.answer(&id, json!({ "outcome": outcome, "_meta": meta }));
    assert_eq!(editor.reply(prompt).unwrap()["stopReason"], "end_turn");
    let last = editor.updates("tool_call_update").pop().unwrap().to_string();
    assert!(last.contains("failed") && last.contains("use mktemp"), "{last}");
    assert!(!world.work("made").exists());
    let log = world.run(&["logs", &session]).code(0);
    assert!(log.out.contains("use mktemp"), "{log:?}");
}

#[test]
fn m_h1_an_approval_for_always_covers_the_next_call() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let prompt = editor.prompt(&session, RUN);
    let (id, _) = editor.asked("session/request_permission");
    editor.choose(&id, "allow_always");
    assert_eq!(editor.reply(prompt).unwrap()["stopReason"], "end_turn");
    assert_eq!(editor.play(&session, RUN), "end_turn");
    let asked = editor.seen.iter().filter(|m| m["method"] == "session/request_permission");
    assert_eq!(asked.count(), 1);
}

#[test]
fn m_h1_a_denial_for_always_covers_the_next_call() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let prompt = editor.prompt(&session, RUN);
    let (id, _) = editor.asked("session/request_permission");
    editor.choose(&id, "reject_always");
    assert_eq!(editor.reply(prompt).unwrap()["stopReason"], "end_turn");
    assert_eq!(editor.play(&session, RUN), "end_turn");
    let asked = editor.seen.iter().filter(|m| m["method"] == "session/request_permission");
    assert_eq!(asked.count(), 1);
    let last = editor.updates("tool_call_update").pop().unwrap().to_string();
    assert!(last.contains("failed") && last.contains("for the whole session"), "{last}");
    assert!(!world.work("made").exists());
}

#[test]
fn m_h1_an_ask_that_is_answered_elsewhere_is_withdrawn() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let prompt = editor.prompt(&session, RUN);
    let (id, request) = editor.asked("session/request_permission");
    let ask = request["_meta"]["holdpoint"]["ask"].as_str().unwrap();
    world.run(&["approve", ask]).code(0);
    let cancel = editor.until("the withdrawal", |m| m["method"] == "$/cancel_request");
    assert_eq!(cancel["params"]["requestId"], id);
    // A reply that comes too late changes nothing.
    editor.choose(&id, "reject_once");
    assert_eq!(editor.reply(prompt).unwrap()["stopReason"], "end_turn");
    assert!(world.work("made").exists());
    let updates = format!("{:?}", editor.updates("tool_call_update"));
    assert!(updates.contains("approved from the command line"), "{updates}");
}

#[test]
fn m_h1_an_editor_that_can_not_ask_leaves_the_ask_open() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let prompt = editor.prompt(&session, RUN);
    let (id, request) = editor.asked("session/request_permission");
    let error = json!({ "code": -32601, "message": "no such method" });
    editor.line(json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string().as_bytes());
    let update = editor.update("agent_message_chunk", |_| true);
    let text = update["content"]["text"].as_str().unwrap();
    assert!(text.contains("no such method") && text.contains("holdpoint attach"), "{text}");
    let ask = request["_meta"]["holdpoint"]["ask"].as_str().unwrap();
    world.run(&["deny", ask, "--reason", "no"]).code(0);
    assert_eq!(editor.reply(prompt).unwrap()["stopReason"], "end_turn");
}

#[test]
fn m_h1_a_question_is_a_form_or_a_choice() {
    let world = World::new();
    let question = "call ask_user {\"questions\": [{\"id\": \"c\", \"header\": \"Colour\", \
                    \"question\": \"Which?\", \"options\": [{\"label\": \"red\"}, {\"label\": \"grey\"}]}]}\n\
                    ---\nsay Done.";
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let prompt = editor.prompt(&session, question);
    let (id, request) = editor.asked("session/request_permission");
    let names = request["options"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|option| option["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["red", "grey", "Skip"]);
    editor.choose(&id, "answer-1");
    assert_eq!(editor.reply(prompt).unwrap()["stopReason"], "end_turn");
    let last = editor.updates("tool_call_update").pop().unwrap().to_string();
    assert!(last.contains("grey"), "{last}");
    drop(editor);

    let mut editor = Editor::with(&world, json!({ "elicitation": { "form": {} } }));
    let session = editor.open(&world);
    let prompt = editor.prompt(&session, question);
    let (id, _) = editor.asked("elicitation/create");
    let content = json!({ "c": "red", "c_other": "a dark blue" });
    editor.answer(&id, json!({ "action": "accept", "content": content }));
    assert_eq!(editor.reply(prompt).unwrap()["stopReason"], "end_turn");
    let last = editor.updates("tool_call_update").pop().unwrap().to_string();
    assert!(last.contains("a dark blue"), "{last}");
}

#[test]
fn m_h1_an_open_ask_is_raised_when_its_session_is_loaded() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    editor.prompt(&session, RUN);
    editor.asked("session/request_permission");
    drop(editor);

    for method in ["session/load", "session/resume"] {
        let mut editor = Editor::new(&world);
        let opened = editor.send(method, again(&world, &session));
        editor.reply(opened).unwrap();
        let (_, request) = editor.asked("session/request_permission");
        let call = request["toolCall"]["toolCallId"].clone();
        let shown = editor.updates("tool_call");
        assert!(shown.iter().any(|shown| shown["toolCallId"] == call), "{method}: {shown:?}");
    }
    let mut editor = Editor::new(&world);
    editor.call("session/load", again(&world, &session));
    let (id, _) = editor.asked("session/request_permission");
    editor.choose(&id, "allow_once");
    editor.update("agent_message_chunk", |update| update["content"]["text"] == "Done.");
    assert!(world.work("made").exists());
}
