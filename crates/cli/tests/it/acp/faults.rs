//! Faults: wrong messages of an editor, a daemon that dies, and noise.

use std::io::Write;
use std::time::Instant;

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use super::editor::{Editor, again, folder};
use crate::world::{World, patience, rounds, wait};

#[test]
fn m_h1_a_malformed_line_is_answered_and_the_connection_stays() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    for line in [
        &b"{"[..],
        b"\xff\xff\xff",
        b"[]",
        b"null",
        b"{\"jsonrpc\":\"2.0\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":[],\"method\":\"initialize\"}",
    ] {
        editor.line(line);
        let error = editor.until("the error", |message| message["error"].is_object());
        assert!(error["id"].is_null(), "{error}");
    }
    // A request whose method can't be read is answered with its id.
    editor.line(b"{\"jsonrpc\":\"2.0\",\"id\":700,\"method\":9}");
    assert_eq!(editor.reply(700).unwrap_err()["code"], -32600);
    // A reply is never answered, not even one that can't be read.
    let errors = editor.seen.len();
    editor
        .line(b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"no\"}}");
    editor.line(b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"result\":{}}");
    assert_eq!(editor.fails("session/fork", json!({}))["code"], -32601);
    assert_eq!(editor.seen.len(), errors + 1, "{:?}", editor.seen);
    assert_eq!(editor.fails("session/prompt", json!({ "prompt": "hi" }))["code"], -32602);
    let unknown = json!({ "sessionId": "k3v9x2m7qa", "prompt": [] });
    assert_eq!(editor.fails("session/prompt", unknown)["code"], -32002);
    assert_eq!(editor.fails("authenticate", json!({ "methodId": "x" }))["code"], -32602);
    // Notifications and replies that fit nothing are ignored.
    editor.notify("session/cancel", json!({ "sessionId": "k3v9x2m7qa" }));
    editor.notify("_editor/theme", json!({ "dark": true }));
    editor.answer(&json!("k3v9x2m7qa/1"), json!({}));
    editor.answer(&json!(7), json!(null));
    let session = editor.open(&world);
    assert_eq!(editor.play(&session, "say One."), "end_turn");
}

#[test]
fn m_h1_requests_before_the_end_of_the_input_are_replied_to() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let opening = editor.send("session/new", folder(&world.path("work")));
    let listing = editor.send("session/list", json!({}));
    assert_eq!(editor.end(), Some(0));
    assert!(editor.reply(listing).is_ok());
    let session = editor.reply(opening).unwrap()["sessionId"].as_str().unwrap().to_owned();
    // It has had no prompt, so it is not left behind.
    let list = world.run(&["list", "--json"]).code(0);
    assert!(!list.out.contains(&session), "{list:#?}");
}

#[test]
fn m_h1_a_session_that_can_not_be_opened_again_keeps_its_prompt() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let prompt = editor.prompt(&session, "shell: touch made");
    let (ask, _) = editor.asked("session/request_permission");
    let config = std::fs::read_to_string(world.path("config/holdpoint/config.toml"));
    world.config("not valid");
    editor.fails("session/load", again(&world, &session));
    world.config(&config.unwrap_or_default());
    editor.choose(&ask, "allow_once");
    assert_eq!(editor.reply(prompt).unwrap()["stopReason"], "end_turn");
}

#[test]
fn m_h1_a_line_that_is_too_long_is_refused_with_its_limit() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    editor.line("x".repeat(30 * 1024 * 1024).as_bytes());
    let error = editor.until("the error", |message| message["error"].is_object());
    assert!(error["error"]["message"].as_str().unwrap().contains("8388608"), "{error}");
    assert!(error["id"].is_null(), "{error}");
    // A line within the limit can still be a prompt that is too long for the session.
    let long = editor.prompt(&session, &"x".repeat(4 * 1024 * 1024));
    assert!(editor.reply(long).unwrap_err()["data"]["hint"].is_string());
    let errors = editor.seen.iter().filter(|message| message["error"].is_object());
    assert_eq!(errors.count(), 2, "the rest of the long line is skipped");
    assert_eq!(editor.play(&session, "say One."), "end_turn");
}

