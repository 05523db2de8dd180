//! Whole stories: from the hub into a session and back, and two clients in one session.

use std::time::{Duration, Instant};

use holdpoint_common::{Event, Fact, PromptFact};
use rustix::process::{Pid, Signal, kill_process};

use crate::tty::{Tty, signal_to};
use crate::world::{World, patience, rounds};

impl World {
    /// Opens a session with this name that plays a script.
    #[track_caller]
    pub(crate) fn opens(&self, name: &str, args: &[&str], script: &str) {
        self.run(&[&["new", "--name", name], args, &[script]].concat()).code(0);
    }
}

#[test]
fn m_e1_from_the_hub_to_a_session_detached_and_back() {
    let world = World::new();
    let mut tty = Tty::run(&world, &[]);
    tty.wait_for("New session");
    assert!(!tty.text().contains("Resume"), "{}", tty.text());
    tty.press("\r");
    tty.wait_for("policy ask");
    tty.press("say Hello **there**.\x1b\rshell: touch made");
    tty.wait_for("› say Hello **there**.");
    tty.press("\r");
    tty.wait_for("Hello there.");
    tty.wait_for("[Y] Approve [N] Deny (Esc to interrupt)");
    tty.wait_for("│ touch made");
    tty.wait_for("⏸ waiting for approval");
    tty.press("\x18d");
    tty.end(0);
    let shown: serde_json::Value =
        serde_json::from_str(&world.run(&["show", "work", "--json"]).code(0).out).unwrap();
    let id = shown["settings"]["id"].as_str().unwrap();
    tty.wait_for(&format!(
        "detached; the session keeps running. Return with `holdpoint attach {id}`"
    ));

    // Later, the hub lists the waiting session first.
    let mut tty = Tty::run(&world, &[]);
    tty.wait_for("1 ask needs you");
    tty.wait_for("⏸ work");
    tty.press("\r");
    tty.wait_for("Hello there.");
    tty.press_until("y", "→ approved");
    tty.wait_for("done: 2 steps");
    assert!(world.work("made").exists());
    // Esc returns to the hub, which now offers to resume the session; Ctrl+C leaves the hub.
    tty.press("\x1b");
    tty.wait_for("Resume say Hello");
    tty.press("\x03\x03");
    tty.end(0);
}

#[test]
fn m_a5_two_terminals_in_one_session_show_who_answered() {
    let world = World::new();
    world.opens("one", &[], "shell: touch made\n---\nsay Done.");
    let mut first = Tty::run(&world, &["attach", "one"]);
    let mut second = Tty::run(&world, &["attach", "one"]);
    for tty in [&first, &second] {
        tty.wait_for("[Y] Approve");
    }
    first.press_until("y", "→ approved");
    second.wait_for(&format!("→ approved from the screen (pid {})", first.pid()));
    for tty in [&first, &second] {
        tty.wait_for("done: 2 steps");
        assert!(!tty.text().contains("[Y] Approve"), "{}", tty.text());
    }
    assert!(!first.text().contains(" from the screen (pid"), "{}", first.text());
    first.press("\x18d");
    first.end(0);
    second.press("\x18d");
    second.end(0);
}

#[test]
fn m_d1_held_and_released_in_the_middle_of_a_turn() {
    let world = World::new();
    assert!(std::process::Command::new("mkfifo").arg(world.work("go")).status().unwrap().success());
    world.opens(
        "one",
        &["--policy", "all"],
        "shell: read line < go\n---\nshell: touch made\n---\nsay Done.",
    );
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("● shell: read line");
    tty.wait_for("ctrl+x p pause");
    tty.press("\x18p");
    tty.wait_for("PAUSING...");
    tty.wait_for("ctrl+x p play");
    // The same keys again withdraw the hold.
    tty.press("\x18p");
    tty.wait_until("the withdrawn hold", |text| !text.contains("PAUSING"));
    tty.press("\x18p");
    tty.wait_for("PAUSING...");
    std::fs::write(world.work("go"), "\n").unwrap();
    tty.wait_for("⏸ PAUSED");
    assert!(!world.work("made").exists());
    tty.press("\x18p");
    tty.wait_for("done: 3 steps");
    assert!(world.work("made").exists());
    tty.press("\x18d");
    tty.end(0);
}

#[test]
fn m_c6_esc_interrupts_and_says_so() {
    let world = World::new();
    world.opens("one", &["--policy", "all"], "shell: sleep 1000");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("● shell: sleep 1000");
    let runs = || world.census.living().iter().any(|(_, what)| what.contains("sleep 1000"));
    let by = Instant::now() + patience();
    while !runs() {
        assert!(Instant::now() < by, "the process has not started");
        std::thread::yield_now();
    }
    tty.press("\x1b");
    tty.wait_for("Agent interrupted");
    tty.wait_for("1 tool stopped, 1 process ended");
    tty.press("\x18d");
    tty.end(0);
    assert!(!runs());
}

