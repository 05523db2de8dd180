//! Y1: however the program ends, the terminal is restored.

use std::time::{Duration, Instant};

use crate::tty::{Tty, signal_to};
use crate::world::{World, rounds};

fn running(world: &World) -> Tty {
    let tty = Tty::run(world, &["attach", "one"]);
    tty.wait_for("● shell: sleep 1000");
    assert!(tty.is_taken());
    tty
}

#[test]
fn t_y1_signals_give_the_terminal_back_and_the_session_goes_on() {
    let world = World::new();
    world.opens("one", &["--policy", "all"], "shell: sleep 1000");
    for _ in 0..rounds(10, 100) {
        for (signal, code) in [("TERM", 143), ("INT", 130), ("HUP", 129), ("QUIT", 131)] {
            let mut tty = running(&world);
            tty.signal(signal);
            tty.end(code);
        }
    }
    assert!(world.run(&["show", "one"]).code(0).out.contains("status    running"));
    world.run(&["interrupt", "one"]).code(0);
}

#[test]
fn t_y1_leaving_gives_the_terminal_back() {
    let world = World::new();
    world.opens("one", &["--policy", "all"], "shell: sleep 1000");
    for _ in 0..rounds(10, 100) {
        let mut tty = running(&world);
        tty.press("\x18q");
        tty.wait_for("[D] Detach");
        tty.press("\r");
        tty.end(0);
        assert!(!tty.is_taken());
    }
    world.run(&["interrupt", "one"]).code(0);
}

#[test]
fn m_b8_leaving_waits_until_the_chosen_session_is_closed() {
    let world = World::new();
    for round in 0..rounds(3, 100) {
        let name = format!("s{round}");
        world.opens(&name, &["--policy", "all"], "shell: sleep 1000");
        let mut tty = Tty::run(&world, &["attach", &name]);
        tty.wait_for("● shell: sleep 1000");
        tty.press("\x18q");
        tty.wait_for("[C] Close it");
        tty.press("c");
        tty.end(0);
        assert!(!tty.text().contains("detached"), "{}", tty.text());
        // The session has ended, and is not merely about to.
        let listed = world.run(&["list"]).code(0).out;
        assert!(listed.contains("saved"), "{listed}");
        assert!(!listed.contains("running"), "{listed}");
        world.run(&["rm", &name]).code(0);
    }
}

#[test]
fn m_b10_a_terminal_that_is_gone_ends_the_program_and_not_the_session() {
    let world = World::new();
    world.opens("one", &["--policy", "all"], "shell: sleep 1000");
    for _ in 0..rounds(2, 100) {
        let mut tty = running(&world);
        tty.hang_up();
        tty.wait();
    }
    assert!(world.run(&["show", "one"]).code(0).out.contains("status    running"));
    world.run(&["interrupt", "one"]).code(0);
}

#[test]
fn t_y1_broken_output_gives_the_terminal_back() {
    let world = World::new();
    // The output goes into a pipe that breaks. At an ask, the program reads keys, too.
    let line = "$P attach $S | head -c 20; echo over ${PIPESTATUS[0]}";
    for round in 0..rounds(3, 100) {
        let name = format!("asks{round}");
        world.opens(
            &name,
            &[],
            "say These are more than twenty bytes.\nshell: touch made\nsay Nobody reads this.",
        );
        // With the ask open, everything is written at once, and the pipe does not break before it
        // is shown.
        world.run(&["wait", &name, "--for", "ask"]).code(0);
        let mut command = portable_pty::CommandBuilder::new("bash");
        command.args(["-c", line]);
        let mut tty = Tty::start(
            &world,
            command,
            &[("P", crate::world::program().to_str().unwrap()), ("S", &name)],
        );
        tty.wait_for("[Y] Approve [N] Deny");
        tty.wait_taken();
        tty.press_until("n", "over 141");
        tty.end(0);
        world.run(&["close", &name]).code(0);
    }
    let words = "word ".repeat(20_000);
    world.opens("talks", &[], &format!("say@200 {words}"));
    let line = "$P logs -f talks 2>&1 | head -c 20; echo over ${PIPESTATUS[0]}";
    for _ in 0..rounds(10, 100) {
        let mut command = portable_pty::CommandBuilder::new("bash");
        command.args(["-c", line]);
        let mut tty =
            Tty::start(&world, command, &[("P", crate::world::program().to_str().unwrap())]);
        tty.wait_for("over 141");
        tty.end(0);
    }
    world.run(&["interrupt", "talks"]).code(0);
}

