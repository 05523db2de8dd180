//! What keys do to the ask that is shown. Pure: no terminal, no clock.

use std::time::{Duration, Instant};

use holdpoint_common::{Answer, Ask, AskRequest, PauseKind, Question, QuestionReply};

use crate::terminal::Key;

/// A key that answers counts only this long after the ask appeared: nobody reads faster, and what was typed
/// before was meant for something else.
pub(super) const GUARD: Duration = Duration::from_millis(300);

/// The ask that is shown, and how far the user is with it.
#[derive(Debug)]
pub(super) struct Asking {
    ask: Ask,
    /// When it, or what it wants to know now, appeared.
    appeared: Instant,
    /// An answer is on its way: nothing more is taken.
    answered: bool,
    replies: Vec<QuestionReply>,
    entry: Entry,
}

/// What keys are taken for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    /// Each is a choice.
    Choice,
    /// They make up a text.
    Words {
        /// As far as it is typed.
        typed: String,
        /// There is a choice to go back to.
        chosen: bool,
    },
}

/// What a key did.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pressed {
    /// It means nothing here, or not yet.
    Nothing,
    /// What is typed has changed.
    Typed,
    /// Something else is to be answered now, or in another way.
    Turned,
    /// This is the answer.
    Answer(Answer),
    /// The turn is to end.
    Interrupt,
}

impl Asking {
    /// An ask that appears now.
    pub(super) fn new(ask: Ask, now: Instant) -> Self {
        let mut asking = Self { ask, appeared: now, answered: false, replies: Vec::new(), entry: Entry::Choice };
        asking.begin();
        asking
    }

    /// The ask.
    pub(super) fn ask(&self) -> &Ask {
        &self.ask
    }

    /// The question that is to be replied to now, and which of how many it is.
    pub(super) fn question(&self) -> Option<(&Question, usize, usize)> {
        let AskRequest::Question(request) = &self.ask.request else { return None };
        let place = self.replies.len();
        Some((request.questions.get(place)?, place + 1, request.questions.len()))
    }

    /// What keys are taken for now.
    pub(super) fn entry(&self) -> &Entry {
        &self.entry
    }

    /// It is on the screen only now.
    pub(super) fn appear(&mut self, now: Instant) {
        self.appeared = now;
    }

    /// The answer was refused: keys count again, from the beginning.
    pub(super) fn reopen(&mut self, now: Instant) {
        (self.answered, self.appeared) = (false, now);
        self.replies.clear();
        self.begin();
    }

    /// What a key that was pressed at `at` does.
    pub(super) fn press(&mut self, key: Key, at: Instant) -> Pressed {
        let chosen = matches!(self.entry, Entry::Words { chosen: true, .. });
        match key {
            Key::Ctrl('c') => return Pressed::Interrupt,
            Key::Esc if chosen && !self.answered => {
                self.entry = Entry::Choice;
                return Pressed::Turned;
            }
            Key::Esc => return Pressed::Interrupt,
            _ => {}
        }
        // Who has chosen to type is not to lose the first letters: nothing typed is no answer.
        if self.answered || !chosen && at.saturating_duration_since(self.appeared) < GUARD {
            return Pressed::Nothing;
        }
        let pressed = match self.entry {
            Entry::Choice => self.choose(key),
            Entry::Words { .. } => self.write(key),
        };
        self.answered = matches!(pressed, Pressed::Answer(_));
        pressed
    }

    /// Begins with what is to be answered now.
    fn begin(&mut self) {
        self.entry = match self.question() {
            Some((question, ..)) if question.options.is_empty() => Entry::words(false),
            Some(_) | None => Entry::Choice,
        };
    }

