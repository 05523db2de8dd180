//! Tests of the form, key by key.

use std::time::Duration;

use holdpoint_common::{
    AskOrigin, CallId, PauseRequest, QuestionOption, QuestionRequest, Timestamp,
};

use proptest::prelude::*;

use super::*;

fn ask(request: AskRequest) -> Ask {
    let id = "s.1".parse().unwrap();
    Ask {
        id,
        call: CallId(1),
        origin: AskOrigin::Tool,
        since: Timestamp(0),
        request,
        always: None,
        may_be_denied: false,
    }
}

fn pause(kind: PauseKind) -> Ask {
    let (tool_name, message) = ("shell".to_owned(), "Go on?".to_owned());
    ask(AskRequest::Pause(PauseRequest { kind, tool_name, message, details: None }))
}

/// The effect of a key as soon as the guard is over.
fn late(ask: Ask, key: Key) -> Pressed {
    let now = Instant::now();
    AskForm::new(ask, now).press(key, now + GUARD)
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
            Key::Char('n' | 'N') => Pressed::Answer(Answer::Deny { reason: None, always: false }),
            Key::Char('r') => Pressed::ModeChanged,
            Key::Esc | Key::Ctrl('c') => Pressed::Interrupt,
            _ => Pressed::Nothing,
        };
        assert_eq!(late(pause(PauseKind::Confirm), key), expected, "{key:?}");
    }
}

#[test]
fn m_a10_only_enter_continues() {
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
        let mut form = AskForm::new(pause(kind), now);
        assert_eq!(form.press(key, now + GUARD - Duration::from_millis(1)), Pressed::Nothing);
        // That key did not count, and restarted the guard.
        assert_eq!(form.press(key, now + GUARD), Pressed::Nothing);
        assert!(matches!(form.press(key, now + GUARD * 2), Pressed::Answer(_)));
        assert_eq!(form.press(key, now + GUARD * 2), Pressed::Nothing);
        form.reopen(now + GUARD * 2);
        assert!(matches!(form.press(key, now + GUARD * 3), Pressed::Answer(_)));
        assert_eq!(form.press(Key::Esc, now), Pressed::Interrupt);
    }
}

/// A Confirm that offers *always*.
fn offered() -> Ask {
    Ask { always: Some("shell: ls".into()), ..pause(PauseKind::Confirm) }
}

#[test]
fn m_a10_always_takes_a_second_press_and_only_where_it_is_offered() {
    let approval = Answer::Approve { always: true };
    let denial = Answer::Deny { reason: None, always: true };
    for (lower, upper, answer) in [('a', 'A', approval), ('d', 'D', denial)] {
        let (lower, upper) = (Key::Char(lower), Key::Char(upper));
        assert_eq!(late(pause(PauseKind::Confirm), lower), Pressed::Nothing);
        let mut at = Instant::now();
        let mut form = AskForm::new(offered(), at - GUARD);
        assert_eq!(form.press(lower, at), Pressed::ModeChanged);
        assert_eq!(form.armed(), Some(&answer));
        // A key that is held down repeats, which is not a second press.
        at += Duration::from_millis(660);
        for _ in 0..100 {
            assert_eq!(form.press(upper, at), Pressed::Nothing);
            at += Duration::from_millis(30);
        }
        assert_eq!(form.armed(), Some(&answer));
        // Any other key cancels the first press.
        assert_eq!(form.press(Key::Char('j'), at + GUARD), Pressed::ModeChanged);
        assert_eq!(form.armed(), None);
        at += GUARD * 2;
        assert_eq!(form.press(lower, at), Pressed::ModeChanged);
        assert_eq!(form.press(upper, at + ALWAYS_GUARD), Pressed::Answer(answer));
    }
}

#[test]
fn m_a10_the_key_of_the_other_always_is_a_first_press() {
    let at = Instant::now();
    let mut form = AskForm::new(offered(), at - GUARD);
    assert_eq!(form.press(Key::Char('a'), at), Pressed::ModeChanged);
    assert_eq!(form.press(Key::Char('d'), at + ALWAYS_GUARD), Pressed::ModeChanged);
    let denial = Answer::Deny { reason: None, always: true };
    assert_eq!(form.armed(), Some(&denial));
    let at = at + ALWAYS_GUARD * 2;
    assert_eq!(form.press(Key::Char('d'), at), Pressed::Answer(denial));
}