#[test]
fn m_e5_hiding_steps_applies_to_earlier_steps_too() {
    let world = World::new();
    world.opens(
        "one",
        &["--policy", "all"],
        "think A\\tthought.\nshell: echo out\nsay So it is\\tsaid.",
    );
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("A    thought.");
    tty.wait_for("done: 2 steps");
    tty.press("\x16");
    tty.wait_until("without steps", |text| {
        !text.contains("A    thought.")
            && !text.contains("✓ shell")
            && text.contains("So it is    said.")
    });
    tty.press("/steps\r");
    tty.wait_for("✓ shell: echo out");
    tty.wait_for("A    thought.");
    tty.press("\x18d");
    tty.end(0);
}

#[test]
fn the_daemon_killed_while_attached_comes_back_and_nothing_is_missed() {
    let world = World::new();
    world.opens("one", &[], "say Before.\nshell: touch made\n---\nsay After.");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("[Y] Approve");
    tty.press("x");
    let status: serde_json::Value =
        serde_json::from_str(&world.run(&["status", "--json"]).code(0).out).unwrap();
    signal_to(u32::try_from(status["pid"].as_u64().unwrap()).unwrap(), "KILL");
    tty.wait_for("the daemon was restarted");
    tty.wait_for("the daemon is back");
    // The ask is open again, under the same id.
    tty.press_until("y", "→ approved");
    tty.wait_for("done: 2 steps");
    let count_of = |words| tty.text().lines().filter(|line| *line == words).count();
    assert_eq!((count_of("Before."), count_of("After.")), (1, 1), "{}", tty.text());
    assert!(world.work("made").exists());
    tty.press("\x18d");
    tty.end(0);
}

/// A wrong configuration keeps the daemon from starting. The screen retries until it starts,
/// however long that takes.
#[test]
fn m_b8_the_screen_retries_until_the_daemon_starts() {
    let world = World::new();
    world.opens("one", &[], "say Hello.");
    world.run(&["wait", "one", "--for", "idle"]).code(0);
    // An earlier close makes no difference.
    world.run(&["close", "one"]).code(0);
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("done: 1 step");
    let status: serde_json::Value =
        serde_json::from_str(&world.run(&["status", "--json"]).code(0).out).unwrap();
    world.config("wrong");
    signal_to(u32::try_from(status["pid"].as_u64().unwrap()).unwrap(), "KILL");
    tty.wait_for("config.toml");
    world.config("");
    tty.wait_for("the daemon is back");
    tty.press("say Again.\r");
    tty.wait_until("the second answer", |text| text.lines().any(|line| line == "Again."));
    tty.press("\x18d");
    tty.end(0);
}

#[test]
fn m_b8_a_stopped_daemon_starts_on_a_key_and_no_event_is_missed() {
    let world = World::new();
    world.opens("one", &[], "say Before.\nshell: touch made\n---\nsay After.");
    let mut hub = Tty::run(&world, &[]);
    hub.wait_for("1 ask needs you");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("[Y] Approve");
    world.run(&["daemon", "stop"]).code(0);
    for screen in [&tty, &hub] {
        screen.wait_for("The daemon was stopped.");
    }
    assert!(world.daemon().is_none(), "nothing restarts the daemon");
    hub.press("\x1b");
    hub.end(0);
    assert!(world.daemon().is_none());
    tty.press_until("\r", "the daemon is back");
    tty.press_until("y", "→ approved");
    tty.wait_for("done: 2 steps");
    let count_of = |words| tty.text().lines().filter(|line| *line == words).count();
    assert_eq!((count_of("Before."), count_of("After.")), (1, 1), "{}", tty.text());
    tty.press("\x18d");
    tty.end(0);
}

#[test]
fn m_b8_a_stopped_daemon_that_is_started_elsewhere_brings_the_screen_back() {
    let world = World::new();
    world.opens("one", &[], "say Before.");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("done: 1 step");
    world.run(&["daemon", "stop"]).code(0);
    tty.wait_for("The daemon was stopped.");
    world.run(&["prompt", "one", "say After."]).code(0);
    tty.wait_for("the daemon is back");
    tty.wait_until("what was said meanwhile", |text| text.lines().any(|line| line == "After."));
    tty.press("\x18d");
    tty.end(0);
}

#[test]
fn m_b8_a_resumed_screen_finds_a_restarted_daemon() {
    let world = World::new();
    world.opens("one", &[], "say Before.");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("done: 1 step");
    tty.signal("STOP");
    world.run(&["daemon", "restart"]).code(0);
    tty.signal("CONT");
    tty.wait_for("the daemon is back");
    tty.press("say After.\r");
    tty.wait_until("the second answer", |text| text.lines().any(|line| line == "After."));
    tty.press("\x18d");
    tty.end(0);
}