    fn choose(&mut self, key: Key) -> Pressed {
        let letter = match key {
            Key::Char(letter) => letter.to_ascii_lowercase(),
            _ => ' ',
        };
        match &self.ask.request {
            AskRequest::Pause(pause) => match (pause.kind, letter) {
                (PauseKind::Continue, _) if key == Key::Enter => Pressed::Answer(Answer::Resume),
                (PauseKind::Confirm, 'y') => Pressed::Answer(Answer::Approve { always: false }),
                (PauseKind::Confirm, 'a') if self.ask.always.is_some() => {
                    Pressed::Answer(Answer::Approve { always: true })
                }
                (PauseKind::Confirm, 'n') => Pressed::Answer(Answer::Deny { reason: None }),
                (PauseKind::Confirm, 'r') => self.turn_to_words(),
                (PauseKind::Continue | PauseKind::Confirm, _) => Pressed::Nothing,
            },
            AskRequest::Question(_) => match letter {
                'w' => self.turn_to_words(),
                's' => Pressed::Answer(Answer::Cancel),
                '1'..='9' => {
                    let place = letter.to_digit(10).unwrap_or_default() as usize - 1;
                    let option = self.question().and_then(|(question, ..)| question.options.get(place));
                    let label = option.map(|option| option.label.clone());
                    label.map_or(Pressed::Nothing, |label| self.reply(label))
                }
                _ => Pressed::Nothing,
            },
        }
    }

    fn turn_to_words(&mut self) -> Pressed {
        self.entry = Entry::words(true);
        Pressed::Turned
    }

    fn write(&mut self, key: Key) -> Pressed {
        let Entry::Words { typed, .. } = &mut self.entry else { return Pressed::Nothing };
        match (key, &self.ask.request) {
            (Key::Char(character), _) => {
                typed.push(character);
                Pressed::Typed
            }
            (Key::Backspace, _) if typed.pop().is_some() => Pressed::Typed,
            (Key::Ctrl('d'), AskRequest::Question(_)) => Pressed::Answer(Answer::Cancel),
            (Key::Enter, request) => match (typed.trim(), request) {
                ("", _) => Pressed::Nothing,
                (reason, AskRequest::Pause(_)) => Pressed::Answer(Answer::Deny { reason: Some(reason.to_owned()) }),
                (words, AskRequest::Question(_)) => {
                    let words = words.to_owned();
                    self.reply(words)
                }
            },
            _ => Pressed::Nothing,
        }
    }

    /// Replies to the question that is to be replied to now.
    fn reply(&mut self, answer: String) -> Pressed {
        let Some((question, ..)) = self.question() else { return Pressed::Nothing };
        self.replies.push(QuestionReply { id: question.id.clone(), answer });
        if self.question().is_some() {
            self.begin();
            return Pressed::Turned;
        }
        Pressed::Answer(Answer::Reply { answers: self.replies.clone() })
    }
}

impl Entry {
    fn words(chosen: bool) -> Self {
        Self::Words { typed: String::new(), chosen }
    }
}

#[cfg(test)]
mod tests {
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
            assert!(matches!(asking.press(key, now + GUARD), Pressed::Answer(_)));
            assert_eq!(asking.press(key, now + GUARD), Pressed::Nothing);
            asking.reopen(now + GUARD);
            assert_eq!(asking.press(key, now + GUARD), Pressed::Nothing);
            assert!(matches!(asking.press(key, now + GUARD * 2), Pressed::Answer(_)));
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
    fn m_a10_escape_in_a_reason_goes_back_to_the_keys_which_count_after_the_guard() {
        let at = Instant::now() + GUARD;
        let mut asking = Asking::new(pause(PauseKind::Confirm), at - GUARD);
        asking.press(Key::Char('R'), at);
        asking.press(Key::Char('x'), at);
        assert_eq!(asking.press(Key::Esc, at), Pressed::Turned);
        asking.appear(at);
        assert_eq!(asking.press(Key::Char('y'), at), Pressed::Nothing);
        assert_eq!(asking.press(Key::Char('r'), at + GUARD), Pressed::Turned);
        assert_eq!(*asking.entry(), Entry::words(true), "what was typed is gone");
        assert_eq!(asking.press(Key::Esc, at), Pressed::Turned);
        assert_eq!(asking.press(Key::Esc, at), Pressed::Interrupt);
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
        assert_eq!(asking.press(Key::Char('2'), at), Pressed::Turned);
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
        assert_eq!(*asking.entry(), Entry::Choice);
        asking.press(Key::Char('W'), at);
        for key in [Key::Char('s'), Key::Char('o')] {
            assert_eq!(asking.press(key, at), Pressed::Typed);
        }
        assert_eq!(asking.press(Key::Enter, at), Pressed::Turned);
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
        assert_eq!(asking.press(Key::Char('2'), at), Pressed::Turned);
    }
}