#[test]
fn m_h1_more_sessions_and_prompts_than_a_connection_may_have_are_refused() {
    let world = World::new();
    world.config("[limits]\nmax_queued_prompts = 1000\nmax_sessions = 100\n");
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    world.run(&["hold", &session]).code(0);
    let prompts: Vec<_> = (0..65).map(|_| editor.prompt(&session, "say One.")).collect();
    let error = editor.reply(prompts[64]).unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("64 prompts"), "{error}");
    for _ in 1..64 {
        editor.open(&world);
    }
    let error = editor.fails("session/new", folder(&world.path("work")));
    assert!(error["message"].as_str().unwrap().contains("64 sessions"), "{error}");
}

#[test]
fn m_h1_the_first_request_must_introduce_the_editor() {
    let world = World::new();
    let mut editor = Editor::start(&world);
    let error = editor.fails("session/new", folder(&world.path("work")));
    assert!(error["message"].as_str().unwrap().contains("initialize"), "{error}");
    assert_eq!(editor.call("initialize", json!({ "protocolVersion": 1 }))["protocolVersion"], 1);
}

/// Kills the daemon.
fn kill(world: &World) {
    kill_process(world.daemon().unwrap(), Signal::KILL).unwrap();
}

/// Checks the error of a prompt after the death of its daemon.
fn check_death(error: &Value) {
    assert!(error["message"].as_str().unwrap().contains("restarted"), "{error}");
}

/// A daemon that dies while a command runs.
fn die_in_a_command(world: &World, editor: &mut Editor, session: &str) {
    let prompt = editor.prompt(session, "shell: echo runs; sleep 1000");
    editor.update("tool_call_update", |update| update["content"].to_string().contains("runs"));
    kill(world);
    check_death(&editor.reply(prompt).unwrap_err());
    let by = Instant::now() + patience();
    while world.census.living().iter().any(|(_, line)| line.contains("sleep 1000")) {
        assert!(Instant::now() < by, "{:?}", world.census.living());
    }
}

/// A daemon that dies while an ask is open, which stays open.
fn die_in_an_ask(world: &World, editor: &mut Editor, session: &str) {
    let mode = |mode: &str| json!({ "sessionId": session, "modeId": mode });
    editor.call("session/set_mode", mode("ask"));
    let prompt = editor.prompt(session, "shell: touch made\n---\nsay Made.");
    let (id, _) = editor.asked("session/request_permission");
    kill(world);
    world.run(&["wait", session, "--for", "ask"]).code(0);
    assert!(!world.work("made").exists());
    editor.choose(&id, "allow_once");
    assert_eq!(editor.reply(prompt).unwrap()["stopReason"], "end_turn");
    std::fs::remove_file(world.work("made")).unwrap();
    editor.call("session/set_mode", mode("all"));
}

/// The editor reads and checks every line.
#[test]
fn t_f14_every_line_is_a_message_through_crashes_and_noise() {
    let world = World::new();
    world.config("policy = \"all\"\n");
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let noise = "shell: echo out; echo err >&2; kill -9 $$\n---\n\
                 shell: printf '\\x1b[2J\\xff{\"jsonrpc\":\"2.0\"}\\n'\n---\n\
                 say After \\n{}\\n noise.";
    for round in 0..rounds(20, 1000) {
        match round % 10 {
            1 => die_in_a_command(&world, &mut editor, &session),
            2 => die_in_an_ask(&world, &mut editor, &session),
            3 => {
                let prompt = editor.prompt(&session, "say One.\nhang");
                editor.update("agent_message_chunk", |update| update["content"]["text"] == "One.");
                kill(&world);
                check_death(&editor.reply(prompt).unwrap_err());
            }
            6 => {
                let prompt = editor.prompt(&session, "fail no luck");
                editor.reply(prompt).unwrap_err();
            }
            _ => assert_eq!(editor.play(&session, noise), "end_turn", "round {round}"),
        }
    }
}

