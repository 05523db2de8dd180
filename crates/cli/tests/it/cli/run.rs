//! `run` in a pipe: its behaviour, output and exit codes.

use std::collections::BTreeMap;
use std::process::Stdio;

use holdpoint_common::{Delta, Event, Fact, ItemId, Outcome, SessionFact, ToolFact, TurnFact};
use holdpoint_tests::model_server::{ModelServer, Reply};

use crate::tty::Tty;
use crate::world::{Ran, World, finished, say, wait};

#[test]
fn model_text_goes_to_stdout_and_the_rest_to_stderr() {
    let world = World::new();
    let ran = world
        .play(&["--asks", "approve"], "think hm\nsay I look.\nshell: echo seen\n---\nsay Done.")
        .code(0);
    assert_eq!(ran.out, "I look.\nDone.\n");
    for line in [
        "model: rehearsal (no model is configured and no provider's key is set)",
        "asks: approve (--asks approve)",
        "hm",
        "sandbox: off (commands have your permissions)",
        "⏸ shell: Run this command without a sandbox?",
        "  │ echo seen",
        "  → approved (asks = approve)",
        "● shell: echo seen",
        "  │ seen",
    ] {
        assert!(ran.err.lines().any(|found| found == line), "{line}\n{}", ran.err);
    }
    assert!(ran.err.contains("done: 2 steps, about "), "{}", ran.err);
}

#[test]
fn the_first_script_of_the_manual_runs() {
    let world = World::new();
    let script =
        std::fs::File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/first.rehearsal"))
            .unwrap();
    let mut command = world.command(&["run", "--asks", "approve", "-"]);
    command.stdin(script);
    let ran = Ran::of(command).code(0);
    assert!(ran.err.contains("  │ Hello from work, with 3 lines.\n"), "{ran:#?}");
    assert!(ran.err.contains("1 process was still running and was ended"), "{ran:#?}");
    assert!(world.work("hello.sh").exists() && world.census.living().is_empty());
}

#[test]
fn m_a6_without_a_user_asks_are_denied_and_the_output_says_so() {
    let world = World::new();
    let ran = world.play(&[], "shell: touch made\n---\nsay Done.").code(3);
    assert!(!world.work("made").exists());
    assert!(
        ran.err.contains("asks: deny (this is not a terminal)")
            && ran.err.contains("because no user was there"),
        "{ran:#?}"
    );
    world.play(&["--asks", "deny"], "shell: touch made\n---\nsay Done.").code(3);
    world.play(&["--asks", "approve"], "shell: touch made\n---\nsay Done.").code(0);
    assert!(world.work("made").exists());
}

#[test]
fn m_e7_each_policy_mode_allows_and_denies_as_documented() {
    let world = World::new();
    let write = r#"call write_file {"path": "made", "content": "x"}"#;
    world.play(&["--policy", "readonly", "--asks", "approve"], write).code(0);
    assert!(!world.work("made").exists());
    world.play(&["--policy", "edits"], write).code(0);
    assert!(world.work("made").exists());
    world.play(&["--policy", "edits"], "shell: rm made").code(3);
    assert!(world.work("made").exists());
    world.play(&["--policy", "all"], "shell: rm made").code(0);
    assert!(!world.work("made").exists());
}

#[test]
fn m_e6_a_project_file_that_is_left_out_is_reported() {
    let world = World::new();
    let file = world.work("AGENTS.md");
    std::fs::write(world.path("outside"), "a secret").unwrap();
    std::os::unix::fs::symlink(world.path("outside"), &file).unwrap();
    let why = "AGENTS.md is left out: it is a link that leads out of the workspace";
    let has_line = |text: &str, why: &str| text.lines().any(|line| line == why);
    let ran = world.play(&[], "say Done.").code(0);
    assert!(has_line(&ran.err, why), "{ran:#?}");
    let ran = world.play(&["--json"], "say Done.").code(0);
    let cut = |event: &Event| matches!(event.fact(), Some(Fact::Turn(TurnFact::ProjectCut { reason })) if reason == why);
    assert_eq!(ran.events().iter().filter(|event| cut(event)).count(), 1);
    world.opens("one", &[], "say Done.");
    world.run(&["wait", "one"]).code(0);
    let log = world.run(&["logs", "one"]).code(0);
    assert!(has_line(&log.out, why), "{log:#?}");
    // The log of a saved session has the warning, too.
    world.run(&["daemon", "stop"]).code(0);
    let log = world.run(&["logs", "one"]).code(0);
    assert!(has_line(&log.out, why), "{log:#?}");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("AGENTS.md is left out");
    tty.press("\x18d");
    tty.end(0);

    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, b"Gr\xfc\xdfe").unwrap();
    let ran = world.play(&[], "say Done.").code(0);
    assert!(
        ran.err
            .contains("AGENTS.md is not UTF-8: the model gets \u{fffd} for invalid bytes; save it"),
        "{ran:#?}"
    );
}

