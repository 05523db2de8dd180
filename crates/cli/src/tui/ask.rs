//! An ask on the screen: how far the user is with it, and when it was there to be read.

use std::sync::Arc;
use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent};
use holdpoint_common::{Ask, Event, Fact, SessionId};

use crate::asking::{Asking, Entry, GUARD, Pressed};
use crate::terminal::Key;

/// An ask that is shown.
#[derive(Debug)]
pub(crate) struct AskView {
    pub(crate) asking: Asking,
    /// A line of what it wants, at least, and its keys are in the frame.
    pub(crate) in_sight: bool,
    /// It has been drawn.
    pub(crate) drawn: bool,
    /// Rows of it that are above what is seen.
    pub(crate) scroll: usize,
    /// Rows of it that are below; known when it is drawn.
    pub(crate) below: usize,
    /// It takes the whole screen.
    pub(crate) large: bool,
    /// How it has ended, as far as that was told.
    ended: Option<String>,
}

impl AskView {
    /// An ask that is about to be drawn. Until it is, no key answers it.
    fn new(asking: Asking) -> Self {
        Self { asking, in_sight: false, drawn: false, scroll: 0, below: 0, large: false, ended: None }
    }

    /// It appears anew: keys count only a while after it is drawn.
    pub(crate) fn hide(&mut self) {
        self.drawn = false;
    }

    /// The frame has been drawn. What can't be read in it appears anew with one in which it can.
    pub(crate) fn appear(&mut self, now: Instant) {
        if self.in_sight && !self.drawn {
            self.asking.appear(now);
        }
        self.drawn = self.in_sight;
    }

    /// What a key does to it: it scrolls, or is for what is asked.
    pub(crate) fn press(&mut self, key: &KeyEvent, now: Instant) -> Pressed {
        let typing = matches!(self.asking.entry(), Entry::Words { .. });
        let chosen = matches!(self.asking.entry(), Entry::Words { chosen: true, .. });
        match key.code {
            KeyCode::Up => self.scroll_by(-1),
            KeyCode::Down => self.scroll_by(1),
            KeyCode::PageUp => self.scroll_by(-10),
            KeyCode::PageDown => self.scroll_by(10),
            KeyCode::Home => self.scroll = 0,
            KeyCode::End => self.scroll_by(isize::MAX),
            KeyCode::Tab if !typing => self.large = !self.large,
            _ => {}
        }
        // What has not been drawn can't have been read; to stop it needs no reading.
        let counts = |key: &Key| self.drawn || chosen || matches!(key, Key::Esc | Key::Ctrl('c'));
        let Some(key) = Key::of(key).filter(counts) else { return Pressed::Nothing };
        let pressed = self.asking.press(key, now);
        if matches!(pressed, Pressed::Turned | Pressed::Next) {
            self.scroll = 0;
        }
        if pressed == Pressed::Next {
            self.hide();
        }
        pressed
    }

    /// Takes how it ended, if that is among what happened.
    pub(crate) fn note(&mut self, events: &[Arc<Event>]) {
        let id = &self.asking.ask().id;
        let ended = events.iter().filter_map(|event| event.fact()).find_map(|fact| match fact {
            Fact::AskAnswered { ask, by, .. } if ask == id => Some(format!("answered by {by}")),
            Fact::AskClosed { ask, cause } if ask == id => Some(format!("closed: {cause}")),
            _ => None,
        });
        self.ended = ended.or(self.ended.take());
    }

    /// How it has ended, if it is shown for the words that were typed for it alone.
    pub(crate) fn over(&self) -> Option<&str> {
        self.asking.is_over().then(|| self.ended.as_deref().unwrap_or("it is no longer asked"))
    }

    /// Pasted text is words, never keys.
    pub(crate) fn paste(&mut self, text: &str, now: Instant) {
        if !self.drawn || !matches!(self.asking.entry(), Entry::Words { .. }) {
            return;
        }
        for character in text.chars().map(|character| if character.is_control() { ' ' } else { character }) {
            let _ = self.asking.press(Key::Char(character), now);
        }
    }

    pub(crate) fn scroll_by(&mut self, rows: isize) {
        let most = self.scroll + self.below;
        self.scroll = self.scroll.saturating_add_signed(rows).min(most);
    }
}

/// Keys that are still meant for an ask which is shown no longer: they go nowhere until, for a while, none was pressed.
#[derive(Debug, Default)]
pub(crate) struct Bereft(Option<Instant>);

impl Bereft {
    /// It was taken from under the user's hands.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.0 = Some(now);
    }

    /// Whether what is typed now is one of them.
    pub(crate) fn takes(&mut self, now: Instant) -> bool {
        self.0 = self.0.filter(|since| now.saturating_duration_since(*since) < GUARD).map(|_| now);
        self.0.is_some()
    }
}

/// Asks that the user has begun to answer and that are shown no longer.
#[derive(Debug, Default)]
pub(crate) struct Begun(Vec<Asking>);

impl Begun {
    /// An ask that is about to be drawn: as far as the user was with it, if it was shown before.
    pub(crate) fn view(&mut self, ask: &Ask, now: Instant) -> AskView {
        let begun = self.0.iter().position(|begun| begun.ask().id == ask.id);
        AskView::new(begun.map_or_else(|| Asking::new(ask.clone(), now), |at| self.0.swap_remove(at)))
    }

    /// It is shown no longer. What was typed is kept while it is open.
    pub(crate) fn keep(&mut self, view: Option<AskView>) {
        if let Some(AskView { mut asking, .. }) = view
            && asking.is_begun()
        {
            asking.put_away();
            self.0.push(asking);
        }
    }

    /// Nothing of this session waits for an answer.
    pub(crate) fn forget(&mut self, session: &SessionId) {
        self.0.retain(|begun| begun.ask().id.session != *session);
    }
}