#[test]
fn t_y1_a_term_while_stopped_restores_the_terminal() {
    let world = World::new();
    world.opens("one", &["--policy", "all"], "shell: sleep 1000");
    let mut tty = running(&world);
    tty.signal("STOP");
    tty.signal("TERM");
    tty.signal("CONT");
    tty.end(143);
    world.run(&["interrupt", "one"]).code(0);
}

#[test]
fn t_y1_a_full_terminal_does_not_keep_the_program() {
    let world = World::new();
    world.opens("one", &["--policy", "all"], "flood 2000000 64");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("Esc interrupt");
    // The terminal is full, so a frame stays half written.
    tty.stop_reading();
    tty.resize(300, 200);
    tty.signal("TERM");
    assert_eq!(tty.wait().exit_code(), 143);
    tty.assert_modes_restored();
    world.run(&["interrupt", "one"]).code(0);
}

#[test]
fn t_y2_the_next_screen_repairs_the_terminal_of_a_killed_one() {
    let world = World::new();
    world.opens("one", &[], "say Hello.");
    let mut command = portable_pty::CommandBuilder::new("bash");
    // A shell that does not restore the terminal itself.
    command.args([
        "-c",
        "$P attach one; echo killed: $?; read -n 1; printf '\\033[2J'; $P attach one",
    ]);
    let mut tty = Tty::start(&world, command, &[("P", crate::world::program().to_str().unwrap())]);
    tty.wait_for("done: 1 step");
    let shell = tty.pid();
    let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
    signal_to(children.trim().parse().unwrap(), "KILL");
    tty.wait_for("killed: 137");
    assert!(tty.is_taken(), "a killed screen can't restore the terminal");
    tty.press(" ");
    tty.wait_until("cleared", |screen| !screen.contains("killed"));
    tty.wait_for("done: 1 step");
    tty.press("\x18d");
    tty.end(0);
}

#[test]
fn t_y3_ctrl_z_stops_the_screen_and_fg_restores_it() {
    for line in ["$P attach one", "sh -c '$P attach one; true'"] {
        let world = World::new();
        world.opens("one", &[], "say Hello.");
        let mut tty = Tty::shell(&world);
        tty.press(format!("{line}\r"));
        tty.wait_for("done: 1 step");
        for _ in 0..rounds(10, 100) {
            tty.press("\x1a");
            tty.wait_for("Stopped");
            assert!(!tty.is_taken());
            // The shell is usable.
            tty.press("clear; echo $((6 * 7))\r");
            tty.wait_for("42\n$");
            tty.press("fg\r");
            tty.wait_for("done: 1 step");
            assert!(tty.is_taken());
        }
        tty.press("draft");
        tty.wait_for("› draft");
        tty.press("\x18d");
        tty.wait_for("detached; ");
        tty.press("exit\r");
        tty.wait();
        tty.assert_restored();
    }
}

#[test]
fn the_editor_writes_the_prompt_and_the_screen_comes_back() {
    let world = World::new();
    world.opens("one", &[], "say Hello.");
    let mut command = portable_pty::CommandBuilder::new(crate::world::program());
    command.args(["attach", "one"]);
    let mut tty = Tty::start(&world, command, &[("EDITOR", "printf ' and more' >>")]);
    tty.wait_for("done: 1 step");
    tty.press("say this");
    tty.wait_for("› say this");
    tty.press("\x18e");
    tty.wait_for("› say this and more");
    tty.press("\r");
    tty.wait_for("this and more\n");
    tty.press("\x18d");
    tty.end(0);
}

