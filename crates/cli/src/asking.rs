//! What keys do to the ask that is shown. Pure: no terminal, no clock.

use std::time::{Duration, Instant};

use holdpoint_common::{Answer, Ask, AskRequest, PauseKind, Question, QuestionReply};

use crate::terminal::{Key, take_back};

/// A key that answers counts only this long after the ask appeared, for nobody reads faster; and after a key that did not
/// count or answers nothing, for whoever types on means something else.
pub(crate) const GUARD: Duration = Duration::from_millis(300);

/// The ask that is shown, and how far the user is with it.
#[derive(Debug)]
pub(crate) struct Asking {
    ask: Ask,
    /// When it, or what it wants to know now, appeared, or a key was pressed since that answered nothing.
    quiet_since: Instant,
    /// An answer is on its way: nothing more is taken.
    answered: bool,
    /// The user has interrupted what asks.
    left: bool,
    /// Somebody else has closed it amid the user's words for it: they are shown until they are left, and sent nowhere.
    over: bool,
    replies: Vec<QuestionReply>,
    entry: Entry,
    /// Words for what is to be answered now, as far as they are typed: kept while other keys are taken.
    typed: String,
}

/// What keys are taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Each is a choice.
    Choice,
    /// They make up a text.
    Words {
        /// There is a choice to go back to.
        chosen: bool,
    },
}

/// What a key did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pressed {
    /// It means nothing here, or not yet.
    Nothing,
    /// What is typed has changed.
    Typed,
    /// It is to be answered in another way now.
    Turned,
    /// The next question appears.
    Next,
    /// This is the answer.
    Answer(Answer),
    /// The turn is to end.
    Interrupt,
    /// The user gave up the words typed for an ask that has closed.
    Left,
}

impl Asking {
    /// An ask that appears now.
    pub(crate) fn new(ask: Ask, now: Instant) -> Self {
        let (replies, typed) = (Vec::new(), String::new());
        let (answered, left, over, entry) = (false, false, false, Entry::Choice);
        let mut asking = Self { ask, quiet_since: now, answered, left, over, replies, entry, typed };
        asking.begin();
        asking
    }

    /// The ask.
    pub(crate) fn ask(&self) -> &Ask {
        &self.ask
    }

    /// The question that is to be replied to now, and which of how many it is.
    pub(crate) fn question(&self) -> Option<(&Question, usize, usize)> {
        let AskRequest::Question(request) = &self.ask.request else { return None };
        let place = self.replies.len();
        Some((request.questions.get(place)?, place + 1, request.questions.len()))
    }

    /// What keys are taken for now.
    pub(crate) fn entry(&self) -> Entry {
        self.entry
    }

    /// What is typed, if words are what keys are taken for.
    pub(crate) fn typed(&self) -> &str {
        &self.typed
    }

    /// Whether the user has begun with an answer, and not given it.
    pub(crate) fn is_begun(&self) -> bool {
        !self.answered && !self.over && (!self.typed.is_empty() || !self.replies.is_empty())
    }

    /// Whether this user has answered it, or interrupted what asks.
    pub(crate) fn is_done(&self) -> bool {
        self.answered || self.left
    }

    /// Whether it is closed, and shown for the words that were typed for it alone.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// The ask has closed. Returns whether its prompt stays: a user in the middle of typing words for it may continue
    /// without looking at the screen, after any pause.
    pub(crate) fn close(&mut self) -> bool {
        let amid = match self.entry {
            Entry::Words { chosen } => chosen || !self.typed.is_empty(),
            Entry::Choice => false,
        };
        self.over = amid && !self.is_done();
        self.over
    }

    /// It is shown no longer: when it is again, keys count as they do at first.
    pub(crate) fn put_away(&mut self) {
        self.left = false;
        self.begin();
    }

    /// It is on the screen only now.
    pub(crate) fn appear(&mut self, now: Instant) {
        self.quiet_since = now;
    }

    /// The answer was refused: keys count again, from the beginning.
    pub(crate) fn reopen(&mut self, now: Instant) {
        (self.answered, self.quiet_since) = (false, now);
        if self.replies.len() > 1 {
            // They are for the last question, and the first one is asked again.
            self.typed.clear();
        }
        self.replies.clear();
        self.begin();
    }

    /// What a key that was pressed at `at` does.
    pub(crate) fn press(&mut self, key: Key, at: Instant) -> Pressed {
        let chosen = matches!(self.entry, Entry::Words { chosen: true, .. });
        match key {
            Key::Enter | Key::Esc | Key::Ctrl('c') if self.over => return Pressed::Left,
            _ if self.over => return Pressed::Nothing,
            Key::Ctrl('c') => return self.interrupt(),
            Key::Esc if chosen && !self.answered => {
                // The keys appear anew: what is typed on was meant for the words.
                (self.entry, self.quiet_since) = (Entry::Choice, at);
                return Pressed::Turned;
            }
            Key::Esc => return self.interrupt(),
            _ => {}
        }
        if self.answered {
            return Pressed::Nothing;
        }
        let counts = at.saturating_duration_since(self.quiet_since) >= GUARD;
        let pressed = match self.entry {
            Entry::Choice if counts => self.choose(key),
            // Who has chosen to type is not to lose the first letters: nothing typed is no answer.
            Entry::Words { .. } if counts || chosen => self.write(key),
            Entry::Choice | Entry::Words { .. } => Pressed::Nothing,
        };
        // Who types on means something else: an ask that was here before, most likely.
        let came_too_early = !counts && !chosen;
        if pressed == Pressed::Nothing && (self.entry == Entry::Choice || came_too_early) {
            self.quiet_since = at;
        }
        self.answered = matches!(pressed, Pressed::Answer(_));
        pressed
    }

    fn interrupt(&mut self) -> Pressed {
        self.left = true;
        Pressed::Interrupt
    }

    /// Begins with what is to be answered now.
    fn begin(&mut self) {
        self.entry = match self.question() {
            Some((question, ..)) if question.options.is_empty() => Entry::Words { chosen: false },
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
        self.entry = Entry::Words { chosen: true };
        Pressed::Turned
    }

    fn write(&mut self, key: Key) -> Pressed {
        match (key, &self.ask.request) {
            (Key::Char(character), _) => {
                self.typed.push(character);
                Pressed::Typed
            }
            (Key::Backspace, _) if take_back(&mut self.typed) => Pressed::Typed,
            (Key::Ctrl('d'), AskRequest::Question(_)) => Pressed::Answer(Answer::Cancel),
            (Key::Enter, request) => match (self.typed.trim(), request) {
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
            self.typed.clear();
            self.begin();
            return Pressed::Next;
        }
        Pressed::Answer(Answer::Reply { answers: self.replies.clone() })
    }
}

/// How many asks wait behind the one that is shown, in words; nothing if none does.
pub(crate) fn behind(waiting: usize) -> Option<String> {
    match waiting {
        0 => None,
        1 => Some("1 more waits".to_owned()),
        more => Some(format!("{more} more wait")),
    }
}

#[cfg(test)]
mod tests;