#[test]
fn m_a2_a_denial_can_have_a_reason() {
    let at = Instant::now() + GUARD;
    let mut form = AskForm::new(pause(PauseKind::Confirm), at - GUARD);
    assert_eq!(form.press(Key::Char('r'), at), Pressed::ModeChanged);
    assert_eq!(form.press(Key::Enter, at), Pressed::Nothing, "an empty reason is not accepted");
    for key in [
        Key::Char(' '),
        Key::Char('y'),
        Key::Char('n'),
        Key::Backspace,
        Key::Char('o'),
        Key::Char(' '),
    ] {
        assert_eq!(form.press(key, at), Pressed::Typed, "letters are text at once");
    }
    assert_eq!(form.press(Key::Ctrl('d'), at), Pressed::Nothing);
    assert_eq!(
        form.press(Key::Enter, at),
        Pressed::Answer(Answer::Deny { reason: Some("yo".into()), always: false })
    );
    assert_eq!(form.press(Key::Enter, at), Pressed::Nothing);
}

#[test]
fn m_a10_escape_in_a_reason_goes_back_to_the_keys_which_count_after_the_guard_and_keeps_what_was_typed()
 {
    let at = Instant::now() + GUARD;
    let mut form = AskForm::new(pause(PauseKind::Confirm), at - GUARD);
    for key in [Key::Char('R'), Key::Char('x')] {
        form.press(key, at);
    }
    assert_eq!(form.press(Key::Esc, at), Pressed::ModeChanged);
    assert_eq!(form.entry(), Entry::Choice);
    // A letter right after Esc was still meant for the text.
    assert_eq!(form.press(Key::Char('y'), at), Pressed::Nothing);
    let at = at + GUARD;
    assert_eq!(form.press(Key::Char('r'), at), Pressed::ModeChanged);
    assert_eq!((form.entry(), form.line().text()), (Entry::Text { chosen: true }, "x"));
    assert_eq!(form.press(Key::Esc, at), Pressed::ModeChanged);
    assert_eq!(
        form.press(Key::Char('y'), at + GUARD),
        Pressed::Answer(Answer::Approve { always: false })
    );
    assert_eq!(form.press(Key::Esc, at + GUARD), Pressed::Interrupt);
    // If the denial is refused, the reason is still there.
    let at = at + GUARD * 2;
    form.reopen(at - GUARD);
    form.press(Key::Char('r'), at);
    assert_eq!(
        form.press(Key::Enter, at),
        Pressed::Answer(Answer::Deny { reason: Some("x".into()), always: false })
    );
}

/// A sentence that is being typed when an ask appears does not answer it.
#[test]
fn m_a10_continued_typing_answers_nothing() {
    let (kinds, words) =
        ([PauseKind::Confirm, PauseKind::Continue], "an array of many years\ry\rn\r");
    for kind in kinds {
        let mut at = Instant::now();
        let mut form = AskForm::new(pause(kind), at);
        for letter in words.chars().cycle().take(200) {
            at += GUARD / 2;
            let key = if letter == '\r' { Key::Enter } else { Key::Char(letter) };
            assert_eq!(form.press(key, at), Pressed::Nothing, "{letter:?}");
        }
        // After a pause in typing, the next key is meant for the ask.
        let key = if kind == PauseKind::Confirm { Key::Char('y') } else { Key::Enter };
        assert!(matches!(form.press(key, at + GUARD), Pressed::Answer(_)));
    }
    let mut at = Instant::now();
    let mut form = questions(at);
    for letter in "some 2 words s w".chars() {
        at += GUARD / 2;
        assert_eq!(form.press(Key::Char(letter), at), Pressed::Nothing, "{letter:?}");
    }
    assert_eq!(form.press(Key::Char('2'), at + GUARD), Pressed::Moved);
}

/// Keys typed for an earlier ask do not become the start of an answer.
#[test]
fn m_a10_continued_typing_is_not_an_answer() {
    let question =
        Question { id: "a".into(), header: "a".into(), question: "a".into(), options: vec![] };
    let request = QuestionRequest { tool_name: "ask_user".into(), questions: vec![question] };
    let mut at = Instant::now();
    let mut form = AskForm::new(ask(AskRequest::Question(request)), at);
    for letter in " not all of it, but this".chars() {
        at += GUARD / 2;
        assert_eq!(form.press(Key::Char(letter), at), Pressed::Nothing, "{letter:?}");
    }
    at += GUARD / 2;
    assert_eq!(form.press(Key::Enter, at), Pressed::Nothing);
    assert_eq!(form.press(Key::Char('x'), at + GUARD), Pressed::Typed);
    assert_eq!(
        form.press(Key::Char('y'), at + GUARD),
        Pressed::Typed,
        "a user who has begun may type fast"
    );
    assert_eq!(form.line().text(), "xy");
}

