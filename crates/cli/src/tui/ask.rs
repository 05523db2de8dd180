//! An ask on the screen: its partly filled form, and the time since which the user could read it.

use std::sync::Arc;
use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent};
use holdpoint_common::{Ask, AskFact, AskId, Event, Fact, SessionId};
use holdpoint_session::form::{AskForm, Entry, Key, Pressed};
use holdpoint_tools::shown::prose_line;

use crate::terminal::form_key;

/// An ask that is shown.
#[derive(Debug)]
pub(crate) struct AskView {
    pub(crate) form: AskForm,
    /// The frame includes its keys and at least one line of the request.
    pub(crate) readable: bool,
    /// The ask was drawn with its keys in sight.
    pub(crate) drawn: bool,
    /// Rows hidden above the visible ones.
    pub(crate) scroll: usize,
    /// Rows hidden below the visible ones, set when it is drawn.
    pub(crate) below: usize,
    /// The ask takes the whole screen.
    pub(crate) large: bool,
    /// How the ask was closed, once an event has reported it.
    pub(crate) ended: Option<String>,
}

impl AskView {
    /// An ask that is about to be drawn. No key answers it before that.
    fn new(form: AskForm) -> Self {
        Self { form, readable: false, drawn: false, scroll: 0, below: 0, large: false, ended: None }
    }

    /// Makes the ask appear again: keys count only a while after it is drawn.
    pub(crate) fn hide(&mut self) {
        self.drawn = false;
    }

    /// Called after each frame. An ask that is not readable yet appears with the first frame in
    /// which it is.
    pub(crate) fn appear(&mut self, now: Instant) {
        if self.readable && !self.drawn {
            self.form.show(now);
        }
        self.drawn = self.readable;
    }

    /// Whether Tab shows the next question.
    pub(crate) fn has_more_questions(&self) -> bool {
        self.form.question().is_some_and(|(.., of)| of > 1)
    }

    /// Handles a key: scrolls, or passes it to the form.
    pub(crate) fn press(&mut self, key: &KeyEvent, now: Instant) -> Pressed {
        let typing = matches!(self.form.entry(), Entry::Text { .. });
        let chosen = matches!(self.form.entry(), Entry::Text { chosen: true, .. });
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
        // An ask that was not drawn can't have been read. Interrupting needs no reading.
        if !self.drawn && !chosen && !key.interrupts() {
            return Pressed::Nothing;
        }
        let pressed = self.form.press(key, now);
        if matches!(pressed, Pressed::ModeChanged | Pressed::Moved) {
            self.scroll = 0;
        }
        if pressed == Pressed::Moved {
            self.hide();
        }
        pressed
    }

    /// Handles input that is not for the ask: keys answer only after a pause.
    pub(crate) fn delay(&mut self, now: Instant) {
        self.form.press(Key::Other, now);
    }

    /// Records how the ask was closed, if one of the events reports it.
    pub(crate) fn note(&mut self, events: &[Arc<Event>]) {
        let ended = events.iter().find_map(|event| describe_close(event, &self.form.ask().id));
        self.ended = ended.or(self.ended.take());
    }

    /// Describes in one line how another client or the session closed the ask. `None` if this user
    /// answered it.
    pub(crate) fn closed(&self) -> Option<String> {
        let ended = self.ended.as_deref().unwrap_or("answered or closed elsewhere");
        let words = if self.form.is_begun() { "; your words were not sent" } else { "" };
        let tool = prose_line(self.form.ask().request.tool_name());
        (!self.form.is_done()).then(|| format!("{tool}: {}{words}", prose_line(ended)))
    }

    /// Pasted text is input, never keys.
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

/// How the event closes the ask, if it does.
pub(crate) fn describe_close(event: &Event, id: &AskId) -> Option<String> {
    match event.fact()? {
        Fact::Ask(AskFact::Answered { ask, by, .. }) if ask == id => Some(format!("answered {by}")),
        Fact::Ask(AskFact::Closed { ask, cause }) if ask == id => Some(format!("closed: {cause}")),
        _ => None,
    }
}

/// Forms that the user has started to fill in and that are no longer shown.
#[derive(Debug, Default)]
pub(crate) struct StartedForms(Vec<AskForm>);

impl StartedForms {
    /// Creates the view of an ask, with the form as the user left it if there is one.
    pub(crate) fn view(&mut self, ask: &Ask, now: Instant) -> AskView {
        let begun = self.0.iter().position(|begun| begun.ask().id == ask.id);
        AskView::new(
            begun.map_or_else(|| AskForm::new(ask.clone(), now), |at| self.0.swap_remove(at)),
        )
    }

    /// Keeps the started form of an ask that is still open but no longer shown.
    pub(crate) fn keep(&mut self, view: Option<AskView>) {
        if let Some(AskView { mut form, .. }) = view
            && form.is_begun()
        {
            form.hide();
            self.0.push(form);
        }
    }

    /// Forgets the session's forms, because it has no open ask.
    pub(crate) fn forget(&mut self, session: &SessionId) {
        self.0.retain(|begun| begun.ask().id.session != *session);
    }
}
