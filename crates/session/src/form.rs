//! An ask as a form that keys fill in, shared by the screen, the plain terminal and Ink.
//!
//! An [`AskForm`] is shown while its ask is open. Afterwards an [`AfterAsk`] swallows the keys that
//! were meant for it. Both are pure: a key is passed in with the time at which it was pressed, and
//! the caller sends the [`Answer`].

mod guard;
mod line_editor;

use std::time::Instant;

use holdpoint_common::{Answer, Ask, AskRequest, PauseKind, Question, QuestionReply};

pub use self::guard::{ALWAYS_GUARD, AfterAsk, GUARD, Guard};
pub use self::line_editor::LineEditor;

/// A key, with the distinctions that forms make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// The Enter key, without modifiers.
    Enter,
    /// The Esc key, without modifiers.
    Esc,
    /// The Tab key without Shift.
    Tab,
    /// The Tab key with Shift.
    BackTab,
    /// The arrow to the left.
    Left,
    /// The arrow to the right.
    Right,
    /// Moves to the start of the line.
    Home,
    /// Moves to the end of the line.
    End,
    /// Deletes the character before the cursor.
    Backspace,
    /// Deletes the character after the cursor.
    Delete,
    /// A character, with no other modifier than Shift.
    Char(char),
    /// A letter with Ctrl alone, in lower case.
    Ctrl(char),
    /// Any other key, and any other input of the terminal, such as a report of the mouse or of the
    /// focus.
    Other,
}

impl Key {
    /// Whether the key acts at any time: Esc and Ctrl+C interrupt.
    #[must_use]
    pub fn interrupts(self) -> bool {
        matches!(self, Self::Esc | Self::Ctrl('c'))
    }
}

/// The effect of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pressed {
    /// The key had no effect.
    Nothing,
    /// The text, or the cursor in it, has changed.
    Typed,
    /// The keys that answer have changed: the form switched between a choice and a text, or waits
    /// for a second `A` or `D`, or no longer does.
    ModeChanged,
    /// Another question of the same ask is shown.
    Moved,
    /// The user answers the ask.
    Answer(Answer),
    /// The user interrupts the turn.
    Interrupt,
}

/// How the form interprets keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// Each key is a choice.
    Choice,
    /// Keys are entered as text.
    Text {
        /// Whether Esc returns to a choice.
        chosen: bool,
    },
}

/// An open ask, with the answer as the user has entered it so far.
#[derive(Debug)]
pub struct AskForm {
    ask: Ask,
    guard: Guard,
    /// One for each question, or one for a pause, with the reason of a denial.
    fields: Vec<Field>,
    /// The index of the field that is shown.
    shown: usize,
    /// The answer with *always* whose key was pressed once.
    armed: Option<Answer>,
    /// Whether an answer was given. No other is given then.
    answered: bool,
    /// Whether the user has interrupted the turn.
    interrupted: bool,
}

/// One answer under construction.
#[derive(Debug, Default)]
struct Field {
    line: LineEditor,
    /// Whether the user writes instead of choosing an option.
    is_writing: bool,
    reply: Option<Reply>,
}

/// The user's reply to one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The label of an option, or the user's own text.
    Answer(String),
    /// The question is skipped.
    Skip,
}

impl AskForm {
    /// Creates a form for an ask that is shown from now on.
    #[must_use]
    pub fn new(ask: Ask, now: Instant) -> Self {
        let fields = match &ask.request {
            AskRequest::Question(request) => request.questions.len().max(1),
            AskRequest::Pause(_) => 1,
        };
        let fields = (0..fields).map(|_| Field::default()).collect();
        let guard = Guard::new(now);
        Self { ask, guard, fields, shown: 0, armed: None, answered: false, interrupted: false }
    }

    /// The ask that the form is for.
    #[must_use]
    pub fn ask(&self) -> &Ask {
        &self.ask
    }

    /// The question that is shown, its number from 1, and the number of questions.
    #[must_use]
    pub fn question(&self) -> Option<(&Question, usize, usize)> {
        let AskRequest::Question(request) = &self.ask.request else { return None };
        Some((request.questions.get(self.shown)?, self.shown + 1, request.questions.len()))
    }

    /// The reply to the question that is shown, if the user has returned to it.
    #[must_use]
    pub fn reply(&self) -> Option<&Reply> {
        self.fields[self.shown].reply.as_ref()
    }

