//! Asks on the screen: the text shown, the keys that answer, and the keys that do not.

use std::time::{Duration, Instant};

use crate::tty::{GUARD, Tty, pressed_late, until_conclusive};
use crate::world::World;

const ASKED: &str = "[Y] Approve [N] Deny (Esc to interrupt)";

#[test]
fn m_a10_keys_typed_before_an_ask_do_not_answer_and_stay_in_the_draft() {
    until_conclusive(|| {
        let world = World::new();
        world.opens("one", &["--policy", "ask"], "wait 1s\nshell: touch made");
        let mut tty = Tty::run(&world, &["attach", "one"]);
        tty.wait_for("Esc interrupt");
        tty.press("yYy ");
        let absent = tty.wait_from(ASKED);
        tty.press("y");
        if tty.shows("→", GUARD + Duration::from_millis(100)) {
            return pressed_late(absent, &tty);
        }
        // None of these keys is an answer.
        tty.press("\r\nx1\t\x19q");
        assert!(!tty.shows("→", Duration::from_millis(400)), "{}", tty.text());
        tty.press_until("n", "→ denied");
        tty.wait_for("› yYy");
        assert!(!world.work("made").exists());
        tty.press("\x18d");
        tty.end(0);
        true
    });
}

#[test]
fn m_a10_keys_typed_while_the_screen_was_stopped_do_not_answer() {
    let world = World::new();
    world.opens("one", &["--policy", "ask"], "shell: touch made");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for(ASKED);
    for _ in 0..3 {
        std::thread::sleep(GUARD);
        tty.stop();
        tty.press("y");
        tty.signal("CONT");
        // The next keys are read after the `y`.
        tty.press("\x18?");
        tty.wait_for(" Help: ");
        tty.press("\x1b");
        tty.wait_for(ASKED);
    }
    tty.press_until("n", "→ denied");
    assert!(!world.work("made").exists());
    tty.press("\x18d");
    tty.end(0);
}

#[test]
fn m_a2_a_reason_is_typed_and_esc_goes_back() {
    let world = World::new();
    world.opens("one", &[], "shell: touch made\nsay Done.");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for(ASKED);
    tty.press_until("r", "Reason, then Enter (Esc to go back)");
    tty.press("yes");
    tty.wait_for("> yes");
    tty.press("\x1b");
    tty.wait_for(ASKED);
    tty.press_until("r", "Reason, then Enter");
    // Under load the key is pressed twice, and the second is a letter.
    tty.press("\x7f\x7f\x7fnot today");
    tty.wait_for("> not today");
    tty.press("\r");
    tty.wait_for("→ denied: not today");
    tty.press("\x18d");
    tty.end(0);
}

#[test]
fn m_e4_questions_are_answered_by_number_and_by_words() {
    let world = World::new();
    let script = r#"call ask_user {"questions": [{"id": "a", "header": "Colour", "question": "Which colour?", "options": [{"label": "red", "description": "like fire"}, {"label": "blue", "description": ""}]}, {"id": "b", "header": "Reason", "question": "And why?"}]}"#;
    world.opens("one", &[], script);
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("Colour: Which colour? (1 of 2)");
    tty.wait_for("1. red - like fire");
    tty.press_until("2", "Reason: And why? (2 of 2)");
    tty.press_until("s", "> s");
    tty.press("o it is");
    tty.wait_for("so it is");
    tty.press("\r");
    tty.wait_for("→ answered: blue, s");
    tty.press("\x18d");
    tty.end(0);
}

/// Approves the last ask of all from the hub.
fn answer_the_last(tty: &mut Tty) {
    tty.press_until("y", "idle (done)");
    tty.press("\x1b");
}

#[test]
fn m_b9_an_ask_is_answered_from_the_hub() {
    let world = World::new();
    world.opens("one", &[], "shell: touch made");
    let mut tty = Tty::run(&world, &[]);
    tty.wait_for("1 ask needs you");
    tty.wait_for("Tab answer here");
    tty.press("\t");
    tty.wait_for(ASKED);
    answer_the_last(&mut tty);
    assert!(world.work("made").exists());
    assert!(!tty.text().contains("needs you"), "{}", tty.text());
    tty.press("\x03\x03");
    tty.end(0);
}

