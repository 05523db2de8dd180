//! Keys, one by one.

use holdpoint_common::{AskOrigin, CallId, PauseRequest, QuestionOption, QuestionRequest, Timestamp};

use super::*;

fn ask(request: AskRequest) -> Ask {
    let id = "s.1".parse().unwrap();
    Ask { id, call: CallId(1), origin: AskOrigin::Tool, since: Timestamp(0), request, always: None }
}

fn pause(kind: PauseKind) -> Ask {
    let (tool_name, message) = ("shell".to_owned(), "Go on?".to_owned());
    ask(AskRequest::Pause(PauseRequest { kind, tool_name, message, details: None }))
}

/// What a key does long after the ask appeared.
fn late(ask: Ask, key: Key) -> Pressed {
    let now = Instant::now();
    Asking::new(ask, now).press(key, now + GUARD)
}

const KEYS: [Key; 15] = [
    Key::Enter,
    Key::Esc,
    Key::Backspace,
    Key::Char('y'),
    Key::Char('Y'),
    Key::Char('n'),
    Key::Char('N'),
    Key::Char('a'),
    Key::Char('A'),
    Key::Char('r'),
    Key::Char(' '),
    Key::Char('j'),
    Key::Ctrl('y'),
    Key::Ctrl('c'),
    Key::Ctrl('d'),
];

#[test]
fn m_a10_nothing_but_an_explicit_approval_approves() {
    for key in KEYS {
        let expected = match key {
            Key::Char('y' | 'Y') => Pressed::Answer(Answer::Approve { always: false }),
            Key::Char('n' | 'N') => Pressed::Answer(Answer::Deny { reason: None }),
            Key::Char('r') => Pressed::Turned,
            Key::Esc | Key::Ctrl('c') => Pressed::Interrupt,
            _ => Pressed::Nothing,
        };
        assert_eq!(late(pause(PauseKind::Confirm), key), expected, "{key:?}");
    }
}

#[test]
fn m_a10_enter_alone_goes_on() {
    for key in KEYS {
        let expected = match key {
            Key::Enter => Pressed::Answer(Answer::Resume),
            Key::Esc | Key::Ctrl('c') => Pressed::Interrupt,
            _ => Pressed::Nothing,
        };
        assert_eq!(late(pause(PauseKind::Continue), key), expected, "{key:?}");
    }
}

#[test]
fn m_a10_answers_count_only_after_the_guard_and_once() {
    let now = Instant::now();
    for (kind, key) in [(PauseKind::Confirm, Key::Char('y')), (PauseKind::Continue, Key::Enter)] {
        let mut asking = Asking::new(pause(kind), now);
        assert_eq!(asking.press(key, now + GUARD - Duration::from_millis(1)), Pressed::Nothing);
        // That was a key that did not count: from it on, the same while.
        assert_eq!(asking.press(key, now + GUARD), Pressed::Nothing);
        assert!(matches!(asking.press(key, now + GUARD * 2), Pressed::Answer(_)));
        assert_eq!(asking.press(key, now + GUARD * 2), Pressed::Nothing);
        asking.reopen(now + GUARD * 2);
        assert!(matches!(asking.press(key, now + GUARD * 3), Pressed::Answer(_)));
        assert_eq!(asking.press(Key::Esc, now), Pressed::Interrupt);
    }
}

#[test]
fn always_is_there_only_where_it_is_offered() {
    let offered = Ask { always: Some("shell: ls".into()), ..pause(PauseKind::Confirm) };
    assert_eq!(late(offered, Key::Char('a')), Pressed::Answer(Answer::Approve { always: true }));
    assert_eq!(late(pause(PauseKind::Confirm), Key::Char('a')), Pressed::Nothing);
}

#[test]
fn m_a2_a_denial_can_have_a_reason() {
    let at = Instant::now() + GUARD;
    let mut asking = Asking::new(pause(PauseKind::Confirm), at - GUARD);
    assert_eq!(asking.press(Key::Char('r'), at), Pressed::Turned);
    assert_eq!(asking.press(Key::Enter, at), Pressed::Nothing, "nothing is no reason");
    for key in [Key::Char(' '), Key::Char('y'), Key::Char('n'), Key::Backspace, Key::Char('o'), Key::Char(' ')] {
        assert_eq!(asking.press(key, at), Pressed::Typed, "at once, and letters are letters");
    }
    assert_eq!(asking.press(Key::Ctrl('d'), at), Pressed::Nothing);
    assert_eq!(asking.press(Key::Enter, at), Pressed::Answer(Answer::Deny { reason: Some("yo".into()) }));
    assert_eq!(asking.press(Key::Enter, at), Pressed::Nothing);
}

