//! `run` in a real terminal: keys answer asks, and the terminal is restored.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};

use super::pty::{ASKED, Terminal};
use crate::tty::{GUARD, Tty, pressed_late, until_conclusive};
use crate::world::{World, patience};

/// The program's standard input.
fn keys(terminal: &Terminal) -> OwnedFd {
    rustix::fs::open(terminal.path(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap()
}

/// Waits until the program has read every key.
fn wait_read(terminal: &Terminal) {
    let keys = keys(terminal);
    let by = Instant::now() + patience();
    while rustix::io::ioctl_fionread(&keys).unwrap() > 0 {
        assert!(Instant::now() < by, "the program does not read");
        std::thread::yield_now();
    }
}

#[test]
fn m_b9_a_row_of_the_list_is_a_row_of_the_terminal() {
    let world = World::new();
    let prompt = format!("say {}", "word ".repeat(50));
    let id = world.run(&["new", "--asks", "wait", &prompt]).code(0).out.trim().to_owned();
    world.run(&["wait", &id]).code(0);
    let mut terminal = Tty::run(&world, &["list"]);
    terminal.wait_for(&id);
    terminal.end(0);
    let text = terminal.contents();
    let row = text.lines().find(|line| line.starts_with(&id)).unwrap();
    assert!(row.ends_with('…') && row.chars().count() == 80, "{text}");
    // In a pipe, the row is whole.
    assert!(world.run(&["list"]).code(0).out.lines().any(|line| line.len() > 100));
}

#[test]
fn m_a10_y_approves() {
    for key in ["y", "Y"] {
        let world = World::new();
        let mut terminal = Terminal::run(&world, &["run", "shell: touch made\n---\nsay Done."]);
        terminal.wait_for(ASKED);
        assert!(terminal.text().contains("asks: wait (you answer here)"), "{}", terminal.text());
        assert!(terminal.text().contains("  │ touch made\n"), "{}", terminal.text());
        assert!(!world.work("made").exists());
        terminal.press_until(key, "→ approved");
        terminal.end(0);
        assert!(world.work("made").exists());
    }
}

#[test]
fn m_a10_n_denies_and_the_turn_continues() {
    let world = World::new();
    let mut terminal = Terminal::run(&world, &["run", "shell: touch made\n---\nsay Done."]);
    terminal.wait_for(ASKED);
    terminal.press_until("N", "→ denied");
    terminal.wait_for("Done.");
    terminal.end(0);
    assert!(!world.work("made").exists());
}

#[test]
fn m_a10_esc_and_ctrl_c_interrupt_at_once() {
    for key in ["\x1b", "\x03"] {
        let world = World::new();
        let mut terminal = Terminal::run(&world, &["run", "shell: touch made\n---\nsay Done."]);
        terminal.wait_for(ASKED);
        terminal.press(key);
        terminal.wait_for("Agent interrupted");
        terminal.wait_for("1 ask released");
        terminal.end(130);
        assert!(!world.work("made").exists());
    }
}

#[test]
fn m_b10_run_can_leave_a_daemon_that_hangs_at_an_ask() {
    for key in ["\x03", "y"] {
        let world = World::new();
        let mut terminal = Terminal::run(&world, &["run", "shell: touch made"]);
        terminal.wait_for(ASKED);
        kill_process(world.daemon().unwrap(), Signal::STOP).unwrap();
        // Keys count only after this time.
        assert!(!terminal.shows("→", Duration::from_millis(400)), "{}", terminal.text());
        // The answer never takes effect, so Ctrl+C leaves.
        terminal.press(key);
        terminal.press_until("\x03", "session work stays open; ");
        terminal.end(130);
    }
}

/// The session stays as it is, and its opener learns the command that closes it.
#[test]
fn m_b10_leaving_a_session_prints_the_command_that_closes_it() {
    let world = World::new();
    let mut terminal = Terminal::run(&world, &["run", "shell: touch made"]);
    terminal.wait_for(ASKED);
    let daemon = world.daemon().unwrap();
    kill_process(daemon, Signal::STOP).unwrap();
    terminal.press_until("\x03", "session work stays open; `holdpoint close ");
    terminal.end(130);
    kill_process(daemon, Signal::CONT).unwrap();
    let text = terminal.text();
    let (_, command) = text.split_once("`holdpoint ").unwrap();
    let (command, _) = command.split_once('`').unwrap();
    world.run(&command.split(' ').collect::<Vec<_>>()).code(0);
    assert!(world.run(&["list", "--json"]).code(0).out.contains("\"live\":false"));
}

/// The key that ended the ask counts as the first interrupt, although it is not a signal.
#[test]
fn m_b10_ctrl_c_at_an_ask_and_once_more_after_it_leaves() {
    for first in ["\x03", "\x1b"] {
        let world = World::new();
        world.config("[limits]\ngrace_ms = 60000\n");
        let stubborn = "shell: trap '' TERM; touch up; while true; do sleep 1; done";
        let script = format!("{stubborn}\ncall ask_user {{\"question\":\"Which?\"}}");
        let mut terminal = Terminal::run(&world, &["run", "--policy", "all", &script]);
        terminal.wait_for("Your words, then Enter");
        while !world.work("up").exists() {
            std::thread::yield_now();
        }
        terminal.press(first);
        // The ask was closed for this reason.
        terminal.wait_for("the turn was interrupted");
        terminal.press("\x03");
        terminal.wait_for("session work stays open; `holdpoint close ");
        terminal.end(130);
    }
}

#[test]
fn m_a10_one_ctrl_c_while_an_answer_is_on_its_way_interrupts() {
    let world = World::new();
    let mut terminal = Terminal::run(&world, &["run", "shell: sleep 1000"]);
    terminal.wait_for(ASKED);
    let daemon = world.daemon().unwrap();
    kill_process(daemon, Signal::STOP).unwrap();
    // Keys count only after this time.
    assert!(!terminal.shows("→", Duration::from_millis(400)), "{}", terminal.text());
    for key in ["y", "\x03"] {
        terminal.press(key);
        wait_read(&terminal);
    }
    kill_process(daemon, Signal::CONT).unwrap();
    terminal.wait_for("Agent interrupted");
    terminal.end(130);
    world.census.wait_none();
}

#[test]
fn m_a10_early_keys_and_other_input_never_approve() {
    until_conclusive(|| {
        let world = World::new();
        let mut terminal =
            Terminal::run(&world, &["run", "say wait\nwait 300ms\nshell: touch made"]);
        terminal.wait_for("wait");
        // Typed before the ask appeared, and just after.
        terminal.press("yY");
        let absent = terminal.wait_from(ASKED);
        terminal.press("y");
        if terminal.shows("→", GUARD + Duration::from_millis(100)) {
            return pressed_late(absent, &terminal);
        }
        // None of these keys is an answer.
        terminal.press("\r\n x1\t\x19\x1by");
        assert!(!terminal.shows("→ approved", Duration::from_millis(400)), "{}", terminal.text());
        // Nor does a key approve directly after any other sequence of a terminal.
        for input in [
            "\x1b]A",
            "\x1b]11;rgb:ffff/ffff/ffff\x1b\\",
            "\x1bP>|x\x1b\\",
            "\x1b[15~",
            "\x1b[<0;1;1M",
            "\x1b[I",
        ] {
            terminal.press(format!("{input}y"));
            assert!(
                !terminal.shows("→ approved", Duration::from_millis(400)),
                "{input:?}: {}",
                terminal.text()
            );
        }
        terminal.press_until("n", "→ denied");
        terminal.wait();
        assert!(!world.work("made").exists());
        true
    });
}

/// However long the pause, the rest of a reason answers no later ask.
#[test]
fn m_a10_words_for_an_ask_answered_elsewhere_are_dropped() {
    let world = World::new();
    let mut terminal =
        Terminal::run(&world, &["run", "shell: touch first\nshell: touch made\n---\nsay Done."]);
    terminal.wait_for(ASKED);
    terminal.press_until("r", "Reason, then Enter (Esc to go back)");
    terminal.press("not");
    terminal.wait_for("not");
    let asked = world.run(&["wait", "work", "--for", "ask"]).code(0).out;
    let (_, ask) = asked.split_once("(ask ").unwrap();
    world.run(&["approve", ask.trim_end().trim_end_matches(')')]).code(0);
    terminal.wait_for("→ approved from the command line (pid ");
    terminal.wait_for("Your words for it were not sent.");
    terminal.wait_for("│ touch made");
    terminal.press("es \r");
    terminal.press_until("n", "→ denied");
    terminal.end(0);
    assert!(!world.work("made").exists());
}

#[test]
fn always_is_offered_and_remembered() {
    let world = World::new();
    let mut terminal = Terminal::run(
        &world,
        &["run", "shell: echo x >> made\n---\nshell: echo x >> made\n---\nsay Done."],
    );
    terminal.wait_for(ASKED);
    terminal.wait_for("[A] Approve [D] Deny always in this session: ");
    terminal.press_until("a", "Press A again to approve always in this session: ");
    terminal.press_until("a", "→ approved, always in this session");
    terminal.end(0);
    assert_eq!(std::fs::read_to_string(world.work("made")).unwrap(), "x\nx\n");
}

#[test]
fn m_a10_a_denial_for_always_is_offered_and_remembered() {
    let world = World::new();
    let mut terminal = Terminal::run(
        &world,
        &["run", "shell: echo x >> made\n---\nshell: echo x >> made\n---\nsay Done."],
    );
    terminal.wait_for(ASKED);
    terminal.press_until("d", "Press D again to deny always in this session: ");
    terminal.press_until("d", "→ denied, always in this session");
    terminal.end(0);
    assert_eq!(terminal.text().matches("⏸ shell").count(), 1, "{}", terminal.text());
    assert!(!world.work("made").exists());
}

#[test]
fn several_asks_come_one_after_the_other() {
    let world = World::new();
    let mut terminal =
        Terminal::run(&world, &["run", "shell: touch one\nshell: touch two\n---\nsay Done."]);
    terminal.wait_for(ASKED);
    terminal.press_until("y", "→ approved");
    terminal.wait_for("● ");
    // Each ask has its own guard, so one key can't answer both.
    assert!(!(world.work("one").exists() && world.work("two").exists()));
    terminal.press_until("n", "→ denied");
    terminal.end(0);
    assert!(world.work("one").exists() != world.work("two").exists());
}

/// With the wording of the screen.
#[test]
fn m_a7_an_ask_is_shown_with_how_many_wait_behind_it() {
    let world = World::new();
    world.run(&["new", "--name", "one", "shell: touch one\nshell: touch two"]).code(0);
    let by = Instant::now() + patience();
    while !world.run(&["list", "--json"]).code(0).out.contains("\"asks\":2") {
        assert!(Instant::now() < by, "no ask was raised");
    }
    let mut terminal = Terminal::run(&world, &["attach", "--plain", "one"]);
    terminal.wait_for(ASKED);
    assert!(terminal.text().contains("\n  1 more waiting\n"), "{}", terminal.text());
    terminal.press("\x03");
    terminal.end(0);
}

#[test]
fn m_a7_the_shown_command_is_the_one_that_runs_and_has_no_escapes() {
    let world = World::new();
    let hostile = "shell: echo \u{1b}[2J\u{1b}[H\u{9b}8m\u{202e}safe\u{200b} ; touch made \u{1b}[1A\u{1b}[2K\r[Y] fine";
    let mut terminal = Terminal::run(&world, &["run", hostile]);
    terminal.wait_for(ASKED);
    let shown = r"  │ echo \u{1b}[2J\u{1b}[H\u{9b}8m\u{202e}safe\u{200b} ; touch made \u{1b}[1A\u{1b}[2K\u{d}[Y] fine";
    assert!(terminal.text().contains(shown), "{}", terminal.text());
    terminal.press_until("n", "→ denied");
    terminal.end(0);
}

#[test]
fn ctrl_c_while_a_command_runs_prints_the_receipt() {
    let world = World::new();
    let mut terminal = Terminal::run(
        &world,
        &["run", "--policy", "all", "shell: setsid sleep 1000 & echo up; wait"],
    );
    terminal.wait_for("│ up");
    terminal.press("\x03");
    terminal.wait_for("Agent interrupted");
    terminal.wait_for("1 tool stopped");
    terminal.end(130);
    world.census.wait_none();
}

#[test]
fn m_b10_a_signal_puts_the_terminal_back() {
    let world = World::new();
    let mut terminal = Terminal::run(&world, &["run", "shell: touch made"]);
    terminal.wait_for(ASKED);
    let pid = terminal.pid().try_into().ok().and_then(Pid::from_raw).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    terminal.end(143);
}

#[test]
fn m_a10_esc_interrupts_whatever_run_does() {
    let world = World::new();
    for asks in ["wait", "deny"] {
        let script = "shell: echo up; sleep 1000";
        let mut terminal =
            Terminal::run(&world, &["run", "--policy", "all", "--asks", asks, script]);
        terminal.wait_for("│ up");
        // A letter and a sequence that begins like Esc do nothing.
        terminal.press("y\x1b[A");
        wait_read(&terminal);
        terminal.press("\x1b");
        terminal.wait_for("Agent interrupted");
        terminal.end(130);
    }
    world.census.wait_none();
}

/// The shell must not receive the rest of an answer.
#[test]
fn m_a10_keys_for_a_closed_ask_do_not_reach_the_shell() {
    until_conclusive(|| {
        let world = World::new();
        let mut terminal = Tty::shell(&world);
        terminal.wait_for("$");
        terminal.press("$P run 'ask: Why?'\r");
        terminal.wait_for("Your words, then Enter");
        terminal.press_until("x", "> x");
        let answered = Instant::now();
        terminal.press("\r");
        terminal.wait_for("→ answered: x");
        terminal.press("touch leaked\r\r");
        if answered.elapsed() > GUARD / 2 {
            return false;
        }
        terminal.wait_until("the shell's prompt", |text| text.trim_end().ends_with('$'));
        terminal.press("echo next\r");
        terminal.wait_for("next\n$");
        assert!(
            !terminal.text().contains("leaked") && !world.work("leaked").exists(),
            "{}",
            terminal.text()
        );
        true
    });
}

#[test]
fn m_b10_a_resumed_job_reads_keys_again() {
    let world = World::new();
    let mut terminal = Tty::shell(&world);
    terminal.wait_for("$");
    terminal.press("$P run --policy all 'shell: echo up; sleep 1000'\r");
    terminal.wait_for("│ up");
    terminal.press("\x1a");
    terminal.wait_for("Stopped");
    terminal.press("echo shell\r");
    terminal.wait_for("shell\n$");
    terminal.press("fg\r");
    terminal.wait_taken();
    terminal.press_until("\x1b", "Agent interrupted");
    terminal.wait_until("the shell's prompt", |text| text.trim_end().ends_with('$'));
    // In the background, the program reads no keys and is not stopped for trying to.
    terminal.press("clear; $P run 'shell: echo up; sleep 1000' --policy all 2>&1 &\r");
    terminal.wait_for("│ up");
    terminal.press("\recho typed\r");
    terminal.wait_for("typed\n");
    terminal.press("fg\r");
    terminal.press_until("\x03", "Agent interrupted");
    terminal.wait_until("the shell's prompt", |text| text.trim_end().ends_with('$'));
    terminal.press_until("exit\r", "exit");
    terminal.wait();
    world.census.wait_none();
}

/// The terminal's changes do not stop a background job, and it leaves the shell's input alone.
#[test]
fn m_b10_a_job_resumed_in_the_background_runs_to_its_end() {
    let world = World::new();
    let mut terminal = Tty::shell(&world);
    terminal.wait_for("$");
    terminal.press(
        "$P run --policy all 'shell: echo up; until test -e go; do sleep 0.01; done\nsay Over.'\r",
    );
    terminal.wait_for("│ up");
    terminal.press("\x1a");
    terminal.wait_for("Stopped");
    terminal.press("bg\r");
    terminal.press("touch go\r");
    terminal.wait_for("Over.");
    let by = Instant::now() + patience();
    while !terminal.text().contains("Done ") {
        // The shell reports it at its next prompt.
        assert!(Instant::now() < by, "{}", terminal.text());
        terminal.press("\r");
        terminal.shows("Done ", Duration::from_millis(100));
    }
    terminal.press_until("exit\r", "exit");
    terminal.wait();
    world.census.wait_none();
}

/// Input for another program that had the terminal meanwhile is not an answer.
#[test]
fn m_a10_keys_typed_while_the_program_was_stopped_answer_nothing() {
    let world = World::new();
    let mut terminal = Terminal::run(&world, &["run", "shell: touch made\n---\nsay Done."]);
    terminal.wait_for(ASKED);
    std::thread::sleep(GUARD);
    for shown in 2..5 {
        terminal.stop();
        terminal.press("y");
        terminal.signal("CONT");
        terminal.wait_until("the ask again", |text| text.matches(ASKED).count() == shown);
        wait_read(&terminal);
    }
    terminal.press_until("n", "→ denied");
    terminal.end(0);
    assert!(
        !terminal.text().contains("approved") && !world.work("made").exists(),
        "{}",
        terminal.text()
    );
}

#[test]
fn m_a10_an_ask_is_shown_again_when_a_stopped_job_resumes() {
    for goes_on in ["fg\ry", "bg\r"] {
        let world = World::new();
        let mut terminal = Tty::shell(&world);
        terminal.wait_for("$");
        terminal.press("$P run 'shell: touch made'\r");
        terminal.wait_for(ASKED);
        std::thread::sleep(GUARD);
        terminal.press("\x1a");
        terminal.wait_for("Stopped");
        terminal.press("clear\r");
        terminal.wait_until("cleared", |text| !text.contains(ASKED));
        terminal.press(goes_on);
        if goes_on.starts_with("bg") {
            // The shell still has the terminal.
            terminal.press("echo shell\r");
            terminal.wait_for("shell\n");
            terminal.press("clear; fg\ry");
        }
        terminal.wait_for(ASKED);
        assert!(!terminal.text().contains("approved"), "{goes_on}: {}", terminal.text());
        terminal.press_until("n", "→ denied");
        terminal.wait_until("the shell's prompt", |text| text.trim_end().ends_with('$'));
        assert!(
            !terminal.text().contains("approved") && !world.work("made").exists(),
            "{}",
            terminal.text()
        );
        terminal.press("exit\r");
        terminal.wait();
    }
}

/// Ctrl+Z would drop the unread start of a sequence and turn its end into keys.
#[test]
fn m_a10_a_sequence_with_ctrl_z_in_it_does_not_answer() {
    let world = World::new();
    let mut terminal = Terminal::run(&world, &["run", "shell: touch made\n---\nsay Done."]);
    terminal.wait_for(ASKED);
    std::thread::sleep(GUARD);
    terminal.press("\x1bP\x1ay\x1b\\");
    wait_read(&terminal);
    terminal.press_until("n", "→ denied");
    terminal.end(0);
    assert!(
        !terminal.text().contains("approved") && !world.work("made").exists(),
        "{}",
        terminal.text()
    );
}