#[test]
fn t_c1_every_byte_of_a_hostile_command_is_visible_and_has_no_effect() {
    let world = World::new();
    let hostile = r"echo \u001b[2J\u001b]52;c;aGk=\u0007\u009b31m\rsafe\b\u202e # \u200b";
    world.opens("one", &[], &format!("call shell {{\"command\": \"{hostile}\"}}"));
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for(ASKED);
    let text = tty.text().replace("\n│ ", "");
    let shown = r"echo \u{1b}[2J\u{1b}]52;c;aGk=\u{7}\u{9b}31m\u{d}safe\u{8}\u{202e} # \u{200b}";
    assert!(text.contains(shown), "{shown}\nnot in\n{text}");
    let bytes = String::from_utf8_lossy(&tty.bytes()).into_owned();
    for acts in ["\x1b]52", "\u{9b}", "\u{202e}", "\x1b[2Jsafe", "\u{8}"] {
        assert!(!bytes.contains(acts), "{acts:?} got through");
    }
    tty.press_until("n", "→ denied");
    tty.press("\x18d");
    tty.end(0);
}

#[test]
fn m_a10_a_long_command_is_read_to_its_end_and_answered_on_any_screen() {
    let world = World::new();
    let line = format!("touch made # {}finis", "word ".repeat(360));
    let script = format!("touch made{}\\n# finis", "\\n# one more line".repeat(40));
    for (name, command, columns, rows) in
        [("line", &line, 80, 24), ("narrow", &line, 40, 12), ("lines", &script, 40, 12)]
    {
        world.opens(name, &[], &format!("call shell {{\"command\": \"{command}\"}}"));
        let mut program = portable_pty::CommandBuilder::new(crate::world::program());
        program.args(["attach", name]);
        let mut tty = Tty::start_on(&world, program, &[], columns, rows);
        tty.wait_for(ASKED);
        tty.wait_for("│ touch made");
        tty.wait_for("lines 1-");
        tty.press("\x1b[F");
        tty.wait_for("finis");
        // Tab makes the panel as large as the screen and keeps the position.
        tty.press("\t\x1b[H");
        tty.wait_for("│ touch made");
        tty.wait_for(ASKED);
        tty.press("\x1b[F");
        tty.wait_for("finis");
        tty.press_until("y", "→ approved");
        tty.wait_for("done: ");
        assert!(world.work("made").exists());
        std::fs::remove_file(world.work("made")).unwrap();
        tty.press("\x18d");
        tty.end(0);
    }
}

#[test]
fn m_b9_all_asks_of_a_session_are_answered_from_the_hub() {
    let world = World::new();
    world.opens("one", &[], "shell: touch first\nshell: touch second");
    let mut tty = Tty::run(&world, &[]);
    tty.wait_for("2 asks need you");
    tty.wait_for("(1 more)");
    tty.press("\t");
    tty.wait_for("1 more waiting");
    tty.press_until("y", "│ touch second");
    answer_the_last(&mut tty);
    assert!(world.work("first").exists() && world.work("second").exists());
    tty.press("\x03\x03");
    tty.end(0);
}

#[test]
fn m_b9_the_panel_of_the_hub_waits_for_the_next_ask_while_the_turn_runs_on() {
    let world = World::new();
    world.opens("one", &[], "shell: until [ -e go ]; do sleep 0.05; done\n---\nshell: touch made");
    let mut tty = Tty::run(&world, &[]);
    tty.wait_for("1 ask needs you");
    tty.press("\t");
    tty.wait_for(ASKED);
    tty.press_until("y", "one: running");
    // None of these keys filters the hub.
    tty.press("yy\ry");
    std::fs::write(world.work("go"), "").unwrap();
    tty.wait_for("│ touch made");
    assert_eq!(tty.count("filter:"), 0, "{}", tty.text());
    answer_the_last(&mut tty);
    assert!(world.work("made").exists());
    tty.press("\x03\x03");
    tty.end(0);
}

