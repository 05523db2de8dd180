//! Y7: the program without a terminal that can show a screen.

use crate::tty::Tty;
use crate::world::World;

#[test]
fn t_y7_without_a_terminal_the_program_prints_a_list_and_a_hint() {
    let world = World::new();
    let ran = world.run(&[]).code(0);
    assert!(ran.out.starts_with("No sessions."), "{ran:#?}");
    assert!(ran.err.contains("hint: "), "{ran:#?}");
    world.opens("one", &[], "say Hello.");
    assert!(world.run(&[]).code(0).out.contains("one"));
}

#[test]
fn t_y7_with_standard_input_closed_it_is_a_list_or_lines_and_never_spins() {
    let world = World::new();
    world.opens("one", &[], "say Hello.");
    for (line, expected) in
        [("$P <&-", "ID "), ("$P </dev/null", "ID "), ("$P logs one <&-", "Hello.")]
    {
        let mut command = portable_pty::CommandBuilder::new("bash");
        command.args(["-c", line]);
        let mut tty =
            Tty::start(&world, command, &[("P", crate::world::program().to_str().unwrap())]);
        tty.wait_for(expected);
        assert!(!tty.is_taken());
        tty.end(0);
    }
}

#[test]
fn t_y7_a_dumb_terminal_gets_lines_instead_of_a_screen() {
    let world = World::new();
    world.opens("one", &[], "say Hello.");
    for (args, env) in [(&["attach", "one"][..], "dumb"), (&["attach", "--plain", "one"], "xterm")]
    {
        let mut command = portable_pty::CommandBuilder::new(crate::world::program());
        command.args(args);
        let mut tty = Tty::start(&world, command, &[("TERM", env)]);
        tty.wait_for("Hello.");
        assert!(!tty.is_taken());
        tty.signal("INT");
        tty.end(0);
    }
}

#[test]
fn t_y7_another_locale_changes_nothing() {
    let world = World::new();
    world.opens("one", &[], "say 漢字.");
    let mut command = portable_pty::CommandBuilder::new(crate::world::program());
    command.args(["attach", "one"]);
    let mut tty = Tty::start(&world, command, &[("LANG", "C"), ("NO_COLOR", "1")]);
    tty.wait_for("漢字.");
    let bytes = String::from_utf8_lossy(&tty.bytes()).into_owned();
    for colour in ["\x1b[38;5;", "\x1b[36m", "\x1b[48;5;"] {
        assert!(!bytes.contains(colour), "{colour:?}");
    }
    tty.press("\x18d");
    tty.end(0);
}

#[test]
fn t_y7_a_log_is_not_written_over_the_screen() {
    let world = World::new();
    world.opens("one", &[], "say Hello.");
    let program = crate::world::program();
    let env = [("P", program.to_str().unwrap()), ("HOLDPOINT_LOG", "debug")];
    let run = |line: &str| {
        let mut command = portable_pty::CommandBuilder::new("bash");
        command.args(["-c", line]);
        Tty::start(&world, command, &env)
    };
    let mut refused = run("$P attach one");
    refused.wait_for("hint: send it to a file: holdpoint 2>holdpoint.log");
    assert!(!refused.is_taken());
    refused.end(2);
    let mut elsewhere = run("$P attach one 2>holdpoint.log");
    elsewhere.wait_for("Hello.");
    assert!(elsewhere.is_taken());
    elsewhere.press("\x18d");
    elsewhere.end(0);
    let log = std::fs::read_to_string(world.path("work/holdpoint.log")).unwrap();
    assert!(log.contains("DEBUG"), "{log}");
}
