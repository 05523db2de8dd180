//! Tests of the words about events.

use super::*;

/// The process that the story calls its own.
pub(crate) fn own() -> u32 {
    std::process::id()
}

/// The events of a session with each kind of remark.
pub(crate) fn story() -> Vec<Event> {
    let bodies =
        include_str!("story.jsonl").lines().map(|line| line.replace("OWN", &own().to_string()));
    let bodies = bodies
        .map(|line| serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}")));
    let event =
        |(seq, body)| Event { seq, at: Timestamp(seq * 1000), turn: None, step: None, body };
    (1..).zip(bodies).map(event).collect()
}

#[test]
fn each_event_of_the_story_has_these_words() {
    let mut narrator = Narrator::new(own());
    let mut words = String::new();
    for event in story() {
        for narration in narrator.narrate(&event) {
            words.push_str(&format!("{}: {narration:?}\n", event.seq));
        }
    }
    insta::assert_snapshot!(words);
}
