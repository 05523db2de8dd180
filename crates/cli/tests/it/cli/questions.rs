//! Questions in a real terminal, answered by number or in words.

use std::time::Duration;

use holdpoint_tests::model_server::{ModelServer, Reply};

use super::pty::{ASKED, Terminal};
use crate::world::World;

const COLOUR: &str = r#"{"id": "colour", "header": "Colour", "question": "Which colour?", "options": [
    {"label": "red", "description": "like fire"}, {"label": "blue"}]}"#;
const WHY: &str = r#"{"id": "why", "header": "Reason", "question": "And why?"}"#;
const WORDS: &str = "Your words, then Enter";

/// Starts a terminal with a session that asks these questions and then says `Done.`.
fn asked(world: &World, questions: &[&str]) -> Terminal {
    let script = format!("call ask_user {{\"questions\": [{}]}}\nsay Done.", questions.join(", "));
    let terminal = Terminal::run(world, &["run", &script]);
    terminal.wait_for("⏸ ask_user asks");
    terminal
}

/// Replaces the text of the input line with `words`.
fn type_words(terminal: &mut Terminal, words: &str) {
    terminal.press("\x7f".repeat(30));
    terminal.press(words);
    // The screen's text has no trailing blanks.
    let line = format!("\n> {words}");
    terminal.wait_until("what is typed", |text| text.trim_end().ends_with(line.trim_end()));
}

