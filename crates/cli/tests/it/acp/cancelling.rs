//! Cancelling: a cancelled prompt is replied to when everything of its turn has ended.

use std::time::Duration;

use serde_json::json;

use super::editor::Editor;
use crate::world::{World, rounds};

#[test]
fn t_f15_a_cancel_at_any_moment_ends_everything_before_its_reply() {
    let world = World::new();
    world.config("policy = \"all\"\n");
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let script = "say@200 Some words before the command runs.\n\
                  shell: sleep 1000 & sleep 1000\n---\nsay@200 And many more words after it.";
    for round in 0..rounds(8, 100) {
        let prompt = editor.prompt(&session, script);
        std::thread::sleep(Duration::from_millis(fastrand::u64(0..400)));
        match round % 2 {
            0 => editor.notify("session/cancel", json!({ "sessionId": session })),
            _ => editor.notify("$/cancel_request", json!({ "requestId": prompt })),
        }
        let reply = editor.reply(prompt).unwrap();
        assert_eq!(reply["stopReason"], "cancelled", "{reply}");
        let receipt = &reply["_meta"]["holdpoint"]["receipt"];
        assert!(receipt["processes"].is_object(), "{reply}");
        let sleeping =
            world.census.living().into_iter().filter(|(_, line)| line.contains("sleep 1000"));
        assert_eq!(sleeping.count(), 0, "round {round}: a process has outlived the reply");
    }
    assert_eq!(editor.play(&session, "say Still here."), "end_turn");
}

#[test]
fn m_h1_an_interrupt_by_another_client_cancels_the_prompt() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let prompt = editor.prompt(&session, "say One.\nhang");
    let queued = editor.prompt(&session, "say Two.");
    editor.update("agent_message_chunk", |update| update["content"]["text"] == "One.");
    world.run(&["interrupt", &session]).code(0);
    assert_eq!(editor.reply(prompt).unwrap()["stopReason"], "cancelled");
    // A queued prompt is handed back.
    assert_eq!(editor.reply(queued).unwrap()["stopReason"], "cancelled");
}

#[test]
fn m_h1_a_cancel_closes_the_open_ask() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let prompt = editor.prompt(&session, "shell: touch made");
    let (id, _) = editor.asked("session/request_permission");
    editor.notify("session/cancel", json!({ "sessionId": session }));
    // As the protocol demands of an editor that cancels.
    editor.answer(&id, json!({ "outcome": { "outcome": "cancelled" } }));
    assert_eq!(editor.reply(prompt).unwrap()["stopReason"], "cancelled");
    assert!(editor.text("agent_message_chunk").is_empty(), "{:?}", editor.seen);
    assert!(!world.work("made").exists());
}

#[test]
fn m_h1_a_cancelled_prompt_behind_a_hold_never_runs() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    world.run(&["hold", &session]).code(0);
    for round in 0..10 {
        let prompt = editor.prompt(&session, "say Cancelled.");
        // In half of the rounds, the prompt is still being sent.
        if round % 2 == 0 {
            world.run(&["show", &session]).code(0);
        }
        match round % 4 {
            0 | 1 => editor.notify("session/cancel", json!({ "sessionId": session })),
            _ => editor.notify("$/cancel_request", json!({ "requestId": prompt })),
        }
        assert_eq!(editor.reply(prompt).unwrap()["stopReason"], "cancelled", "round {round}");
    }
    let kept = editor.prompt(&session, "say Kept.");
    world.run(&["release", &session]).code(0);
    assert_eq!(editor.reply(kept).unwrap()["stopReason"], "end_turn");
    assert_eq!(editor.text("agent_message_chunk").matches("Cancelled.").count(), 0);
}

#[test]
fn m_h1_a_cancel_of_a_queued_prompt_affects_no_other_one() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    world.run(&["prompt", &session, "shell: touch made\n---\nsay One."]).code(0);
    let (id, _) = editor.asked("session/request_permission");
    let second = editor.prompt(&session, "say Two.");
    let third = editor.prompt(&session, "say Three.");
    editor.notify("$/cancel_request", json!({ "requestId": second }));
    assert_eq!(editor.reply(second).unwrap()["stopReason"], "cancelled");
    editor.choose(&id, "allow_once");
    assert_eq!(editor.reply(third).unwrap()["stopReason"], "end_turn");
    assert_eq!(editor.text("agent_message_chunk"), "One.Three.");
    assert!(world.work("made").exists(), "the turn of the other client was not cut");
}

#[test]
fn m_h1_a_cancel_of_the_running_prompt_leaves_the_queued_ones() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let first = editor.prompt(&session, "say One.\nhang");
    let second = editor.prompt(&session, "say Two.");
    let third = editor.prompt(&session, "say Three.");
    editor.update("agent_message_chunk", |update| update["content"]["text"] == "One.");
    editor.notify("$/cancel_request", json!({ "requestId": first }));
    assert_eq!(editor.reply(first).unwrap()["stopReason"], "cancelled");
    assert_eq!(editor.reply(second).unwrap()["stopReason"], "end_turn");
    assert_eq!(editor.reply(third).unwrap()["stopReason"], "end_turn");
    assert_eq!(editor.text("agent_message_chunk"), "One.Two.Three.");
}

#[test]
fn m_h1_a_cancel_of_a_request_that_is_over_changes_nothing() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let over = editor.prompt(&session, "say One.");
    editor.reply(over).unwrap();
    let prompt = editor.prompt(&session, "shell: touch made\n---\nsay Two.");
    let (id, _) = editor.asked("session/request_permission");
    for request in [json!(over), json!(9999), json!("x")] {
        editor.notify("$/cancel_request", json!({ "requestId": request }));
    }
    editor.choose(&id, "allow_once");
    assert_eq!(editor.reply(prompt).unwrap()["stopReason"], "end_turn");
}