#[test]
fn m_a10_escape_in_a_reason_goes_back_to_the_keys_which_count_after_the_guard_and_keeps_what_was_typed() {
    let at = Instant::now() + GUARD;
    let mut asking = Asking::new(pause(PauseKind::Confirm), at - GUARD);
    for key in [Key::Char('R'), Key::Char('x')] {
        asking.press(key, at);
    }
    assert_eq!(asking.press(Key::Esc, at), Pressed::Turned);
    assert_eq!(asking.entry(), Entry::Choice);
    // Typed on, it was meant for the words.
    assert_eq!(asking.press(Key::Char('y'), at), Pressed::Nothing);
    let at = at + GUARD;
    assert_eq!(asking.press(Key::Char('r'), at), Pressed::Turned);
    assert_eq!((asking.entry(), asking.typed()), (Entry::Words { chosen: true }, "x"));
    assert_eq!(asking.press(Key::Esc, at), Pressed::Turned);
    assert_eq!(asking.press(Key::Char('y'), at + GUARD), Pressed::Answer(Answer::Approve { always: false }));
    assert_eq!(asking.press(Key::Esc, at + GUARD), Pressed::Interrupt);
    // If it is refused, there is the reason still.
    asking.reopen(at - GUARD);
    asking.press(Key::Char('r'), at);
    assert_eq!(asking.press(Key::Enter, at), Pressed::Answer(Answer::Deny { reason: Some("x".into()) }));
}

#[test]
fn backspace_takes_back_what_a_person_sees_as_one_character() {
    let at = Instant::now() + GUARD;
    let mut asking = Asking::new(pause(PauseKind::Confirm), at - GUARD);
    for character in "rae\u{301}👨\u{200d}👩\u{200d}👧".chars() {
        asking.press(Key::Char(character), at);
    }
    for left in ["ae\u{301}", "a", ""] {
        assert_eq!(asking.press(Key::Backspace, at), Pressed::Typed);
        assert_eq!(asking.typed(), left);
    }
    assert_eq!(asking.press(Key::Backspace, at), Pressed::Nothing);
}

/// Who is in the middle of a sentence when an ask appears answers nothing with it.
#[test]
fn m_a10_what_is_typed_on_answers_nothing() {
    let (kinds, words) = ([PauseKind::Confirm, PauseKind::Continue], "an array of many years\ry\rn\r");
    for kind in kinds {
        let mut at = Instant::now();
        let mut asking = Asking::new(pause(kind), at);
        for letter in words.chars().cycle().take(200) {
            at += GUARD / 2;
            let key = if letter == '\r' { Key::Enter } else { Key::Char(letter) };
            assert_eq!(asking.press(key, at), Pressed::Nothing, "{letter:?}");
        }
        // After a while without a key, the next one is meant for it.
        let key = if kind == PauseKind::Confirm { Key::Char('y') } else { Key::Enter };
        assert!(matches!(asking.press(key, at + GUARD), Pressed::Answer(_)));
    }
    let mut at = Instant::now();
    let mut asking = questions(at);
    for letter in "some 2 words s w".chars() {
        at += GUARD / 2;
        assert_eq!(asking.press(Key::Char(letter), at), Pressed::Nothing, "{letter:?}");
    }
    assert_eq!(asking.press(Key::Char('2'), at + GUARD), Pressed::Next);
}

/// Keys typed for an earlier ask do not become the start of an answer.
#[test]
fn m_a10_what_is_typed_on_is_no_text_for_a_question() {
    let question = Question { id: "a".into(), header: "a".into(), question: "a".into(), options: vec![] };
    let request = QuestionRequest { tool_name: "ask_user".into(), questions: vec![question] };
    let mut at = Instant::now();
    let mut asking = Asking::new(ask(AskRequest::Question(request)), at);
    for letter in " not all of it, but this".chars() {
        at += GUARD / 2;
        assert_eq!(asking.press(Key::Char(letter), at), Pressed::Nothing, "{letter:?}");
    }
    at += GUARD / 2;
    assert_eq!(asking.press(Key::Enter, at), Pressed::Nothing);
    assert_eq!(asking.press(Key::Char('x'), at + GUARD), Pressed::Typed);
    assert_eq!(asking.press(Key::Char('y'), at + GUARD), Pressed::Typed, "whoever has begun may be fast");
    assert_eq!(asking.typed(), "xy");
}