#[test]
fn m_e4_questions_are_answered_by_number_and_by_words() {
    let world = World::new();
    let mut terminal = asked(&world, &[COLOUR, WHY]);
    terminal.wait_for("Colour: Which colour? (1 of 2)\n  1. red - like fire\n  2. blue\n");
    terminal.wait_for("[1-2] Choose [W] Your own words [S] Skip (Tab: next, Esc to interrupt)");
    terminal.press_until("2", "Reason: And why? (2 of 2)");
    terminal.wait_for("Your words, then Enter (Ctrl+D: Skip, Shift+Tab: back, Esc to interrupt)");
    terminal.press_until("s", "> s");
    type_words(&mut terminal, "so it is");
    terminal.press("\r");
    terminal.wait_for("→ answered: blue, so it is");
    terminal.wait_for(r#"└ {"colour":"blue","why":"so it is"}"#);
    terminal.end(0);
}

#[test]
fn words_on_a_terminal_of_unknown_width_are_shown() {
    let world = World::new();
    let mut terminal = Terminal::run(&world, &["run", "ask: How are you?\\nsay Done."]);
    terminal.wait_for("Question: How are you?\n");
    terminal.resize(0, 0);
    terminal.press_until("x", "> x");
    type_words(&mut terminal, "quite fine");
    terminal.press("\r");
    terminal.wait_for("→ answered: quite fine");
    terminal.end(0);
}

#[test]
fn m_e4_a_question_without_options_refuses_an_empty_answer() {
    let world = World::new();
    let mut terminal = Terminal::run(&world, &["run", "ask: How are you?\\nReally?\nsay Done."]);
    terminal.wait_for("Question: How are you?\n  │ Really?\n");
    terminal.press_until("x", "> x");
    type_words(&mut terminal, "");
    terminal.press("\r \r");
    assert!(!terminal.shows("→", Duration::from_millis(400)), "{}", terminal.text());
    type_words(&mut terminal, "fine");
    terminal.press("\r");
    terminal.wait_for("→ answered: fine");
    terminal.end(0);
}

#[test]
fn m_a10_own_words_are_an_entry_and_escape_goes_back_to_the_options() {
    let world = World::new();
    let mut terminal = asked(&world, &[COLOUR]);
    terminal.press_until("w", WORDS);
    terminal.wait_for("(Ctrl+D: Skip, Esc to go back)");
    type_words(&mut terminal, "漢字");
    terminal.press("\x7f");
    terminal.wait_until("half of it", |text| text.lines().last().unwrap().trim_end() == "> 漢");
    terminal.press("\x1b");
    // The options are shown a second time.
    let twice = |text: &str| text.matches("[1-2] Choose").count() == 2;
    terminal.wait_until("the options once more", twice);
    terminal.press_until("1", "→ answered: red");
    terminal.end(0);
}

#[test]
fn m_a10_skip_declines_and_the_turn_continues() {
    let world = World::new();
    for (questions, key) in [(COLOUR, "s"), (WHY, "\x04")] {
        let mut terminal = asked(&world, &[questions]);
        terminal.press_until(key, "→ declined");
        terminal.wait_for("The user declined to answer.");
        terminal.wait_for("Done.");
        terminal.end(0);
    }
}

#[test]
fn m_a10_questions_are_answered_back_and_forth_and_one_is_skipped() {
    let world = World::new();
    let mut terminal = asked(&world, &[COLOUR, WHY]);
    terminal.press_until("2", "Reason: And why? (2 of 2)");
    // Shift+Tab, as terminals send it.
    terminal.press_until("\x1b[Z", "  2. blue ✓");
    terminal.press_until("1", "Reason: And why? (2 of 2)\nYour words");
    terminal.press_until("\x04", "→ answered: red, (skipped)");
    terminal.end(0);
}

#[test]
fn m_a10_escape_clears_words_first() {
    let world = World::new();
    let mut terminal = asked(&world, &[WHY]);
    terminal.press_until("x", "> x");
    terminal.press("\x1b");
    terminal.wait_until("no words", |text| text.trim_end().ends_with("\n>"));
    terminal.press("\x1b");
    terminal.wait_for("Agent interrupted");
    terminal.end(130);
}

#[test]
fn m_a10_escape_interrupts_questions_too() {
    let world = World::new();
    for questions in [COLOUR, WHY] {
        let mut terminal = asked(&world, &[questions]);
        terminal.wait_for("Esc to interrupt");
        terminal.press("\x1b");
        terminal.wait_for("Agent interrupted");
        terminal.end(130);
    }
}

#[test]
fn m_e4_a_question_without_a_user_is_an_error_to_the_model() {
    let ran = World::new().play(&["--asks", "deny"], "ask: Well?\nsay Done.").code(0);
    assert!(ran.err.contains("└ failed: no user can answer questions in this session"), "{ran:#?}");
}

#[test]
fn m_a2_a_reason_reaches_the_model_in_the_same_step() {
    let world = World::new();
    let server = ModelServer::start();
    server
        .reply(Reply::calls([("shell", r#"{"command":"touch made"}"#)]))
        .reply(Reply::text(["Well."]));
    let env = [("OPENAI_API_KEY", "sk-x"), ("OPENAI_BASE_URL", &*server.base_url())];
    let mut terminal = Terminal::start(&world, &["run", "--model", "openai/test", "Go."], &env, 40);
    terminal.wait_for("[R] Deny and say why");
    terminal.wait_for(ASKED);
    terminal.press_until("r", "Reason, then Enter (Esc to go back)");
    // `y` is a letter here. Esc goes back to the keys, and the typed text is kept for the next
    // time.
    type_words(&mut terminal, "yes");
    terminal.press("\x1b");
    terminal.wait_until("the keys once more", |text| text.matches(ASKED).count() == 2);
    // The first `R` that counts is a key; the next one is a letter.
    terminal.press_until("R", "> yesR");
    type_words(&mut terminal, "not on Fridays");
    terminal.press("\r");
    terminal.wait_for("→ denied: not on Fridays");
    terminal.end(0);
    assert!(!world.work("made").exists());
    let results = server.request(1).texts("tool");
    assert!(results.len() == 1 && results[0].contains("not on Fridays"), "{results:?}");
    server.assert_no_violations();
}

#[test]
fn m_a2_always_shows_the_remembered_rule_and_reaches_the_model() {
    let world = World::new();
    let server = ModelServer::start();
    let call = || Reply::calls([("shell", r#"{"command":"echo x | tee -a made"}"#)]);
    server.reply(call()).reply(call()).reply(Reply::text(["Well."]));
    let env = [("OPENAI_API_KEY", "sk-x"), ("OPENAI_BASE_URL", &*server.base_url())];
    let mut terminal = Terminal::start(&world, &["run", "--model", "openai/test", "Go."], &env, 40);
    terminal.wait_for("[A] Approve [D] Deny always in this session: ");
    terminal.wait_for(ASKED);
    let text = terminal.text();
    let offer = text.lines().find(|line| line.starts_with("[A]")).unwrap();
    assert!(offer.ends_with(": echo x | tee -a made") && offer.contains("/work"), "{offer}");
    terminal.press_until("a", "Press A again to approve always in this session: ");
    terminal.press_until("a", "→ approved, always in this session");
    terminal.end(0);
    assert_eq!(terminal.text().matches("⏸ shell").count(), 1, "{}", terminal.text());
    assert_eq!(std::fs::read_to_string(world.work("made")).unwrap(), "x\nx\n");
    let results = server.request(2).texts("tool");
    assert!(
        results.len() == 2 && results.iter().all(|result| result.contains("x\n")),
        "{results:?}"
    );
}
