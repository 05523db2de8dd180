//! Tests that the plain terminal and the screen show the same words.

use std::io::{Read, Seek};
use std::sync::Arc;

use holdpoint_common::Event;

use crate::follow::View;
use crate::narrator::tests::{own, story};
use crate::narrator::{Narration, Narrator};
use crate::tui::lines_of_transcript;
use crate::ui::Ui;

/// The lines that the plain terminal prints.
fn plain(events: &[Event]) -> Vec<String> {
    let mut file = tempfile::tempfile().unwrap();
    let mut ui = Ui::to_file(&file).unwrap();
    ui.lines_to_stdout();
    let mut view = View::transcript(false, true);
    events.iter().for_each(|event| view.show(&Arc::new(event.clone()), &mut ui).unwrap());
    ui.end_line().unwrap();
    ui.flush().unwrap();
    let mut text = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut text).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// The words of a line, without the marks in which the views differ, and without the subject of an
/// ask that has ended: the views show it where it is not visible above.
fn words(line: &str) -> String {
    // The plain terminal has no other place for the text of a prompt.
    let line = line.replace("handed back, prompt 4:", "handed back:");
    let line = line.split_once("→ ").map_or(&*line, |(_, end)| end);
    let line = line.trim_start_matches(|mark: char| " >›●✓✗○│└".contains(mark));
    let line = if line.starts_with('[') {
        line.split_once("] ").map_or(line, |(_, line)| line)
    } else {
        line
    };
    line.trim().to_owned()
}

/// The words of a view, sorted: the screen shows the end of an ask beside its call.
fn sorted(lines: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut words: Vec<_> =
        lines.into_iter().map(|line| words(&line)).filter(|line| !line.is_empty()).collect();
    words.sort();
    words
}

/// From any event on, both views show the same words, except for states that the screen shows
/// elsewhere, and hints to the commands of a shell.
#[test]
fn the_plain_terminal_and_the_screen_show_the_same_words() {
    let story = story();
    for from in 0..story.len() {
        let events = &story[from..];
        let mut narrator = Narrator::new(own());
        let narrations = events.iter().flat_map(|event| narrator.narrate(event));
        let state = |narration| {
            if let Narration::State(remark) = narration { Some(remark.text) } else { None }
        };
        let mut states: Vec<_> = narrations.filter_map(state).collect();
        let printed = plain(events).into_iter().filter(|line| {
            let state = states.iter().position(|state| state == line);
            state.inspect(|at| _ = states.swap_remove(*at)).is_none()
                && !line.starts_with("  `holdpoint ")
        });
        // The plain terminal names a call that did not run beside its result.
        let not_run = |line: String| match line.split_once(": denied: ") {
            Some((title, reason)) => vec![title.to_owned(), format!("denied: {reason}")],
            None => vec![line],
        };
        let printed = sorted(printed.flat_map(not_run));
        assert_eq!(sorted(lines_of_transcript(events)), printed, "from event {}", from + 1);
        assert!(states.is_empty(), "not shown by the plain terminal: {states:?}");
    }
}