#[test]
fn failures_and_limits_exit_with_1() {
    let world = World::new();
    let ran = world.play(&[], "say Well.\nfail out of order").code(1);
    assert!(ran.err.contains("failed: ") && ran.err.contains("out of order"), "{ran:#?}");
    let ran = world
        .play(&["--policy", "all", "--max-steps", "1"], "shell: true\n---\nsay Never.")
        .code(1);
    assert!(!ran.out.contains("Never") && ran.err.contains("limit"), "{ran:#?}");
}

#[test]
fn t_l13_a_cap_on_tokens_is_a_flag_and_a_key() {
    let world = World::new();
    let script = "shell: true\n---\nsay Never.";
    let ran = world.play(&["--policy", "all", "--max-turn-tokens", "1"], script).code(1);
    assert!(
        !ran.out.contains("Never") && ran.err.contains("the limit of 1 tokens is reached: "),
        "{ran:#?}"
    );
    world.config("max_turn_tokens = 1\n");
    let ran = world.play(&["--policy", "all"], script).code(1);
    assert!(
        !ran.out.contains("Never") && ran.err.contains("the limit of 1 tokens is reached: "),
        "{ran:#?}"
    );
    let ran = world.play(&["--policy", "all", "--max-turn-tokens", "0"], script).code(0);
    assert!(ran.out.contains("Never"), "{ran:#?}");
}

#[test]
fn a_wrong_command_line_exits_with_2_and_a_hint() {
    let world = World::new();
    for (args, what) in [
        (&["run", "--model", "nobody/x", "say hi"][..], "no model provider"),
        (&["run", "--model", "openai/x", "say hi"], "no key for openai"),
        (&["run", "--cwd", "/nowhere", "say hi"], "/nowhere"),
        (&["run", "  "], "empty"),
        (&["run"], "empty"),
    ] {
        let ran = world.run(args).code(2);
        assert!(
            ran.err.contains("error: ") && ran.err.contains("\nhint: ") && ran.err.contains(what),
            "{ran:#?}"
        );
    }
    for args in [&["run", "--asks", "maybe", "x"][..], &["walk"], &["run", "a", "b"]] {
        assert!(world.run(args).code(2).err.contains("error: "));
    }
    let mut command = world.command(&["run", "say hi"]);
    command.env("HOLDPOINT_LOG", "x=nonsense");
    assert!(Ran::of(command).code(2).err.contains("HOLDPOINT_LOG"));
}

#[test]
fn the_log_is_off_unless_it_is_asked_for() {
    let world = World::new();
    assert!(!world.play(&[], "say hi").code(0).err.contains("prompt accepted"));
    let mut command = world.command(&["run", "--in-process", "say hi"]);
    command.env("HOLDPOINT_LOG", "holdpoint_session=info");
    assert!(Ran::of(command).code(0).err.contains("prompt accepted"));
}

