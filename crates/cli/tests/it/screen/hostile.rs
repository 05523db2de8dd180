//! Hostile output and pasted text: shown, with no other effect.

use std::time::{Duration, Instant};

use crate::tty::Tty;
use crate::world::{World, patience, rounds};

/// Control sequences, each as it arrives and as it is shown.
const ORDERS: [(&[u8], &str); 14] = [
    (b"\x1b]52;c;aGk=\x07", r"\u{1b}]52;c;aGk=\u{7}"),
    (b"\x1b]8;;http://x\x1b\\link", r"\u{1b}]8;;http://x\u{1b}\link"),
    (b"\x1b]0;title\x07", r"\u{1b}]0;title\u{7}"),
    (b"\x1b]2;title\x07", r"\u{1b}]2;title\u{7}"),
    (b"\x1b]9;note\x07", r"\u{1b}]9;note\u{7}"),
    (b"\x1b]777;notify;x\x07", r"\u{1b}]777;notify;x\u{7}"),
    (b"\x1b]1337;File=:aGk=\x07", r"\u{1b}]1337;File=:aGk=\u{7}"),
    (b"\x1bPq#0\x1b\\", r"\u{1b}Pq#0\u{1b}\"),
    (b"\x1b_Gx\x1b\\", r"\u{1b}_Gx\u{1b}\"),
    (b"\x1b[31mred", r"\u{1b}[31mred"),
    (b"\xc2\x9b31m", r"\u{9b}31m"),
    // Alone, this byte is not UTF-8. (The test's terminal shows no character for it.)
    (b"\x9b31mlone", "31mlone"),
    // These never end, so they would swallow all text after them.
    (b"\x1b]8;;http://y", r"\u{1b}]8;;http://y"),
    (b"\x1b]52;c;aGk=", r"\u{1b}]52;c;aGk="),
];

#[test]
fn t_c7_no_control_sequence_of_a_tool_reaches_the_terminal() {
    let world = World::new();
    let orders: Vec<_> = ORDERS.iter().map(|(order, _)| *order).collect();
    std::fs::write(world.work("orders"), orders.join(&b'\n')).unwrap();
    world.opens(
        "one",
        &["--policy", "all"],
        "shell: cat orders; echo; echo line two\nsay A \x1b]0;b\x1b[31m text.",
    );
    let mut program = portable_pty::CommandBuilder::new(crate::world::program());
    program.args(["attach", "one"]);
    let mut tty = Tty::start_on(&world, program, &[], 80, 50);
    tty.wait_for("done: 2 steps");
    tty.press("\x0f");
    for (_, shown) in ORDERS {
        tty.wait_for(&format!(" {shown}\n"));
    }
    tty.wait_for(" line two\n");
    tty.wait_for("A \\u{1b}]0;b\\u{1b}[31m text.");
    tty.press("\x18d");
    tty.end(0);
    let bytes = String::from_utf8(tty.bytes()).unwrap();
    // The titles are the program's own.
    let output = ["one - holdpoint", "holdpoint"]
        .iter()
        .fold(bytes, |bytes, title| bytes.replace(&format!("\x1b]2;{title}\x07"), ""));
    for order in [
        "\x1b]0",
        "\x1b]2",
        "\x1b]52",
        "\x1b]8;",
        "\x1b]9",
        "\x1b]777",
        "\x1b]1337",
        "\x1bP",
        "\x1b_",
        "\x1b[31m",
        "\u{9b}",
    ] {
        assert!(!output.contains(order), "{order:?} got through");
    }
}

#[test]
fn t_y6_a_paste_is_one_literal_paste_whatever_is_in_it() {
    let world = World::new();
    world.opens("one", &[], "say Hello.");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("done: 1 step");
    tty.press("\x1b[200~/quit\r\nsecond \x1b[31m\u{9b}line\r\x1b[201~");
    tty.wait_for("› /quit");
    tty.wait_for(r"second \u{1b}[31m\u{9b}line");
    assert!(!tty.text().contains("queued"), "{}", tty.text());
    // Byte by byte, the result is the same. (Except for the first byte: a lone escape is a key.)
    tty.press("\x03");
    tty.wait_until("cleared", |text| !text.contains("second"));
    tty.press("\x1b[");
    for byte in "200~one\rtwo\x1b[201~".bytes() {
        tty.press(std::str::from_utf8(&[byte]).unwrap());
    }
    tty.wait_for("› one\n  two");
    tty.press("\x18d");
    tty.end(0);
}

/// The author of pasted text can put the end of the paste into it: the text after that is pasted or
/// typed, too.
#[test]
fn t_y6_an_end_in_the_middle_of_a_paste_sends_nothing() {
    let world = World::new();
    world.run(&["new", "--name", "one"]).code(0);
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("Type a prompt");
    tty.press("\x1b[200~echo good\x1b[201~; evil\r\x1b[201~");
    tty.wait_for("› echo good; evil");
    // Everything that arrived at once is settled: a key is a key again.
    tty.press("typed");
    tty.wait_for("› echo good; evil\n  typed");
    let shown = world.run(&["show", "one"]).code(0).out;
    assert!(shown.contains("used      0 tokens") && !shown.contains("last turn"), "{shown}");
    tty.press("\x18d");
    tty.end(0);
}

#[test]
fn t_y6_a_line_feed_is_a_new_line_and_sends_nothing() {
    let world = World::new();
    world.opens("one", &[], "say Hello.");
    let mut program = portable_pty::CommandBuilder::new(crate::world::program());
    program.args(["attach", "one"]);
    let mut tty = Tty::start(&world, program, &[("EDITOR", "printf ' more' >>")]);
    tty.wait_for("done: 1 step");
    tty.press("say first");
    tty.wait_for("› say first");
    // Ctrl+J, and a paste by a terminal without bracketed paste.
    tty.press("\x0a");
    tty.press("say second\nsay third");
    tty.wait_for("› say first\n  say second\n  say third");
    // The same after an editor had the terminal.
    tty.press("\x18e");
    tty.wait_for("  say third more");
    tty.press("\x0asay fourth");
    tty.wait_for("  say third more\n  say fourth");
    tty.press("\r");
    tty.wait_until("it is sent as one", |text| text.matches("done: 1 step").count() == 2);
    tty.press("\x18d");
    tty.end(0);
}

#[test]
fn t_y6_the_screen_survives_a_paste_of_ten_mebibytes() {
    let world = World::new();
    world.opens("one", &[], "say Hello.");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("done: 1 step");
    let size = rounds(1, 10) * 1024 * 1024;
    tty.press("\x1b[200~");
    tty.press("pasted\n".repeat(size / 7));
    tty.press("\x1b[201~");
    tty.wait_for("[paste 1: ");
    tty.press("\x03");
    tty.wait_for("Ctrl+C again to leave");
    tty.press("\x18d");
    tty.end(0);
}

#[test]
fn t_d7_an_export_follows_no_link_that_was_planted() {
    let world = World::new();
    world.opens("one", &[], "say Hello.");
    std::os::unix::fs::symlink(world.path("victim"), world.work("out.md")).unwrap();
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("done: 1 step");
    tty.press("/export out.md");
    tty.wait_for("› /export out.md");
    tty.press("\r");
    tty.wait_for("already exists");
    assert!(!world.path("victim").exists());
    tty.press("\x18d");
    tty.end(0);
}

#[test]
fn t_y5_a_storm_of_resizes_ends_in_the_right_frame() {
    let world = World::new();
    world.opens("one", &[], "say Hello.\nshell: touch made");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("[Y] Approve");
    for round in 0..rounds(100, 1000) {
        let cells = u16::try_from(round * 7 % 200).unwrap();
        tty.resize(cells, cells / 3);
    }
    for (columns, rows) in [(1, 1), (0, 0), (1000, 1000), (40, 12)] {
        tty.resize(columns, rows);
    }
    let right = |text: &str| {
        let lines: Vec<_> = text.lines().collect();
        lines.len() == 12
            && text.contains("[Y] Approve [N] Deny (Esc to interrupt)")
            && lines[11].contains("ctrl+x p")
    };
    tty.wait_until("the small frame", right);
    tty.resize(80, 24);
    tty.wait_until("the usual frame", |text| {
        text.contains("› (from the command line) say Hello.") && text.lines().count() == 24
    });
    tty.press("\x18d");
    tty.end(0);
}

#[test]
fn t_y5_a_key_that_is_pressed_as_the_size_changes_is_not_lost() {
    let world = World::new();
    world.opens("one", &[], "say Hello.");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("done: 1 step");
    let mut typed = String::from("› ");
    for round in 0..rounds(60, 600) {
        tty.resize(80 + u16::try_from(round % 2).unwrap(), 24);
        tty.press("q");
        typed.push('q');
        tty.wait_for(&typed);
        if typed.len() > 60 {
            tty.press("\x15");
            typed.truncate("› ".len());
            tty.wait_for("Type a prompt");
        }
    }
    tty.press("\x18d");
    tty.end(0);
}

#[test]
fn an_idle_screen_draws_nothing() {
    let world = World::new();
    world.opens("one", &[], "say Hello.");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("done: 1 step");
    // Output after the last line is in transit. A screen that draws by a clock never has a second
    // without a byte.
    let by = Instant::now() + patience();
    let mut before = 0;
    while tty.bytes().len() != before {
        assert!(Instant::now() < by, "{:?}", String::from_utf8_lossy(&tty.bytes()[before..]));
        before = tty.bytes().len();
        std::thread::sleep(Duration::from_millis(1_200));
    }
    tty.press("\x18d");
    tty.end(0);
}