#[test]
fn m_c6_an_interrupt_from_the_hub_shows_its_receipt() {
    let world = World::new();
    world.opens("one", &[], "ask: Which name?");
    let mut tty = Tty::run(&world, &[]);
    tty.wait_for("1 ask needs you");
    tty.press("\t");
    tty.wait_for("Esc to interrupt");
    tty.press("\x1b");
    tty.wait_for("Agent interrupted: 1 tool stopped, 0 processes ended, 1 ask released");
    tty.wait_for("idle (interrupted)");
    tty.press("\x03\x03");
    tty.end(0);
}

/// The id of a session's first open ask.
fn first_ask(world: &World, session: &str) -> String {
    let asked = world.run(&["wait", session, "--for", "ask"]).code(0).out;
    let (_, ask) = asked.split_once("(ask ").unwrap();
    ask.trim_end().trim_end_matches(')').to_owned()
}

#[test]
fn m_a10_words_for_an_ask_answered_elsewhere_are_dropped_with_a_notice() {
    let world = World::new();
    for (name, args, enter) in [("one", &["attach", "one"][..], ""), ("two", &[], "\t")] {
        world.opens(name, &[], "shell: touch first\nshell: touch made");
        let mut tty = Tty::run(&world, args);
        tty.wait_for(if enter.is_empty() { ASKED } else { "Tab answer here" });
        tty.press(enter);
        tty.wait_for(ASKED);
        tty.press_until("r", "Reason, then Enter (Esc to go back)");
        tty.press("not yes");
        tty.wait_for("not yes");
        world.run(&["approve", &first_ask(&world, name)]).code(0);
        tty.wait_for("answered from the command line (pid ");
        tty.wait_for("your words were not sent");
        tty.wait_for("│ touch made");
        // The rest of the words approves nothing, opens nothing and is sent nowhere.
        tty.press("es \r");
        tty.press("\x18d");
        tty.end(0);
        world.run(&["close", name]).code(0);
        assert!(!world.work("made").exists());
    }
}

/// Like a bouncing key, between reports that a terminal sends by itself.
#[test]
fn m_a10_a_second_enter_at_a_question_sends_no_prompt() {
    until_conclusive(|| {
        let world = World::new();
        world.opens("one", &[], "ask: Why?\nsay Done.");
        let mut tty = Tty::run(&world, &["attach", "one"]);
        tty.wait_for("Your words, then Enter");
        tty.press_until("x", "> x");
        tty.press("\r");
        let (mut pressed, mut longest) = (Instant::now(), Duration::ZERO);
        for _ in 0..4 {
            // Text typed this soon is dropped.
            let leaked = tty.shows("draft", Duration::from_millis(50));
            tty.press("\x1b]11;rgb:0/0/0\x1b\\draft\r");
            longest = longest.max(pressed.elapsed());
            pressed = Instant::now();
            if leaked {
                break;
            }
        }
        if longest > GUARD / 2 {
            return false;
        }
        tty.wait_for("done: 2 steps");
        assert!(!world.run(&["logs", "one"]).code(0).out.contains("draft"));
        tty.press_until("z", "› z");
        tty.press("\x18q");
        tty.end(0);
        true
    });
}

#[test]
fn shift_enter_inserts_a_line_and_the_cursor_follows() {
    let world = World::new();
    world.opens("one", &[], "say hello");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("done: 1 step");
    // As kitty and xterm report it; the program asked both to.
    tty.press("first\x1b[13;2usecond\x1b[27;2;13~third");
    tty.wait_for("third");
    let cursor = |screen: &vt100::Screen| (screen.cursor_position(), screen.hide_cursor());
    let before = |((row, column), _): ((u16, u16), bool)| {
        tty.look(|screen| screen.contents_between(row, 0, row, column))
    };
    assert_eq!(before(tty.look(cursor)), "  third");
    assert!(!tty.look(cursor).1);
    let text = tty.text();
    assert!(text.contains("› first\n  second\n  third"), "{text}");
    tty.press("\x18q");
    tty.end(0);
}
