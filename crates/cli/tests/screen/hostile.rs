//! What others say, and what is pasted: shown, and nothing more.

use std::time::{Duration, Instant};

use crate::tty::Tty;
use crate::world::{World, rounds};

#[test]
fn t_c7_no_order_of_a_tools_output_reaches_the_terminal() {
    let world = World::new();
    let orders = r"printf '\033]52;c;aGk=\a \033]8;;http://x\033\\link \033]0;title\a \033]9;note\a \033]777;x\a \033]1337;File=:aGk=\a \033Pq#0\033\\ \033_Gx\033\\ \033[31mred \233 next\n'; echo line two";
    world.opens(
        "one",
        &["--policy", "all"],
        &format!("shell: {}\nsay A \\x1b[31m text.", orders.replace('\\', "\\\\")),
    );
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("done: 2 steps");
    tty.press("\x0f");
    tty.wait_for("line two");
    let bytes = String::from_utf8_lossy(&tty.bytes()).into_owned();
    // What the program itself says: its title.
    let said = bytes.replace("\x1b]2;one - holdpoint\x07", "");
    for order in ["\x1b]52", "\x1b]8;", "\x1b]0;", "\x1b]9", "\x1b]777", "\x1b]1337", "\x1bP", "\x1b_", "\u{9b}"] {
        assert!(!said.contains(order), "{order:?} got through");
    }
    tty.press("\x18d");
    tty.end(0);
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
    // Byte by byte it is the same. (But for the very first: an escape alone is the key.)
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
    // Ctrl+J; and a paste by a terminal that has no brackets for it.
    tty.press("\x0a");
    tty.press("say second\nsay third");
    tty.wait_for("› say first\n  say second\n  say third");
    // The same where the terminal was given back between.
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
fn t_y6_ten_mebibytes_are_pasted_and_the_screen_is_alive() {
    let world = World::new();
    world.opens("one", &[], "say Hello.");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("done: 1 step");
    let size = rounds(1, 10) * 1024 * 1024;
    tty.press("\x1b[200~");
    tty.press(&"pasted\n".repeat(size / 7));
    tty.press("\x1b[201~");
    tty.wait_for("[paste 1: ");
    tty.press("\x03");
    tty.wait_for("Ctrl+C again leaves");
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
        lines.len() == 12 && text.contains("[Y] Approve [N] Deny (Esc to interrupt)") && lines[11].contains("ctrl+x p")
    };
    tty.wait_until("the small frame", right);
    tty.resize(80, 24);
    tty.wait_until("the usual frame", |text| text.contains("› (new) say Hello.") && text.lines().count() == 24);
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
            tty.wait_for("Say what to do");
        }
    }
    tty.press("\x18d");
    tty.end(0);
}

#[test]
fn idle_it_draws_nothing() {
    let world = World::new();
    world.opens("one", &[], "say Hello.");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("done: 1 step");
    // What follows the last line is on its way.
    let mut before = 0;
    while tty.bytes().len() != before {
        before = tty.bytes().len();
        std::thread::sleep(Duration::from_millis(300));
    }
    let by = Instant::now() + Duration::from_millis(700);
    while Instant::now() < by {
        assert_eq!(tty.bytes().len(), before, "{:?}", String::from_utf8_lossy(&tty.bytes()[before..]));
        std::thread::sleep(Duration::from_millis(50));
    }
    tty.press("\x18d");
    tty.end(0);
}
