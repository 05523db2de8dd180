//! Cancelling: a cancelled prompt is replied to when everything of its turn has ended.

use serde_json::{Value, json};

use super::editor::Editor;
use crate::world::{World, rounds};

/// An answer that streams until it is cancelled, and one that runs a command until then.
const STREAMING: &str = "say@200 Some words before the silence and then the last.\nhang";
const RUNNING: &str = "say@200 Some words before the command runs its two processes.\n\
                       shell: sleep 1000 & echo runs; sleep 1000";

/// The number of words in each of them.
const WORDS: usize = 9;

#[test]
fn t_f15_a_cancel_at_any_moment_ends_everything_before_its_reply() {
    let world = World::new();
    world.config("policy = \"all\"\n");
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let (mut streaming, mut running) = (0, 0);
    for round in 0..rounds(12, 100) {
        // Every third turn is silent in the middle of its answer, and every third one is cancelled
        // when its command runs.
        let (script, moment) = match round % 3 {
            0 => (STREAMING, fastrand::usize(1..=WORDS)),
            1 => (RUNNING, usize::MAX),
            _ => (RUNNING, fastrand::usize(0..WORDS + 4)),
        };
        let prompt = editor.prompt(&session, script);
        let before = editor.seen.len();
        // An editor that reads slowly gets several words in one message.
        let is_early = |seen: &[Value]| {
            seen.iter().filter(|message| is_of_turn(message)).count() < moment
                && !seen.iter().any(is_last)
        };
        while is_early(&editor.seen[before..]) {
            editor.receive("the moment of the cancel");
        }
        match round % 2 {
            0 => editor.notify("session/cancel", json!({ "sessionId": session })),
            _ => editor.notify("$/cancel_request", json!({ "requestId": prompt })),
        }
        let reply = editor.reply(prompt).unwrap();
        assert_eq!(reply["stopReason"], "cancelled", "{reply}");
        let about = &reply["_meta"]["holdpoint"];
        let processes = &about["receipt"]["processes"];
        let ended = ["terminated", "killed"].map(|end| processes[end].as_u64());
        // A prompt that was still queued never ran.
        assert!(ended.iter().all(Option::is_some) || about["returned"] == true, "{reply}");
        assert!(processes.get("notEnded").is_none(), "{reply}");
        let sleeping =
            world.census.living().into_iter().filter(|(_, line)| line.contains("sleep 1000"));
        assert_eq!(sleeping.count(), 0, "round {round}: a process has outlived the reply");
        let is_shown = |shown| editor.seen[before..].iter().any(|seen| kind(seen) == Some(shown));
        match is_shown("tool_call") {
            true => running += usize::from(ended.iter().flatten().sum::<u64>() > 0),
            false => streaming += usize::from(is_shown("agent_message_chunk")),
        }
    }
    let third = rounds(12, 100) / 3;
    assert!(streaming >= third && running >= third, "{streaming} streaming, {running} running");
    assert_eq!(editor.play(&session, "say Still here."), "end_turn");
}

/// The kind of an update.
fn kind(message: &Value) -> Option<&str> {
    message["params"]["update"]["sessionUpdate"].as_str()
}

/// Whether a message is a part of an answer or of a call.
fn is_of_turn(message: &Value) -> bool {
    matches!(kind(message), Some("agent_message_chunk" | "tool_call" | "tool_call_update"))
}

/// Whether no further message of a turn follows before its cancel: its command runs, or the last
/// word of its answer was shown.
fn is_last(message: &Value) -> bool {
    let content = message["params"]["update"]["content"].to_string();
    match kind(message) {
        Some("tool_call_update") => content.contains("runs"),
        Some("agent_message_chunk") => content.contains("last"),
        _ => false,
    }
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