#[test]
fn a_session_that_takes_no_more_clients_is_not_opened_and_the_hub_says_so() {
    let world = World::new();
    world.config("[limits]\nmax_clients = 1\n");
    world.opens("one", &[], "say Hello.");
    let mut plain = Tty::run(&world, &["attach", "one", "--plain"]);
    plain.wait_for("done: 1 step");
    let mut hub = Tty::run(&world, &[]);
    hub.wait_for("one ");
    hub.press("one\r");
    hub.wait_for("the limit of 1 attached clients is reached");
    hub.wait_until("no longer opening", |text| !text.contains("opening"));
    plain.press("\x03");
    plain.end(0);
    hub.press_until("\r", "done: 1 step");
    hub.press("\x18d");
    hub.end(0);
}

#[test]
fn an_action_that_fails_shows_its_hint() {
    let world = World::new();
    world.config("[limits]\nmax_sessions = 1\n");
    world.opens("one", &["--policy", "all"], "shell: sleep 1000");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("● shell: sleep 1000");
    tty.press("\x18n");
    tty.wait_for("close one, or");
    tty.press("\x18d");
    tty.end(0);
    world.run(&["interrupt", "one"]).code(0);
}

#[test]
fn m_b4_a_session_that_was_closed_is_followed_again_when_it_is_live_again() {
    let world = World::new();
    world.opens("one", &[], "say Before.");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    let mut other = Tty::run(&world, &["attach", "one"]);
    // A screen that attaches after the close would open the session again.
    for screen in [&tty, &other] {
        screen.wait_for("done: 1 step");
    }
    for (opens, reply) in [("prompt", "After."), ("enter", "Again.")] {
        world.run(&["close", "one"]).code(0);
        for screen in [&tty, &other] {
            screen.wait_for("Enter opens it again");
        }
        let prompt = format!("say {reply}");
        match opens {
            "prompt" => _ = world.run(&["prompt", "one", &prompt]).code(0),
            _ => {
                other.press("\r");
                other.wait_until("open again", |text| !text.contains("Enter opens it again"));
                other.press(format!("{prompt}\r"));
            }
        }
        for screen in [&tty, &other] {
            screen.wait_until("what was said", |text| text.lines().any(|line| line == reply));
            assert!(!screen.text().contains("one closed"), "{}", screen.text());
        }
    }
    let count_of = |words| tty.text().lines().filter(|line| *line == words).count();
    assert_eq!(
        (count_of("Before."), count_of("After."), count_of("Again.")),
        (1, 1, 1),
        "{}",
        tty.text()
    );
    for screen in [&mut tty, &mut other] {
        screen.press("\x18d");
        screen.end(0);
    }
}

/// Another client closes the session while the question is open.
#[test]
fn closing_a_closed_session_does_not_open_it() {
    let world = World::new();
    world.opens("one", &[], "say Hello.");
    world.run(&["wait", "one", "--for", "idle"]).code(0);
    let mut hub = Tty::run(&world, &[]);
    hub.wait_for("one ");
    hub.press("one");
    hub.wait_for("filter: one");
    hub.press("\x1b[B\x04");
    hub.wait_for("Close one?");
    world.run(&["close", "one"]).code(0);
    let before = world.run(&["logs", "one", "--json"]).code(0).events().len();
    hub.press("y");
    hub.wait_for("closed; it stays saved");
    assert_eq!(world.run(&["logs", "one", "--json"]).code(0).events().len(), before);
    hub.press("\x1b\x03\x03");
    hub.end(0);
}

#[test]
fn m_b2_prompts_are_taken_in_the_order_in_which_they_are_typed() {
    let world = World::new();
    world.opens("one", &[], "say Ready.");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("done: 1 step");
    let mut typed = vec!["say Ready.".to_owned()];
    for burst in 0..8 {
        let words: Vec<_> =
            ["a", "b", "c"].iter().map(|word| format!("say {word}{burst}")).collect();
        tty.press(words.iter().map(|word| format!("{word}\r")).collect::<String>());
        tty.wait_until("the last answer", |text| {
            text.lines().any(|line| line == format!("c{burst}"))
        });
        typed.extend(words);
    }
    let events = world.run(&["logs", "one", "--json"]).code(0).events();
    let accepted = |event: &Event| match event.fact() {
        Some(Fact::Prompt(PromptFact::Accepted { text, .. })) => Some(text.to_string()),
        _ => None,
    };
    assert_eq!(events.iter().filter_map(accepted).collect::<Vec<_>>(), typed);
    tty.press("\x18d");
    tty.end(0);
}