/// One with options, one without.
fn questions(now: Instant) -> Asking {
    let option = |label: &str| QuestionOption { label: label.into(), description: String::new() };
    let question = |id: &str, options| Question { id: id.into(), header: id.into(), question: id.into(), options };
    let questions = vec![question("colour", vec![option("red"), option("blue")]), question("why", vec![])];
    let request = QuestionRequest { tool_name: "ask_user".into(), questions };
    Asking::new(ask(AskRequest::Question(request)), now)
}

fn reply(colour: &str, why: &str) -> Pressed {
    let reply = |id: &str, answer: &str| QuestionReply { id: id.into(), answer: answer.into() };
    Pressed::Answer(Answer::Reply { answers: vec![reply("colour", colour), reply("why", why)] })
}

#[test]
fn m_a10_options_are_chosen_by_their_number_at_once_after_the_guard() {
    let start = Instant::now();
    let mut asking = questions(start);
    assert_eq!(asking.press(Key::Char('2'), start), Pressed::Nothing, "too early");
    let at = start + GUARD;
    for key in [Key::Char('0'), Key::Char('3'), Key::Char('x'), Key::Enter, Key::Ctrl('d'), Key::Backspace] {
        assert_eq!(asking.press(key, at), Pressed::Nothing, "{key:?}");
    }
    let at = at + GUARD;
    assert_eq!(asking.press(Key::Char('2'), at), Pressed::Next);
    asking.appear(at);
    assert_eq!(asking.press(Key::Char('x'), at), Pressed::Nothing, "the second has just appeared");
    let at = at + GUARD;
    assert_eq!(asking.press(Key::Enter, at), Pressed::Nothing, "nothing is no answer");
    for key in [Key::Char(' '), Key::Char('2'), Key::Char('x'), Key::Backspace, Key::Char('!')] {
        assert_eq!(asking.press(key, at), Pressed::Typed);
    }
    assert_eq!(asking.press(Key::Enter, at), reply("blue", "2!"));
}

#[test]
fn m_a10_own_words_are_a_choice_and_escape_goes_back_to_the_options() {
    let at = Instant::now();
    let mut asking = questions(at - GUARD);
    assert_eq!(asking.press(Key::Char('w'), at), Pressed::Turned);
    assert_eq!(asking.press(Key::Char('1'), at), Pressed::Typed, "a digit is a letter here");
    assert_eq!(asking.press(Key::Esc, at), Pressed::Turned);
    assert_eq!(asking.entry(), Entry::Choice);
    let at = at + GUARD;
    asking.press(Key::Char('W'), at);
    for key in [Key::Backspace, Key::Char('s'), Key::Char('o')] {
        assert_eq!(asking.press(key, at), Pressed::Typed, "what was typed is there still");
    }
    assert_eq!(asking.press(Key::Enter, at), Pressed::Next);
    // Without options, there is nothing to go back to.
    asking.press(Key::Char('x'), at + GUARD);
    assert_eq!(asking.press(Key::Esc, at + GUARD), Pressed::Interrupt);
    assert_eq!(asking.press(Key::Enter, at + GUARD), reply("so", "x"));
}

#[test]
fn m_a10_skip_is_a_choice_of_its_own() {
    let at = Instant::now();
    for keys in [
        &[Key::Char('s')][..],
        &[Key::Char('w'), Key::Char('x'), Key::Ctrl('d')],
        &[Key::Char('1'), Key::Char('x'), Key::Ctrl('d')],
    ] {
        let mut asking = questions(at - GUARD);
        let pressed = keys.iter().map(|key| asking.press(*key, at)).last();
        assert_eq!(pressed, Some(Pressed::Answer(Answer::Cancel)), "{keys:?}");
    }
}

#[test]
fn a_refused_answer_begins_anew() {
    let at = Instant::now();
    let mut asking = questions(at - GUARD);
    asking.press(Key::Char('1'), at);
    asking.press(Key::Char('x'), at);
    assert_eq!(asking.press(Key::Enter, at), reply("red", "x"));
    asking.reopen(at - GUARD);
    assert_eq!(asking.press(Key::Char('2'), at), Pressed::Next);
    assert_eq!(asking.typed(), "", "that was for the second one");
}
