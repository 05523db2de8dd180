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
    /// Whether the last frame had room for the ask's keys and at least one line of the request.
    pub(crate) readable: bool,
    /// Whether the ask was drawn while it was readable, and has been visible since then.
    pub(crate) drawn: bool,
    /// Rows hidden above the visible ones.
    pub(crate) scroll: usize,
    /// Rows hidden below the visible ones, set when it is drawn.
    pub(crate) below: usize,
    /// Whether the ask takes the whole screen.
    pub(crate) large: bool,
    /// How the ask was closed, once an event has reported it.
    pub(crate) how_closed: Option<String>,
}

impl AskView {
    /// An ask that is about to be drawn. No key answers it before that.
    fn new(form: AskForm) -> Self {
        Self {
            form,
            readable: false,
            drawn: false,
            scroll: 0,
            below: 0,
            large: false,
            how_closed: None,
        }
    }

    /// Marks the ask as not visible. Keys answer it only a while after it is drawn again.
    pub(crate) fn hide(&mut self) {
        self.drawn = false;
    }

    /// Called after each frame. The ask becomes visible with the first frame in which it is
    /// readable.
    pub(crate) fn after_frame(&mut self, now: Instant) {
        if self.readable && !self.drawn {
            self.form.show(now);
        }
        self.drawn = self.readable;
    }

    /// Whether the ask has several questions, between which Tab moves.
    pub(crate) fn has_several_questions(&self) -> bool {
        self.form.question().is_some_and(|(.., count)| count > 1)
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
            KeyCode::Tab if !typing && !self.has_several_questions() => self.large = !self.large,
            _ => {}
        }
        let key = form_key(key);
        // An ask that was not drawn can't have been read. Exceptions: interrupting needs no
        // reading, and a user who has chosen to write must not lose the first letters.
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
    pub(crate) fn record_close(&mut self, events: &[Arc<Event>]) {
        let how_closed = events.iter().find_map(|event| describe_close(event, &self.form.ask().id));
        self.how_closed = how_closed.or(self.how_closed.take());
    }

    /// Describes in one line how another client or the session closed the ask. `None` if this user
    /// answered it.
    pub(crate) fn close_notice(&self) -> Option<String> {
        let how_closed = self.how_closed.as_deref().unwrap_or("answered or closed elsewhere");
        let unsent = if self.form.is_begun() { "; your words were not sent" } else { "" };
        let tool = prose_line(self.form.ask().request.tool_name());
        (!self.form.is_done()).then(|| format!("{tool}: {}{unsent}", prose_line(how_closed)))
    }

    /// Pasted text is input, never keys.
    pub(crate) fn paste(&mut self, text: &str, now: Instant) {
        if self.drawn {
            self.form.paste(text, now);
        }
    }

    pub(crate) fn scroll_by(&mut self, rows: isize) {
        let max_scroll = self.scroll + self.below;
        self.scroll = self.scroll.saturating_add_signed(rows).min(max_scroll);
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
        let started = self.0.iter().position(|form| form.ask().id == ask.id);
        AskView::new(
            started.map_or_else(|| AskForm::new(ask.clone(), now), |at| self.0.swap_remove(at)),
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

    /// Forgets the forms of a session that has no open ask.
    pub(crate) fn forget(&mut self, session: &SessionId) {
        self.0.retain(|form| form.ask().id.session != *session);
    }
}
