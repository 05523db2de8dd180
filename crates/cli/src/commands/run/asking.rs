//! What keys do to the ask that is shown. Pure: no terminal, no clock.

use std::time::{Duration, Instant};

use holdpoint_common::{Answer, Ask, AskRequest, PauseKind, Question, QuestionReply};

use crate::terminal::Key;

/// A key that answers counts only this long after the ask appeared: nobody reads faster, and what was typed
/// before was meant for something else.
pub(super) const GUARD: Duration = Duration::from_millis(300);

/// The ask that is shown, and what the user has typed at it.
#[derive(Debug)]
pub(super) struct Asking {
    ask: Ask,
    /// When it, or its question, appeared.
    appeared: Instant,
    /// An answer is on its way: nothing more is taken.
    answered: bool,
    replies: Vec<QuestionReply>,
    typed: String,
}

/// What a key did.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pressed {
    /// It means nothing here, or not yet.
    Nothing,
    /// This is added to what is typed.
    Typed(char),
    /// So many characters of what is typed are taken back.
    Erased(usize),
    /// A question is replied to; the next one is to be shown.
    NextQuestion,
    /// This is the answer.
    Answer(Answer),
    /// The turn is to end.
    Interrupt,
}

impl Asking {
    /// An ask that appears now.
    pub(super) fn new(ask: Ask, now: Instant) -> Self {
        Self { ask, appeared: now, answered: false, replies: Vec::new(), typed: String::new() }
    }

    /// The ask.
    pub(super) fn ask(&self) -> &Ask {
        &self.ask
    }

    /// The question that is to be replied to now.
    pub(super) fn question(&self) -> Option<&Question> {
        match &self.ask.request {
            AskRequest::Question(request) => request.questions.get(self.replies.len()),
            AskRequest::Pause(_) => None,
        }
    }

    /// It is on the screen only now.
    pub(super) fn appear(&mut self, now: Instant) {
        self.appeared = now;
    }

    /// The answer was refused: keys count again.
    pub(super) fn reopen(&mut self, now: Instant) {
        (self.answered, self.appeared) = (false, now);
        self.replies.clear();
        self.typed.clear();
    }

    /// What a key that was pressed at `at` does.
    pub(super) fn press(&mut self, key: Key, at: Instant) -> Pressed {
        if key == Key::Ctrl('c') {
            return Pressed::Interrupt;
        }
        if key == Key::Esc {
            let typed = std::mem::take(&mut self.typed).chars().count();
            return if typed > 0 { Pressed::Erased(typed) } else { Pressed::Interrupt };
        }
        if self.answered || at.saturating_duration_since(self.appeared) < GUARD {
            return Pressed::Nothing;
        }
        let pressed = match &self.ask.request {
            AskRequest::Pause(pause) => match (pause.kind, key) {
                (PauseKind::Continue, Key::Enter) => Pressed::Answer(Answer::Resume),
                (PauseKind::Confirm, Key::Char('y' | 'Y')) => Pressed::Answer(Answer::Approve { always: false }),
                (PauseKind::Confirm, Key::Char('a' | 'A')) if self.ask.always.is_some() => {
                    Pressed::Answer(Answer::Approve { always: true })
                }
                (PauseKind::Confirm, Key::Char('n' | 'N')) => Pressed::Answer(Answer::Deny { reason: None }),
                _ => Pressed::Nothing,
            },
            AskRequest::Question(_) => self.reply(key, at),
        };
        self.answered = matches!(pressed, Pressed::Answer(_));
        pressed
    }

    fn reply(&mut self, key: Key, at: Instant) -> Pressed {
        match key {
            Key::Ctrl('d') => Pressed::Answer(Answer::Cancel),
            Key::Char(character) => {
                self.typed.push(character);
                Pressed::Typed(character)
            }
            Key::Backspace if self.typed.pop().is_some() => Pressed::Erased(1),
            Key::Enter => {
                let typed = std::mem::take(&mut self.typed);
                let typed = typed.trim();
                let Some(question) = self.question().filter(|_| !typed.is_empty()) else { return Pressed::Nothing };
                let number = typed.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                let option = number.and_then(|number| question.options.get(number));
                let answer = option.map_or(typed, |option| &option.label).to_owned();
                let reply = QuestionReply { id: question.id.clone(), answer };
                self.replies.push(reply);
                if self.question().is_some() {
                    self.appeared = at;
                    return Pressed::NextQuestion;
                }
                Pressed::Answer(Answer::Reply { answers: std::mem::take(&mut self.replies) })
            }
            _ => Pressed::Nothing,
        }
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

    const KEYS: [Key; 14] = [
        Key::Enter,
        Key::Esc,
        Key::Backspace,
        Key::Char('y'),
        Key::Char('Y'),
        Key::Char('n'),
        Key::Char('N'),
        Key::Char('a'),
        Key::Char('A'),
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

    fn questions() -> Asking {
        let option = |label: &str| QuestionOption { label: label.into(), description: String::new() };
        let question = |id: &str, options| Question { id: id.into(), header: id.into(), question: id.into(), options };
        let questions = vec![question("colour", vec![option("red"), option("blue")]), question("why", vec![])];
        let request = QuestionRequest { tool_name: "ask_user".into(), questions };
        Asking::new(ask(AskRequest::Question(request)), Instant::now())
    }

    #[test]
    fn questions_are_answered_by_number_and_by_words() {
        let mut asking = questions();
        let at = Instant::now() + GUARD * 2;
        assert_eq!(asking.press(Key::Enter, at), Pressed::Nothing, "nothing is no answer");
        assert_eq!(asking.press(Key::Char('2'), at), Pressed::Typed('2'));
        assert_eq!(asking.press(Key::Enter, at), Pressed::NextQuestion);
        assert_eq!(asking.press(Key::Char('x'), at), Pressed::Nothing, "the second has just appeared");
        let at = at + GUARD;
        for key in [Key::Char('2'), Key::Char('x'), Key::Backspace, Key::Char('!')] {
            assert!(matches!(asking.press(key, at), Pressed::Typed(_) | Pressed::Erased(1)));
        }
        let reply = |id: &str, answer: &str| QuestionReply { id: id.into(), answer: answer.into() };
        let answers = vec![reply("colour", "blue"), reply("why", "2!")];
        assert_eq!(asking.press(Key::Enter, at), Pressed::Answer(Answer::Reply { answers }));
    }

    #[test]
    fn m_a10_escape_takes_words_back_then_interrupts_and_declining_is_its_own() {
        let mut asking = questions();
        let at = Instant::now() + GUARD * 2;
        asking.press(Key::Char('h'), at);
        assert_eq!(asking.press(Key::Esc, at), Pressed::Erased(1));
        assert_eq!(asking.press(Key::Esc, at), Pressed::Interrupt);
        assert_eq!(asking.press(Key::Ctrl('d'), at), Pressed::Answer(Answer::Cancel));
    }
}