/// A log without a reader does not disturb the work.
#[test]
fn a_log_into_a_closed_pipe_is_no_fault() {
    let world = World::new();
    let mut command = world.command(&["run", "--in-process", "flood 10 10"]);
    command.env("HOLDPOINT_LOG", "trace");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(writer).status().unwrap();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn json_output_is_the_events_and_items_fold() {
    let world = World::new();
    let script = "think hm\nsay@1000 one two three\nflood 500 10\nshell: echo out; echo err >&2\n---\nsay Done.";
    fold(&world.play(&["--json", "--asks", "approve"], script).code(0).events());
}

fn fold(events: &[Event]) {
    assert!(events.windows(2).all(|pair| pair[0].seq < pair[1].seq), "{events:#?}");
    assert!(matches!(events[0].fact(), Some(Fact::Session(SessionFact::Opened { .. }))));
    assert!(matches!(
        events.last().unwrap().fact(),
        Some(Fact::Session(SessionFact::Closed { .. }))
    ));
    assert!(matches!(
        finished(events),
        Fact::Turn(TurnFact::Finished { outcome: Outcome::Done, .. })
    ));
    let mut items: BTreeMap<ItemId, String> = BTreeMap::new();
    let mut folded = 0;
    for event in events {
        match (event.delta(), event.fact()) {
            (
                Some(
                    Delta::Text { item, text }
                    | Delta::Thought { item, text }
                    | Delta::Output { item, text },
                ),
                _,
            ) => {
                items.entry(*item).or_default().push_str(text);
            }
            (Some(Delta::ItemSoFar { item, so_far, .. }), _) => {
                items.insert(*item, so_far.to_text());
            }
            (_, Some(Fact::Turn(TurnFact::AssistantMessage(message)))) => {
                for block in &message.blocks {
                    // A block without deltas appears here first.
                    assert_eq!(items.get(&block.item).unwrap_or(&block.text), &block.text);
                    folded += 1;
                }
            }
            (_, Some(Fact::Tool(ToolFact::Finished(result)))) => {
                let whole = result.output.to_text();
                assert_eq!(items.get(&result.call.item()).unwrap_or(&whole), &whole);
                assert_eq!(result.output.to_text(), "out\nerr\n");
                folded += 1;
            }
            _ => {}
        }
    }
    assert!(folded >= 4, "{folded}");
}

#[test]
fn a_flood_is_printed_whole() {
    let world = World::new();
    let words: String = (1..=10_000).map(|number| format!("word{number} ")).collect();
    let script = format!(
        "say {words}\nflood 100000 7\nshell: seq 1 2000; sleep 0.01; seq 2001 3000\n---\nsay ."
    );
    let numbers: String = (1..=3000).map(|number| format!("  │ {number}\n")).collect();
    // With the usual buffer, and with one so small that the program lags and attaches again many
    // times.
    for config in ["", "[limits]\nbuffered_events = 2\n"] {
        world.config(config);
        let ran = world.play(&["--policy", "all"], &script).code(0);
        assert!(ran.out.starts_with(words.trim_end()), "{}", ran.out);
        assert_eq!(ran.out.len(), words.trim_end().len() + 700_000 + 1 + 2);
        assert!(ran.err.contains(&numbers), "{}", ran.err);
    }
}

#[test]
fn no_control_sequence_reaches_the_output() {
    let world = World::new();
    let script = "say a\u{1b}[2Jb\u{9b}1m\u{202e}c\r\nthink \u{1b}]0;x\u{7}\nshell: printf '\\033[31mred\\r\\n\\233'; true # \u{200b}";
    let ran = world.play(&["--asks", "approve"], script).code(0);
    for text in [&ran.out, &ran.err] {
        let bad = |c: &char| {
            (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{202e}' | '\u{200b}')
        };
        assert_eq!(text.chars().find(bad), None, "{text:?}");
    }
    assert!(ran.out.contains(r"a\u{1b}[2Jb\u{9b}1m\u{202e}c"), "{ran:#?}");
    assert!(ran.err.contains(r"\u{1b}[31mred\u{d}") && ran.err.contains(r"\u{200b}"), "{ran:#?}");
}

#[test]
fn a_lost_reader_ends_the_run_without_an_error() {
    let world = World::new();
    for args in [&["--asks", "approve"][..], &["--asks", "approve", "--json"]] {
        let script = "say one\nshell: echo up; sleep 1000\n";
        let script = format!("{script}---\nflood 100000000 8");
        let mut child =
            world.command(&[&["run"], args, &[script.as_str()]].concat()).spawn().unwrap();
        // The first words are out, so the program is running.
        let mut out = child.stdout.take().unwrap();
        std::io::Read::read_exact(&mut out, &mut [0; 3]).unwrap();
        drop(out);
        // The program notices the missing reader only when it writes, so end the command to let the
        // turn continue. (With `--json`, the program writes the command's output too and may be
        // over already.)
        let sleeper =
            || world.census.living().into_iter().find(|(_, what)| what.starts_with("sleep 1000"));
        while child.try_wait().unwrap().is_none() && sleeper().is_none_or(|(pid, _)| !end(pid)) {
            std::thread::yield_now();
        }
        assert_eq!(wait(&mut child).code(), Some(141));
        let mut err = String::new();
        std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut err).unwrap();
        assert!(!err.contains("panicked") && !err.contains("error:"), "{err}");
        assert!(world.census.living().is_empty());
    }
}

fn end(pid: u32) -> bool {
    let kill = std::process::Command::new("kill")
        .args(["-s", "KILL", &pid.to_string()])
        .stderr(Stdio::null())
        .status();
    kill.unwrap().success()
}

#[test]
fn a_real_wire_carries_the_prompt_and_no_secret_reaches_a_tool() {
    let world = World::new();
    let server = ModelServer::start();
    server
        .reply(Reply::calls([("shell", r#"{"command":"env"}"#)]))
        .reply(Reply::text(["All ", "done."]));
    let mut command = world.command(&["run", "--asks", "approve", "--model", "openai/test", "-"]);
    command
        .env("OPENAI_API_KEY", "sk-secret")
        .env("OPENAI_BASE_URL", server.base_url())
        .stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    say(&mut child.stdin.take().unwrap(), "Tidy up.");
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), output.stdout.as_slice()),
        (Some(0), &b"All done.\n"[..]),
        "{err}"
    );
    assert!(
        err.contains("model: openai/test (--model)") && err.contains("XDG_TEST_MARK=marked-"),
        "{err}"
    );
    assert!(!err.contains("secret"), "{err}");
    assert!(server.request(0).texts("user").iter().any(|text| text.contains("Tidy up.")));
    assert_eq!(server.request(0).header("authorization"), Some("Bearer sk-secret"));
    server.assert_no_violations();
}