#[test]
fn the_model_and_the_log_are_changed_from_the_screen() {
    let world = World::new();
    world.opens("one", &[], "say Hello.");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("done: 1 step");
    tty.press("/debug\r");
    tty.wait_for(&format!("logged at debug level, from the screen (pid {})", tty.pid()));
    tty.press("/model nowhere/x\r");
    tty.wait_for("no model provider `nowhere`; ");
    tty.press("/model ollama/llama3\r");
    tty.wait_for("model changed to ollama/llama3 for the next turns");
    let shown: serde_json::Value =
        serde_json::from_str(&world.run(&["show", "one", "--json"]).code(0).out).unwrap();
    assert_eq!(
        (&shown["settings"]["model"], &shown["isDebugEnabled"]),
        (&"ollama/llama3".into(), &true.into())
    );
    tty.press("/debug\r");
    tty.wait_for("no longer logged at debug level");
    tty.press("\x18d");
    tty.end(0);
}

#[test]
fn prompts_wait_are_shown_and_run_in_order() {
    let world = World::new();
    assert!(std::process::Command::new("mkfifo").arg(world.work("go")).status().unwrap().success());
    world.opens("one", &["--policy", "all"], "shell: read line < go\nsay First.");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("● shell: read line");
    tty.press("say Second.");
    tty.wait_for("› say Second.");
    tty.press("\r");
    tty.wait_for("queued: say Second.");
    std::fs::write(world.work("go"), "\n").unwrap();
    tty.wait_until("the second answer", |text| text.lines().any(|line| line == "Second."));
    assert!(!tty.text().contains("queued:"), "{}", tty.text());
    tty.press("\x18d");
    tty.end(0);
}

#[test]
fn m_e5_the_configuration_sets_the_initial_view_and_the_keys() {
    let world = World::new();
    world.config("[tui]\nshow_intermediate_steps = false\n[tui.keys]\nhold = \"f8\"\n");
    world.opens("one", &["--policy", "all"], "shell: echo out\nsay So it is\\tsaid.");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("So it is    said.");
    tty.wait_for("f8 pause");
    assert!(!tty.text().contains("✓ shell"), "{}", tty.text());
    tty.press("\x1b[19~");
    tty.wait_for("⏸ PAUSED");
    tty.wait_for("f8 play");
    tty.press("\x18d");
    tty.end(0);
    world.config("[tui.keys]\nhold = \"p\"\n");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.end(2);
    tty.wait_for("tui.keys.hold: `p` is not a valid key");
}

#[test]
fn the_hub_lists_filters_closes_and_deletes_sessions() {
    let world = World::new();
    let mut tty = Tty::run(&world, &[]);
    tty.wait_for("New session");
    world.opens("parser", &[], "say Parsed.");
    tty.wait_for("parser               idle (done)");
    world.opens("other", &[], "say Other.");
    tty.wait_for("other                idle (done)");
    tty.press("pars");
    tty.wait_until("filtered", |text| text.contains("parser") && !text.contains("other"));
    // A live session is closed first, and stays saved.
    tty.press("\x04");
    tty.wait_for("Close parser?");
    tty.press("y");
    tty.wait_for("saved, idle (done)");
    tty.press("\x04");
    tty.wait_for("Delete parser");
    tty.press("n");
    tty.wait_until("no dialog", |text| !text.contains("Delete parser"));
    tty.press("\x04");
    tty.wait_for("Delete parser");
    tty.press("y");
    tty.wait_for("no session matches");
    tty.press("\x1b");
    tty.wait_for("other                idle (done)");
    tty.press("\x03\x03");
    tty.end(0);
    assert!(!world.run(&["list"]).code(0).out.contains("parser"));
}

#[test]
fn m_b2_keys_are_all_read_whenever_the_machine_stalls() {
    let world = World::new();
    world.opens("one", &[], "say Ready.");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("done: 1 step");
    let program = Pid::from_raw(tty.pid().cast_signed()).unwrap();
    let mut moments = fastrand::Rng::with_seed(1);
    for round in 0..rounds(100, 2_000) {
        // One read must take all of it: the terminal does not wake the reader again for the rest of
        // the buffered keys.
        let end = format!("<{round}>");
        tty.press(format!("{}{end}", "word ".repeat(100)));
        std::thread::sleep(Duration::from_micros(moments.u64(0..4_000)));
        kill_process(program, Signal::STOP).unwrap();
        std::thread::sleep(Duration::from_millis(3));
        kill_process(program, Signal::CONT).unwrap();
        tty.wait_for(&end);
        tty.press("\x1b");
        // A frame that is half read does not show the words either.
        tty.wait_for("Type a prompt");
    }
    tty.press("\x18d");
    tty.end(0);
}
