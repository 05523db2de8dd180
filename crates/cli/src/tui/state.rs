//! The state of the whole screen. `update` changes it. Drawing records which parts are
//! visible, and restores the hub's cursor after changes of the list.

use std::time::Duration;
use std::time::Instant;

use holdpoint_common::{ScreenSettings as Settings, SessionId, SessionSummary};
use holdpoint_session::form::{Guard, Key};
use holdpoint_session::model::DefaultModel;

use super::ask::{AskView, StartedForms};
use super::hub::Hub;
use super::keymap::{Keymap, Press};
use super::message::EventTime;
use super::session::Session;
use crate::tone::Tone;

/// The interval between two frames of an animation.
const ANIMATION_INTERVAL: Duration = Duration::from_millis(125);
/// How long a notice stays. Warnings and faults get time for a second reading.
const NOTICE_DURATION: Duration = Duration::from_secs(6);
const WARNING_DURATION: Duration = Duration::from_secs(12);
/// A second Ctrl+C within this time leaves.
pub(crate) const DOUBLE_PRESS: Duration = Duration::from_secs(2);

/// The process that shows the screen.
#[derive(Debug, Clone)]
pub(crate) struct OwnProcess {
    pub(crate) pid: u32,
    /// The process's working folder.
    pub(crate) folder: String,
    /// The model of sessions that are opened here, and the source of that choice.
    pub(crate) model: DefaultModel,
}

/// The state of the whole screen.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) process: OwnProcess,
    pub(crate) settings: Settings,
    pub(crate) keymap: Keymap,
    pub(crate) hub: Hub,
    /// The session that was open when the user quit, named in the last line of output.
    pub(crate) detached: Option<SessionId>,
    /// The open session. Without one, the hub is shown.
    pub(crate) session: Option<Session>,
    /// The session that is being opened.
    pub(crate) opening: Option<Opening>,
    /// The panel above the screen.
    pub(crate) overlay: Option<Overlay>,
    /// The first key of a two-key chord, once pressed.
    pub(crate) prefix: Option<Press>,
    pub(crate) notice: Option<Notice>,
    /// Whether the terminal has the focus.
    pub(crate) focused: bool,
    /// Whether the daemon is running.
    pub(crate) daemon: bool,
    pub(crate) now: EventTime,
    /// How many attachments were made; the newest has this number.
    pub(crate) attachments: u64,
    /// Unsent text of sessions that were left, including prompts they refused. It goes back into
    /// the prompt when the session is shown.
    pub(crate) drafts: Vec<(SessionId, String)>,
    refused: Vec<RefusedPrompt>,
    /// Answers that the user has started in asks no longer shown.
    pub(crate) started_forms: StartedForms,
    /// When Ctrl+C was pressed in the hub.
    pub(crate) leaving: Option<Instant>,
}

/// A session that is about to be shown.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) attachment: u64,
    pub(crate) fresh: bool,
    /// The session that was shown before. It is shown again if this one can't be.
    pub(crate) back: Option<SessionId>,
}

/// A prompt that its session did not accept.
#[derive(Debug)]
pub(crate) struct RefusedPrompt {
    pub(crate) id: SessionId,
    pub(crate) text: String,
    pub(crate) why: String,
}

/// A panel above the screen that takes the keys.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Overlay {
    Help {
        scroll: usize,
    },
    /// Asks what to do with a running session.
    Leave {
        quits: bool,
    },
    /// Confirms deleting a saved session or closing a live one.
    Delete {
        id: SessionId,
        name: String,
        live: bool,
    },
    /// Reports that the daemon was stopped.
    Stopped {
        /// Starts when the panel appears, and again with every key that has no meaning in it.
        guard: Guard,
    },
}

/// A message that is shown for a while.
#[derive(Debug, Clone)]
pub(crate) struct Notice {
    pub(crate) tone: Tone,
    pub(crate) text: String,
    pub(crate) until: Instant,
    /// Whether the next key removes the notice, because it reports the result of a key.
    pub(crate) until_next_key: bool,
}

impl State {
    pub(crate) fn new(
        process: OwnProcess,
        settings: Settings,
        keymap: Keymap,
        now: EventTime,
    ) -> Self {
        let hub = Hub::new(process.folder.clone(), process.model.clone());
        Self {
            process,
            settings,
            keymap,
            hub,
            detached: None,
            session: None,
            opening: None,
            overlay: None,
            prefix: None,
            notice: None,
            focused: true,
            daemon: true,
            now,
            attachments: 0,
            drafts: Vec::new(),
            refused: Vec::new(),
            started_forms: StartedForms::default(),
            leaving: None,
        }
    }

    /// Shows a notice.
    pub(crate) fn show_notice(&mut self, tone: Tone, text: impl Into<String>) {
        let duration = if matches!(tone, Tone::Warning | Tone::Fault) {
            WARNING_DURATION
        } else {
            NOTICE_DURATION
        };
        self.notice = Some(Notice {
            tone,
            text: text.into(),
            until: self.now.instant + duration,
            until_next_key: false,
        });
    }

    /// Reports why a session can't be shown. The next key removes the notice.
    pub(crate) fn show_open_error(&mut self, why: String) {
        let until = self.now.instant + WARNING_DURATION;
        self.notice = Some(Notice { tone: Tone::Fault, text: why, until, until_next_key: true });
    }