    /// How the form interprets keys now.
    #[must_use]
    pub fn entry(&self) -> Entry {
        match self.question() {
            Some((question, ..)) if question.options.is_empty() => Entry::Text { chosen: false },
            Some(_) | None if self.fields[self.shown].is_writing => Entry::Text { chosen: true },
            Some(_) | None => Entry::Choice,
        }
    }

    /// The text in the field that is shown.
    #[must_use]
    pub fn line(&self) -> &LineEditor {
        &self.fields[self.shown].line
    }

    /// The answer with *always* that a second press of its key, `A` or `D`, gives.
    #[must_use]
    pub fn armed(&self) -> Option<&Answer> {
        self.armed.as_ref()
    }

    /// Whether there is an unfinished answer.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        let begun = |field: &Field| !field.line.text().is_empty() || field.reply.is_some();
        !self.answered && self.fields.iter().any(begun)
    }

    /// Whether the user has answered, or interrupted the turn.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.answered || self.interrupted
    }

    /// Marks the ask as shown only now. Keys that answer count after the guard again.
    pub fn show(&mut self, now: Instant) {
        self.guard.restart(now);
    }

    /// Marks the form as no longer shown while its ask is open. The answer so far is kept.
    pub fn hide(&mut self) {
        (self.interrupted, self.armed) = (false, None);
        self.fields.iter_mut().for_each(|field| field.is_writing = false);
    }

    /// Allows another answer after one was refused. The last reply has to be given again; the
    /// others are kept.
    pub fn reopen(&mut self, now: Instant) {
        (self.answered, self.interrupted) = (false, false);
        self.guard.restart(now);
        self.fields[self.shown].is_writing = false;
        self.fields[self.shown].reply = None;
    }

    /// Handles a key that was pressed at `at`, and returns its effect.
    pub fn press(&mut self, key: Key, at: Instant) -> Pressed {
        let entry = self.entry();
        let accepts_text = self.accepts_text(at);
        let was_armed = self.armed.is_some();
        // Any other key cancels the first press.
        self.armed = self.armed.take().filter(|answer| always_answer(key).as_ref() == Some(answer));
        let pressed = match entry {
            _ if key.interrupts() => self.escape(key, entry),
            _ if self.answered => Pressed::Nothing,
            // Showing another question is not an answer.
            _ if matches!(key, Key::Tab) => self.go_to(self.shown + 1),
            _ if matches!(key, Key::BackTab) => self.go_to(self.shown.wrapping_sub(1)),
            Entry::Choice if key == Key::Right => self.go_to(self.shown + 1),
            Entry::Choice if key == Key::Left => self.go_to(self.shown.wrapping_sub(1)),
            Entry::Text { .. } if accepts_text => self.write(key),
            Entry::Choice if let Some(answer) = &self.armed => {
                match self.guard.has_lasted(ALWAYS_GUARD, at) {
                    true => Pressed::Answer(answer.clone()),
                    false => Pressed::Nothing,
                }
            }
            Entry::Choice if self.guard.is_over(at) => self.choose(key),
            Entry::Choice | Entry::Text { .. } => Pressed::Nothing,
        };
        let pressed = if pressed == Pressed::Nothing && was_armed && self.armed.is_none() {
            Pressed::ModeChanged
        } else {
            pressed
        };
        let is_answer = matches!(pressed, Pressed::Answer(_));
        // Typing does not delay the Enter that sends the text.
        let is_text = accepts_text && matches!(pressed, Pressed::Typed | Pressed::Nothing);
        if !is_answer && !is_text {
            self.guard.restart(at);
        }
        self.answered |= is_answer;
        pressed
    }

    /// Handles pasted text, which is added to the typed text and never answers.
    pub fn paste(&mut self, text: &str, at: Instant) -> Pressed {
        if self.answered || !self.accepts_text(at) {
            return self.press(Key::Other, at);
        }
        let line: String = text
            .chars()
            .map(|character| if character.is_control() { ' ' } else { character })
            .collect();
        self.fields[self.shown].line.insert(&line);
        Pressed::Typed
    }

    /// Whether typed or pasted text goes into the field that is shown. A user who has chosen to
    /// write need not wait for the guard, so that the first letters are not lost; but after an
    /// interrupt the guard counts, so that no answer follows at once.
    fn accepts_text(&self, at: Instant) -> bool {
        match self.entry() {
            Entry::Text { chosen } => self.guard.is_over(at) || chosen && !self.interrupted,
            Entry::Choice => false,
        }
    }

    fn escape(&mut self, key: Key, entry: Entry) -> Pressed {
        let field = &mut self.fields[self.shown];
        match entry {
            Entry::Text { chosen: true } if key == Key::Esc && !self.answered => {
                field.is_writing = false;
                Pressed::ModeChanged
            }
            Entry::Text { chosen: false }
                if key == Key::Esc && !self.answered && !field.line.text().is_empty() =>
            {
                field.line = LineEditor::default();
                Pressed::Typed
            }
            _ => {
                self.interrupted = true;
                Pressed::Interrupt
            }
        }
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
                (PauseKind::Confirm, 'a' | 'd') if self.ask.always.is_some() => {
                    self.armed = always_answer(key);
                    Pressed::ModeChanged
                }
                (PauseKind::Confirm, 'n') => {
                    Pressed::Answer(Answer::Deny { reason: None, always: false })
                }
                (PauseKind::Confirm, 'r') => self.start_writing(),
                (PauseKind::Continue | PauseKind::Confirm, _) => Pressed::Nothing,
            },
            AskRequest::Question(_) => match letter {
                'w' => self.start_writing(),
                's' => self.reply_to_question(Reply::Skip),
                '1'..='9' => {
                    let index = letter.to_digit(10).unwrap_or_default() as usize - 1;
                    let option =
                        self.question().and_then(|(question, ..)| question.options.get(index));
                    let label = option.map(|option| option.label.clone());
                    label.map_or(Pressed::Nothing, |label| {
                        self.reply_to_question(Reply::Answer(label))
                    })
                }
                _ => Pressed::Nothing,
            },
        }
    }

    fn start_writing(&mut self) -> Pressed {
        self.fields[self.shown].is_writing = true;
        Pressed::ModeChanged
    }

    fn write(&mut self, key: Key) -> Pressed {
        let is_question = matches!(self.ask.request, AskRequest::Question(_));
        let words = self.fields[self.shown].line.text().trim().to_owned();
        match key {
            Key::Ctrl('d') if is_question => self.reply_to_question(Reply::Skip),
            Key::Enter if words.is_empty() => Pressed::Nothing,
            Key::Enter if is_question => self.reply_to_question(Reply::Answer(words)),
            Key::Enter => Pressed::Answer(Answer::Deny { reason: Some(words), always: false }),
            key if self.fields[self.shown].line.press(key) => Pressed::Typed,
            _ => Pressed::Nothing,
        }
    }

    /// Shows the question with this index, if there is one.
    fn go_to(&mut self, index: usize) -> Pressed {
        if index >= self.fields.len() {
            return Pressed::Nothing;
        }
        self.fields[self.shown].is_writing = false;
        self.shown = index;
        Pressed::Moved
    }

    /// Replies to the question that is shown. Shows the next one without a reply, or answers the
    /// ask if all have one.
    fn reply_to_question(&mut self, reply: Reply) -> Pressed {
        self.fields[self.shown].reply = Some(reply);
        let count = self.fields.len();
        let open = (self.shown + 1..count)
            .chain(0..self.shown)
            .find(|index| self.fields[*index].reply.is_none());
        match open {
            Some(index) => self.go_to(index),
            None => Pressed::Answer(self.answer()),
        }
    }

    /// All replies as one answer.
    fn answer(&self) -> Answer {
        let AskRequest::Question(request) = &self.ask.request else { return Answer::Cancel };
        let reply = |(question, field): (&Question, &Field)| {
            let answer = match &field.reply {
                Some(Reply::Answer(answer)) => Some(answer.clone()),
                Some(Reply::Skip) | None => None,
            };
            QuestionReply { id: question.id.clone(), answer }
        };
        let answers: Vec<_> = request.questions.iter().zip(&self.fields).map(reply).collect();
        if answers.iter().all(|reply| reply.answer.is_none()) {
            Answer::Cancel
        } else {
            Answer::Reply { answers }
        }
    }
}

/// The answer with *always* that a key gives if it is pressed twice.
fn always_answer(key: Key) -> Option<Answer> {
    match key {
        Key::Char('a' | 'A') => Some(Answer::Approve { always: true }),
        Key::Char('d' | 'D') => Some(Answer::Deny { reason: None, always: true }),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
