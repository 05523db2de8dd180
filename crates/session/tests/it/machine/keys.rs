//! Prompts with an idempotency key.

use holdpoint_common::{AsksMode, PromptId};

use super::bench::{Bench, ann, prompt};
use super::input::{Input, Reply};

fn with_key(text: &str, key: &str) -> Input {
    Input::KeyedPrompt { text: text.to_owned(), key: key.parse().unwrap(), by: ann() }
}

/// The prompt of the reply, its position, and how many facts there are.
fn added(bench: &mut Bench, input: Input) -> (PromptId, usize, usize) {
    let decision = bench.take(input).unwrap();
    match decision.reply {
        Reply::Prompted { prompt, position } => (prompt, position, decision.facts.len()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn t_a_prompt_with_the_key_of_an_earlier_one_is_not_added_again() {
    let mut bench = Bench::open(AsksMode::Wait, 3);
    assert_eq!(added(&mut bench, with_key("one", "k1")), (PromptId(1), 0, 2));
    assert_eq!(added(&mut bench, with_key("one", "k1")), (PromptId(1), 0, 0));
    assert_eq!(added(&mut bench, with_key("two", "k2")), (PromptId(2), 1, 1));
    assert_eq!(added(&mut bench, with_key("two", "k2")), (PromptId(2), 1, 0));
    // Prompts without a key are all different.
    assert_eq!(added(&mut bench, prompt("two")).0, PromptId(3));
    // The queue is full. A repeated request is not refused.
    assert_eq!(added(&mut bench, prompt("two")).0, PromptId(4));
    assert!(bench.take(prompt("two")).is_err());
    assert_eq!(added(&mut bench, with_key("two", "k2")), (PromptId(2), 1, 0));
}

#[test]
fn t_only_the_newest_keys_are_known() {
    let mut bench = Bench::open(AsksMode::Wait, 100);
    for n in 1..=65 {
        added(&mut bench, with_key("more", &format!("k{n}")));
    }
    assert_eq!(added(&mut bench, with_key("more", "k2")).0, PromptId(2));
    assert_eq!(added(&mut bench, with_key("more", "k1")).0, PromptId(66));
}