    /// Shows for [`DOUBLE_PRESS`] that a second Ctrl+C leaves.
    pub(crate) fn show_leave_hint(&mut self) {
        let text = "Ctrl+C again to leave".to_owned();
        let until = self.now.instant + DOUBLE_PRESS;
        self.notice = Some(Notice { tone: Tone::Plain, text, until, until_next_key: true });
    }

    /// Handles input other than Ctrl+C: the next Ctrl+C does not leave.
    pub(crate) fn cancel_leaving(&mut self) {
        self.leaving = None;
        if let Some(session) = &mut self.session {
            session.leaving = None;
        }
        self.notice.take_if(|notice| notice.until_next_key);
    }

    /// Leaves the session and keeps its unsent text. Returns its id if the user can return to it.
    pub(crate) fn leave_session(&mut self) -> Option<SessionId> {
        let mut session = self.session.take()?;
        self.started_forms.keep(session.open_ask.take());
        let draft = session.prompt.text();
        if !draft.is_empty() {
            self.drafts.push((session.id.clone(), draft));
        }
        if session.closed || session.is_untouched() {
            return None;
        }
        // The watch of all sessions may not have reported this one yet.
        if self.hub.get(&session.id).is_none() {
            self.hub.put(SessionSummary::from(&*session.snapshot));
        }
        Some(session.id)
    }

    /// The time until the screen changes by itself: an animation, a counter of seconds or the end
    /// of a notice. `None` if it does not.
    pub(crate) fn next_tick(&self) -> Option<Duration> {
        let until_change = match &self.session {
            Some(session) if session.is_animated() => Some(ANIMATION_INTERVAL),
            Some(_) => None,
            None if self.hub.followed_session.is_some() => Some(ANIMATION_INTERVAL),
            None => self.hub.until_age_change(self.now.time),
        };
        let until_notice_ends = self
            .notice
            .as_ref()
            .map(|notice| notice.until.saturating_duration_since(self.now.instant));
        until_change
            .into_iter()
            .chain(until_notice_ends.map(|left| left.max(Duration::from_millis(10))))
            .min()
    }

    /// Whether the session of this attachment is shown, or is about to be.
    pub(crate) fn awaits(&self, attachment: u64) -> bool {
        let opening = self.opening.as_ref().map(|opening| opening.attachment);
        let shown = self.session.as_ref().map(|session| session.attachment);
        opening.or(shown) == Some(attachment)
    }

    /// The ask in the session and the ask in the hub.
    pub(crate) fn asks(&mut self) -> impl Iterator<Item = &mut AskView> {
        let in_session = self.session.as_mut().and_then(|session| session.open_ask.as_mut());
        in_session.into_iter().chain(self.hub.panel_ask.as_mut())
    }

    /// Handles input that is not an answer: keys answer asks only after a pause.
    pub(crate) fn delay_asks(&mut self) {
        let now = self.now.instant;
        self.asks().for_each(|view| view.delay(now));
        let in_session = self.session.as_mut().map(|session| &mut session.after_ask);
        for after_ask in in_session.into_iter().chain([&mut self.hub.after_ask]) {
            after_ask.swallows(Key::Other, now);
        }
    }

    /// Marks the asks as hidden. They must be drawn again before a key can answer them.
    pub(crate) fn hide_asks(&mut self) {
        self.asks().for_each(AskView::hide);
    }

    /// Called after each frame: the visible asks can be answered a moment later.
    pub(crate) fn after_frame(&mut self, now: Instant) {
        if self.overlay.is_none() {
            self.asks().for_each(|view| view.after_frame(now));
        }
    }

    /// Records a prompt that its session did not accept.
    pub(crate) fn record_refused(&mut self, refused: RefusedPrompt) {
        self.forget_refused(&refused.id, &refused.text);
        self.refused.push(refused);
    }

    /// Forgets a refused prompt, because it is sent again.
    pub(crate) fn forget_refused(&mut self, id: &SessionId, text: &str) {
        self.refused.retain(|refused| refused.id != *id || refused.text != text);
    }

    pub(crate) fn has_refused(&self, id: &SessionId, text: &str) -> bool {
        self.refused.iter().any(|refused| refused.id == *id && refused.text == text)
    }

    /// The refused prompts that were neither sent again nor cleared since.
    pub(crate) fn refused_prompts(&self) -> impl Iterator<Item = &RefusedPrompt> {
        let drafts = |id| self.drafts.iter().filter(move |(session_id, _)| session_id == id);
        self.refused.iter().filter(move |refused| {
            drafts(&refused.id).any(|(_, text)| text.contains(&refused.text))
        })
    }

    /// The session's name as one safe line.
    pub(crate) fn name_of(&self, id: &SessionId) -> String {
        let name = self.hub.get(id).map_or(id.as_str(), |session| &session.name);
        holdpoint_tools::shown::prose_line(name).into_owned()
    }

    pub(crate) fn title(&self) -> String {
        let waiting = match self.hub.count_asks() {
            0 => String::new(),
            count => format!("({count}) "),
        };
        match &self.session {
            Some(session) => {
                let name = holdpoint_tools::shown::prose_line(&session.snapshot.settings.name)
                    .into_owned();
                format!("{waiting}{name} - holdpoint")
            }
            None => format!("{waiting}holdpoint"),
        }
    }
}