/// A form with two questions, one with options and one without.
fn questions(now: Instant) -> AskForm {
    let option = |label: &str| QuestionOption { label: label.into(), description: String::new() };
    let question = |id: &str, options| Question {
        id: id.into(),
        header: id.into(),
        question: id.into(),
        options,
    };
    let questions =
        vec![question("colour", vec![option("red"), option("blue")]), question("why", vec![])];
    let request = QuestionRequest { tool_name: "ask_user".into(), questions };
    AskForm::new(ask(AskRequest::Question(request)), now)
}

fn reply(colour: Option<&str>, why: Option<&str>) -> Pressed {
    let reply = |id: &str, answer: Option<&str>| QuestionReply {
        id: id.into(),
        answer: answer.map(Into::into),
    };
    Pressed::Answer(Answer::Reply { answers: vec![reply("colour", colour), reply("why", why)] })
}

#[test]
fn m_a10_options_are_chosen_by_their_number_at_once_after_the_guard() {
    let start = Instant::now();
    let mut form = questions(start);
    assert_eq!(form.press(Key::Char('2'), start), Pressed::Nothing, "too early");
    let at = start + GUARD;
    for key in
        [Key::Char('0'), Key::Char('3'), Key::Char('x'), Key::Enter, Key::Ctrl('d'), Key::Backspace]
    {
        assert_eq!(form.press(key, at), Pressed::Nothing, "{key:?}");
    }
    let at = at + GUARD;
    assert_eq!(form.press(Key::Char('2'), at), Pressed::Moved);
    form.show(at);
    assert_eq!(form.press(Key::Char('x'), at), Pressed::Nothing, "the second has just appeared");
    let at = at + GUARD;
    assert_eq!(form.press(Key::Enter, at), Pressed::Nothing, "an empty answer is not accepted");
    for key in [Key::Char(' '), Key::Char('2'), Key::Char('x'), Key::Backspace, Key::Char('!')] {
        assert_eq!(form.press(key, at), Pressed::Typed);
    }
    assert_eq!(form.press(Key::Enter, at), reply(Some("blue"), Some("2!")));
}

#[test]
fn m_a10_own_words_are_a_choice_and_escape_goes_back_to_the_options() {
    let at = Instant::now();
    let mut form = questions(at - GUARD);
    assert_eq!(form.press(Key::Char('w'), at), Pressed::ModeChanged);
    assert_eq!(form.press(Key::Char('1'), at), Pressed::Typed, "a digit is text here");
    assert_eq!(form.press(Key::Esc, at), Pressed::ModeChanged);
    assert_eq!(form.entry(), Entry::Choice);
    let at = at + GUARD;
    form.press(Key::Char('W'), at);
    for key in [Key::Backspace, Key::Char('s'), Key::Char('o')] {
        assert_eq!(form.press(key, at), Pressed::Typed, "the typed text is kept");
    }
    assert_eq!(form.press(Key::Enter, at), Pressed::Moved);
    // Without options, Esc clears the text, and then interrupts.
    form.press(Key::Char('x'), at + GUARD);
    assert_eq!(form.press(Key::Esc, at + GUARD), Pressed::Typed);
    assert_eq!(form.line().text(), "");
    assert_eq!(form.press(Key::Esc, at + GUARD), Pressed::Interrupt);
    let at = at + GUARD * 2;
    form.press(Key::Char('y'), at);
    assert_eq!(form.press(Key::Ctrl('c'), at), Pressed::Interrupt, "at once");
    assert_eq!(form.press(Key::Enter, at), Pressed::Nothing, "no answer follows an interrupt");
    assert_eq!(form.press(Key::Enter, at + GUARD), reply(Some("so"), Some("y")));
}

#[test]
fn m_a10_skip_skips_the_question_that_is_shown() {
    let at = Instant::now();
    let (chosen, skipped) = (&[Key::Char('1')][..], &[Key::Char('s')][..]);
    let (words, none) = (&[Key::Char('x'), Key::Enter][..], &[Key::Char('x'), Key::Ctrl('d')][..]);
    for (colour, why, answer) in [
        (chosen, none, reply(Some("red"), None)),
        (skipped, words, reply(None, Some("x"))),
        (&[Key::Char('w'), Key::Char('x'), Key::Ctrl('d')], words, reply(None, Some("x"))),
        // Without a reply, the whole ask is declined.
        (skipped, none, Pressed::Answer(Answer::Cancel)),
    ] {
        let mut form = questions(at - GUARD);
        assert_eq!(colour.iter().map(|key| form.press(*key, at)).last(), Some(Pressed::Moved));
        assert_eq!(why.iter().map(|key| form.press(*key, at + GUARD)).last(), Some(answer));
    }
}

