//! Requests to an open session: carried out one at a time, in the order of their arrival.

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use super::editor::Editor;
use crate::world::{World, rounds};

const MODES: [&str; 5] = ["edits", "all", "readonly", "sandboxed", "ask"];

fn mode(session: &str, mode: &str) -> Value {
    json!({ "sessionId": session, "modeId": mode })
}

#[test]
fn m_h1_changes_take_effect_in_the_order_of_their_arrival() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    for round in 0..rounds(20, 300) {
        let last = MODES[round % MODES.len()];
        let mut requests = Vec::new();
        for other in MODES.into_iter().filter(|mode| *mode != last) {
            requests.push(editor.send("session/set_mode", mode(&session, other)));
        }
        let option = json!({ "sessionId": session, "configId": "mode", "value": last });
        let option = editor.send("session/set_config_option", option);
        for request in requests {
            editor.reply(request).unwrap();
        }
        let reply = editor.reply(option).unwrap();
        assert_eq!(reply["configOptions"][0]["currentValue"], last, "round {round}");
    }
}

#[test]
fn m_h1_a_prompt_runs_with_the_mode_that_was_set_before_it() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let write = "call write_file {\"path\": \"a.txt\", \"content\": \"x\"}\n---\nsay Done.";
    for _ in 0..rounds(10, 100) {
        editor.send("session/set_mode", mode(&session, "ask"));
        editor.send("session/set_mode", mode(&session, "edits"));
        let prompt = editor.prompt(&session, write);
        assert_eq!(editor.reply(prompt).unwrap()["stopReason"], "end_turn");
        let asked = editor.seen.iter().any(|m| m["method"] == "session/request_permission");
        assert!(!asked, "the edit needs no approval in this mode");
    }
}

/// The daemon is suspended, so that no request ends.
#[test]
fn m_h1_requests_to_a_session_that_wait_are_bounded() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let daemon = world.daemon().unwrap();
    // Only root can count them.
    let open_files = |editor: &Editor| {
        let open = std::fs::read_dir(format!("/proc/{}/fd", editor.child.id()));
        open.map_or(0, Iterator::count)
    };
    let before = open_files(&editor);
    kill_process(daemon, Signal::STOP).unwrap();
    // One is carried out, and 64 wait.
    let requests: Vec<_> =
        (0..65).map(|n| editor.send("session/set_mode", mode(&session, MODES[n % 5]))).collect();
    for _ in 0..1000 {
        editor.notify("session/cancel", json!({ "sessionId": session }));
    }
    let error = editor.fails("session/set_mode", mode(&session, "ask"));
    assert!(error["message"].as_str().unwrap().contains("64 requests"), "{error}");
    let opened = open_files(&editor).saturating_sub(before);
    assert!(opened <= 4, "{opened} connections are open");
    // One that waits can be cancelled.
    editor.notify("$/cancel_request", json!({ "requestId": requests[64] }));
    assert_eq!(editor.reply(requests[64]).unwrap_err()["code"], -32800);
    kill_process(daemon, Signal::CONT).unwrap();
    for request in &requests[..64] {
        editor.reply(*request).unwrap();
    }
    assert_eq!(editor.play(&session, "say One."), "end_turn");
}

/// The daemon is suspended, so that no request ends.
#[test]
fn m_h1_a_cancel_also_cancels_commands_that_wait() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let daemon = world.daemon().unwrap();
    kill_process(daemon, Signal::STOP).unwrap();
    let set = editor.send("session/set_mode", mode(&session, "ask"));
    let commands = ["/hold", "/rename other"].map(|text| editor.prompt(&session, text));
    editor.notify("$/cancel_request", json!({ "requestId": commands[1] }));
    assert_eq!(editor.reply(commands[1]).unwrap()["stopReason"], "cancelled");
    editor.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(editor.reply(commands[0]).unwrap()["stopReason"], "cancelled");
    kill_process(daemon, Signal::CONT).unwrap();
    editor.reply(set).unwrap();
    // A hold would be in the way of its turn.
    assert_eq!(editor.play(&session, "say One."), "end_turn");
}
