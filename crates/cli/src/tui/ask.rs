//! An ask on the screen: how far the user is with it, and when it was there to be read.

use std::sync::Arc;
use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent};
use holdpoint_common::{Ask, AskId, Event, Fact, SessionId};
use holdpoint_session::form::{AskForm, Entry, Key, Pressed};
use holdpoint_tools::shown::prose_line;

use crate::terminal::form_key;

/// An ask that is shown.
#[derive(Debug)]
pub(crate) struct AskView {
    pub(crate) form: AskForm,
    /// A line of the request, at least, and its keys are in the frame.
    pub(crate) in_sight: bool,
    /// It has been drawn.
    pub(crate) drawn: bool,
    /// Rows of it above the visible ones.
    pub(crate) scroll: usize,
    /// Rows of it below the visible ones; known when it is drawn.
    pub(crate) below: usize,
    /// It takes the whole screen.
    pub(crate) large: bool,
    /// How it has ended, once an event has reported it.
    pub(crate) ended: Option<String>,
}

impl AskView {
    /// An ask that is about to be drawn. Until it is, no key answers it.
    fn new(form: AskForm) -> Self {
        Self { form, in_sight: false, drawn: false, scroll: 0, below: 0, large: false, ended: None }
    }

    /// It appears anew: keys count only a while after it is drawn.
    pub(crate) fn hide(&mut self) {
        self.drawn = false;
    }

    /// The frame has been drawn. An ask that cannot be read in it appears anew with one in which it can.
    pub(crate) fn appear(&mut self, now: Instant) {
        if self.in_sight && !self.drawn {
            self.form.appear(now);
        }
        self.drawn = self.in_sight;
    }

    /// Whether Tab shows the next question.
    pub(crate) fn has_more_questions(&self) -> bool {
        self.form.question().is_some_and(|(.., of)| of > 1)
    }

    /// Does what a key means: it scrolls, or is for the form.
    pub(crate) fn press(&mut self, key: &KeyEvent, now: Instant) -> Pressed {
        let typing = matches!(self.form.entry(), Entry::Words { .. });
        let chosen = matches!(self.form.entry(), Entry::Words { chosen: true, .. });
        match key.code {
            KeyCode::Up => self.scroll_by(-1),
            KeyCode::Down => self.scroll_by(1),
            KeyCode::PageUp => self.scroll_by(-10),
            KeyCode::PageDown => self.scroll_by(10),
            KeyCode::Home if !typing => self.scroll = 0,
            KeyCode::End if !typing => self.scroll_by(isize::MAX),
            KeyCode::Tab if !typing && !self.has_more_questions() => self.large = !self.large,
            _ => {}
        }
        let key = form_key(key);
        // An ask that has not been drawn cannot have been read; to stop it needs no reading.
        if !self.drawn && !chosen && !key.interrupts() {
            return Pressed::Nothing;
        }
        let pressed = self.form.press(key, now);
        if matches!(pressed, Pressed::Turned | Pressed::Moved) {
            self.scroll = 0;
        }
        if pressed == Pressed::Moved {
            self.hide();
        }
        pressed
    }

    /// Input that is not for it: keys answer only after a pause.
    pub(crate) fn put_off(&mut self, now: Instant) {
        self.form.press(Key::Other, now);
    }

    /// Takes how it ended, if that is among the events.
    pub(crate) fn note(&mut self, events: &[Arc<Event>]) {
        let ended = events.iter().find_map(|event| end(event, &self.form.ask().id));
        self.ended = ended.or(self.ended.take());
    }

    /// How another client, or the session, has closed it, in a line; nothing if it was this user.
    pub(crate) fn closed(&self) -> Option<String> {
        let ended = self.ended.as_deref().unwrap_or("answered, or closed, elsewhere");
        let words = if self.form.is_begun() { "; your words were not sent" } else { "" };
        let tool = prose_line(self.form.ask().request.tool_name());
        (!self.form.is_done()).then(|| format!("{tool}: {}{words}", prose_line(ended)))
    }

    /// Pasted text is words, never keys.
    pub(crate) fn paste(&mut self, text: &str, now: Instant) {
        if self.drawn {
            self.form.paste(text, now);
        }
    }

    pub(crate) fn scroll_by(&mut self, rows: isize) {
        let most = self.scroll + self.below;
        self.scroll = self.scroll.saturating_add_signed(rows).min(most);
    }
}

/// How this event ends the ask, if it does.
pub(crate) fn end(event: &Event, id: &AskId) -> Option<String> {
    match event.fact()? {
        Fact::AskAnswered { ask, by, .. } if ask == id => Some(format!("answered {by}")),
        Fact::AskClosed { ask, cause } if ask == id => Some(format!("closed: {cause}")),
        _ => None,
    }
}

/// Asks that the user has begun to answer and that are shown no longer.
#[derive(Debug, Default)]
pub(crate) struct Begun(Vec<AskForm>);

impl Begun {
    /// An ask that is about to be drawn: as far as the user was with it, if it was shown before.
    pub(crate) fn view(&mut self, ask: &Ask, now: Instant) -> AskView {
        let begun = self.0.iter().position(|begun| begun.ask().id == ask.id);
        AskView::new(begun.map_or_else(|| AskForm::new(ask.clone(), now), |at| self.0.swap_remove(at)))
    }

    /// It is shown no longer, and still open.
    pub(crate) fn keep(&mut self, view: Option<AskView>) {
        if let Some(AskView { mut form, .. }) = view
            && form.is_begun()
        {
            form.put_away();
            self.0.push(form);
        }
    }

    /// No ask of this session waits for an answer.
    pub(crate) fn forget(&mut self, session: &SessionId) {
        self.0.retain(|begun| begun.ask().id.session != *session);
    }
}