#[test]
fn m_a10_tab_goes_back_and_forth_and_keeps_what_was_answered() {
    let at = Instant::now();
    let mut form = questions(at - GUARD);
    assert_eq!(form.press(Key::BackTab, at), Pressed::Nothing, "it is the first");
    let at = at + GUARD;
    assert_eq!(form.press(Key::Char('2'), at), Pressed::Moved);
    let at = at + GUARD;
    form.press(Key::Char('x'), at);
    assert_eq!(form.press(Key::Tab, at), Pressed::Nothing, "it is the last");
    assert_eq!(form.press(Key::BackTab, at), Pressed::Moved);
    assert_eq!(form.reply(), Some(&Reply::Answer("blue".into())));
    for (key, number) in [(Key::Right, 2), (Key::BackTab, 1), (Key::Tab, 2)] {
        assert_eq!((form.press(key, at), form.question().unwrap().1), (Pressed::Moved, number));
    }
    assert_eq!(form.line().text(), "x", "the text is kept, too");
    let at = at + GUARD;
    assert_eq!(form.press(Key::Left, at), Pressed::Typed, "in text, the arrows move the cursor");
    form.press(Key::BackTab, at);
    let at = at + GUARD;
    assert_eq!(form.press(Key::Char('1'), at), Pressed::Moved, "another answer replaces the first");
    assert_eq!(form.press(Key::Enter, at + GUARD), reply(Some("red"), Some("x")));
}

#[test]
fn a_refused_answer_asks_for_the_last_reply_again() {
    let at = Instant::now();
    let mut form = questions(at - GUARD);
    form.press(Key::Char('1'), at);
    let at = at + GUARD;
    form.press(Key::Char('x'), at);
    assert_eq!(form.press(Key::Enter, at), reply(Some("red"), Some("x")));
    assert_eq!(form.press(Key::Enter, at), Pressed::Nothing);
    form.reopen(at + GUARD);
    assert_eq!(form.press(Key::Enter, at + GUARD * 2), reply(Some("red"), Some("x")));
}

#[test]
fn pasted_text_is_words_and_never_a_choice() {
    let at = Instant::now();
    let mut form = questions(at - GUARD);
    assert_eq!(form.paste("1", at), Pressed::Nothing);
    assert_eq!(
        form.press(Key::Char('1'), at + GUARD / 2),
        Pressed::Nothing,
        "a key right after a paste does not answer"
    );
    let at = at + GUARD * 2;
    form.press(Key::Char('w'), at);
    assert_eq!(form.paste("two\nlines\u{1b}", at), Pressed::Typed);
    assert_eq!(form.line().text(), "two lines ");
}

#[test]
fn m_a10_keys_after_an_ask_are_swallowed_until_none_has_come_for_300_ms() {
    let mut after = AfterAsk::default();
    let mut at = Instant::now();
    assert!(!after.swallows(Key::Enter, at), "no ask has closed");
    after.begin(at);
    for key in [Key::Enter, Key::Char('y'), Key::Other, Key::Tab, Key::Ctrl('w'), Key::Backspace] {
        at += GUARD - Duration::from_millis(1);
        assert!(after.swallows(key, at), "{key:?}");
        assert_eq!(after.end(), Some(at + GUARD));
    }
    at += Duration::from_millis(1);
    assert!(
        !after.swallows(Key::Esc, at) && !after.swallows(Key::Ctrl('c'), at),
        "these act at any time"
    );
    at += GUARD;
    assert!(!after.swallows(Key::Enter, at));
    assert_eq!(after.end(), None);
}

fn any_key() -> impl Strategy<Value = Key> {
    prop_oneof![
        prop::sample::select("yYnNaArRwWsS12 \u{301}x".chars().collect::<Vec<_>>())
            .prop_map(Key::Char),
        prop::sample::select(vec![
            Key::Enter,
            Key::Tab,
            Key::BackTab,
            Key::Left,
            Key::Right,
            Key::Home,
            Key::End
        ]),
        prop::sample::select(vec![
            Key::Backspace,
            Key::Delete,
            Key::Other,
            Key::Ctrl('d'),
            Key::Ctrl('w')
        ]),
    ]
}