/// The history is larger than the buffers between the daemon and the editor.
#[test]
fn t_f14_a_session_is_loaded_again_after_a_daemon_that_died_during_a_replay() {
    const MESSAGES: usize = 12;
    const BYTES: usize = 400_000;
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let flood = format!("flood 400 {}\ncall list_dir {{}}\n---\n", BYTES / 400);
    assert_eq!(editor.play(&session, &flood.repeat(MESSAGES)), "end_turn");
    drop(editor);
    for round in 0..rounds(3, 50) {
        let mut editor = Editor::new(&world);
        let load = editor.send("session/load", again(&world, &session));
        for _ in 0..=round % 4 {
            editor.update("agent_message_chunk", |_| true);
        }
        kill(&world);
        // The session is opened with all of its history.
        editor.reply(load).unwrap();
        assert!(editor.text("agent_message_chunk").len() >= MESSAGES * BYTES, "round {round}");
        assert_eq!(editor.play(&session, "say Continued."), "end_turn");
    }
}

#[test]
fn m_h1_a_session_that_was_resumed_shows_no_history_after_the_death_of_its_daemon() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    assert_eq!(editor.play(&session, "say Before."), "end_turn");
    drop(editor);
    let mut editor = Editor::new(&world);
    editor.call("session/resume", again(&world, &session));
    kill(&world);
    // A prompt to a daemon that has just died fails.
    world.run(&["daemon", "start"]).code(0);
    assert_eq!(editor.play(&session, "say After."), "end_turn");
    assert_eq!(editor.text("agent_message_chunk"), "After.");
}

#[test]
fn m_h1_a_stopped_daemon_is_started_by_the_next_prompt() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    let prompt = editor.prompt(&session, "say One.\nhang");
    editor.update("agent_message_chunk", |_| true);
    world.run(&["daemon", "stop"]).code(0);
    let error = editor.reply(prompt).unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("stopped"), "{error}");
    assert_eq!(world.daemon(), None);
    assert_eq!(editor.play(&session, "say Two."), "end_turn");
}

/// A terminal shows a panic on standard error, and a child of the program writes where it writes.
#[test]
fn m_h1_standard_output_has_messages_only() {
    let world = World::new();
    let mut editor = Editor::new(&world);
    let session = editor.open(&world);
    // The daemon was started by the program, and must not have its standard output.
    drop(editor.call("session/list", json!({})));
    assert_eq!(editor.end(), Some(0));
    let daemon = world.daemon().unwrap().as_raw_nonzero().get();
    // Another user than root can't look into the daemon.
    if let Ok(output) = std::fs::read_link(format!("/proc/{daemon}/fd/1")) {
        assert_eq!(output, std::path::Path::new("/dev/null"));
    }
    let mut command = world.command(&["acp"]);
    command.env("HOLDPOINT_LOG", "trace").stdin(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": 1 },
    });
    let load = json!({
        "jsonrpc": "2.0", "id": 2, "method": "session/load", "params": again(&world, &session),
    });
    writeln!(input, "{initialize}\n{load}\nnonsense").unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    assert!(!lines.is_empty());
    for line in lines.lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        assert_eq!(message["jsonrpc"], "2.0");
    }
}

/// As many replies as fill the output, and as many requests as the input holds.
#[test]
fn m_h1_the_agent_ends_with_its_input_although_nobody_reads_its_output() {
    let world = World::new();
    let mut command = world.command(&["acp"]);
    command.stdin(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    for id in 0..1500 {
        writeln!(input, "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"x\"}}").unwrap();
    }
    drop(input);
    assert_eq!(wait(&mut child).code(), Some(0));
    // The output was full, and was kept until now. How much a pipe holds depends on the sizes of writes.
    let output = child.wait_with_output().unwrap().stdout;
    let lines = output.iter().filter(|byte| **byte == b'\n').count();
    assert!(output.len() > 30_000 && lines < 1500, "{} bytes, {lines} lines", output.len());
}