/// The terminal sends Ctrl+C to every process in it, including the screen that waits for the
/// editor.
#[test]
fn ctrl_c_in_the_editor_reaches_only_the_editor() {
    let world = World::new();
    world.opens("one", &[], "say Hello.");
    let mut command = portable_pty::CommandBuilder::new(crate::world::program());
    command.args(["attach", "one"]);
    let waits = r#"sh -c "echo edits; exec sleep 1000""#;
    let editor = format!(r#"sh -c 'trap : INT; {waits}; printf " and more" >> "$1"' sh"#);
    let mut tty = Tty::start(&world, command, &[("EDITOR", &editor)]);
    tty.wait_for("done: 1 step");
    tty.press("say this");
    tty.wait_for("› say this");
    tty.press("\x18e");
    tty.wait_for("edits");
    tty.press("\x03");
    tty.wait_for("› say this and more");
    tty.press("\x18d");
    tty.end(0);
}

#[test]
fn leaving_does_not_wait_for_a_daemon_that_is_being_started() {
    let world = World::new();
    world.opens("one", &[], "say Hello.");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("done: 1 step");
    // Another command holds the start lock for a long time.
    let turn = std::fs::File::create(world.path("data/holdpoint/start.lock")).unwrap();
    rustix::fs::flock(&turn, rustix::fs::FlockOperation::LockExclusive).unwrap();
    rustix::process::kill_process(world.daemon().unwrap(), rustix::process::Signal::KILL).unwrap();
    tty.wait_for("the daemon is gone");
    tty.press("\x18d");
    tty.end(0);
    // A program that waits for the daemon reports a late start.
    assert!(!tty.text().contains("has been starting"), "{}", tty.text());
}

#[test]
fn a_resumed_program_redraws_its_screen() {
    let world = World::new();
    world.opens("one", &[], "say Hello.");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("done: 1 step");
    let before = tty.bytes().len();
    signal_to(tty.pid(), "STOP");
    signal_to(tty.pid(), "CONT");
    let by = Instant::now() + crate::world::patience();
    while !String::from_utf8_lossy(&tty.bytes()[before..]).contains("Hello.") {
        assert!(Instant::now() < by, "{}", tty.text());
        std::thread::sleep(Duration::from_millis(2));
    }
    tty.press("\x18d");
    tty.end(0);
}

/// Otherwise the prompt would be lost without notice.
#[test]
fn m_b2_leaving_prints_prompts_that_a_hanging_daemon_did_not_accept() {
    let world = World::new();
    world.opens("one", &[], "say Hello.");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("done: 1 step");
    rustix::process::kill_process(world.daemon().unwrap(), rustix::process::Signal::STOP).unwrap();
    tty.press("say Mind this.\x0aand that\r\x18d");
    tty.end(0);
    let text = tty.text();
    assert!(text.contains("one has not accepted this prompt: "), "{text}");
    assert!(text.contains("\n  say Mind this.\n  and that\n"), "{text}");
}

#[test]
fn m_b2_leaving_prints_refused_prompts() {
    let world = World::new();
    world.config("[limits]\nmax_queued_prompts = 1\n");
    world.opens("one", &["--policy", "all"], "shell: sleep 1000");
    world.run(&["prompt", "one", "say Waits."]).code(0);
    let mut tty = running(&world);
    let daemon = world.daemon().unwrap();
    rustix::process::kill_process(daemon, rustix::process::Signal::STOP).unwrap();
    // The prompt is refused before the screen is left, or after.
    tty.press("say Mind this.\r\x18d");
    rustix::process::kill_process(daemon, rustix::process::Signal::CONT).unwrap();
    tty.end(0);
    let text = tty.text();
    assert!(
        text.contains("one has not accepted this prompt: ")
            && text.contains("\n  say Mind this.\n"),
        "{text}"
    );
    world.run(&["interrupt", "one"]).code(0);
}

#[test]
fn m_e1_leaving_a_new_session_at_once_keeps_its_prompt() {
    let world = World::new();
    let mut tty = Tty::run(&world, &[]);
    tty.wait_for("New session");
    tty.press("\x18n");
    tty.wait_for("Type a prompt");
    tty.press("say Mind this.\r\x18d");
    tty.end(0);
    assert!(tty.text().contains("detached; "), "{}", tty.text());
    let listed = world.run(&["list"]).code(0).out;
    assert!(listed.contains("Mind this."), "{listed}");
}