proptest! {
    /// Constant typing, at any pace, does not answer an ask that appears and closes meanwhile.
    #[test]
    fn m_a10_no_key_of_continued_typing_answers(keys in prop::collection::vec((any_key(), 0..300_u64), 0..60)) {
        for kind in [PauseKind::Confirm, PauseKind::Continue] {
            let mut at = Instant::now();
            let mut form = AskForm::new(Ask { always: Some("ls".into()), ..pause(kind) }, at);
            for (key, gap) in &keys {
                at += Duration::from_millis(*gap);
                prop_assert_eq!(form.press(*key, at), Pressed::Nothing);
            }
            let mut after = AfterAsk::default();
            after.begin(at);
            for (key, gap) in &keys {
                at += Duration::from_millis(*gap);
                prop_assert!(after.swallows(*key, at));
            }
        }
    }

    /// For any keys, an answer is valid for the ask, and is given once.
    #[test]
    fn an_answer_is_whole_and_given_once(keys in prop::collection::vec((any_key(), 0..600_u64), 0..60)) {
        let mut at = Instant::now();
        let mut form = questions(at);
        let mut answers = 0;
        for (key, gap) in keys {
            at += Duration::from_millis(gap);
            if let Pressed::Answer(answer) = form.press(key, at) {
                prop_assert_eq!(form.ask().request.accepts(&answer), Ok(()));
                answers += 1;
            }
            prop_assert!(form.line().text().is_char_boundary(form.line().cursor()));
        }
        prop_assert!(answers <= 1);
    }
}

/// The form is drawn late: keys that were read before it are handled after it.
#[test]
fn m_a10_keys_that_are_older_than_the_ask_do_not_answer_it() {
    let appeared = Instant::now();
    for kind in [PauseKind::Confirm, PauseKind::Continue] {
        let key = if kind == PauseKind::Confirm { Key::Char('y') } else { Key::Enter };
        let mut form = AskForm::new(pause(kind), appeared - GUARD * 9);
        form.show(appeared);
        for before in [1_000, 600, 200, 0] {
            assert_eq!(form.press(key, appeared - Duration::from_millis(before)), Pressed::Nothing);
        }
        assert_eq!(form.press(key, appeared + GUARD - Duration::from_millis(1)), Pressed::Nothing);
        let mut after = AfterAsk::default();
        after.begin(appeared);
        assert!(after.swallows(key, appeared - GUARD) && after.swallows(key, appeared + GUARD / 2));
    }
}

/// If an interrupt and an answer arrive together, only the interrupt counts.
#[test]
fn m_a10_no_answer_follows_an_interrupt_at_once() {
    for interrupt in [Key::Esc, Key::Ctrl('c')] {
        for kind in [PauseKind::Confirm, PauseKind::Continue] {
            let at = Instant::now();
            let mut form = AskForm::new(pause(kind), at - GUARD);
            assert_eq!(form.press(interrupt, at), Pressed::Interrupt);
            for key in [Key::Char('y'), Key::Enter, Key::Char('n')] {
                assert_eq!(form.press(key, at), Pressed::Nothing);
            }
        }
    }
    let at = Instant::now();
    let mut form = AskForm::new(pause(PauseKind::Confirm), at - GUARD);
    for key in [Key::Char('r'), Key::Char('x')] {
        form.press(key, at);
    }
    assert_eq!(form.press(Key::Ctrl('c'), at), Pressed::Interrupt);
    assert_eq!(form.press(Key::Enter, at), Pressed::Nothing);
}

/// The next question has to be read first.
#[test]
fn m_a10_a_doubled_key_answers_one_question() {
    let at = Instant::now();
    let mut form = questions(at - GUARD);
    assert_eq!(form.press(Key::Char('1'), at), Pressed::Moved);
    assert_eq!(form.press(Key::Char('1'), at), Pressed::Nothing);
    assert_eq!(form.line().text(), "");
    // Text that was left in another question is not sent by a second Enter there.
    let mut form = questions(at - GUARD);
    form.press(Key::Tab, at);
    form.press(Key::Char('x'), at + GUARD);
    form.press(Key::BackTab, at + GUARD);
    for key in [Key::Char('w'), Key::Char('y')] {
        form.press(key, at + GUARD * 2);
    }
    assert_eq!(form.press(Key::Enter, at + GUARD * 2), Pressed::Moved);
    assert_eq!(form.press(Key::Enter, at + GUARD * 2), Pressed::Nothing);
    assert_eq!(form.press(Key::Enter, at + GUARD * 3), reply(Some("y"), Some("x")));
}
