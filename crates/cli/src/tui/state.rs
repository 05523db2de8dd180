//! All that the screen shows. Pure: it changes by `update` alone.

use std::time::Duration;
use std::time::Instant;

use holdpoint_common::{Screen as Settings, SessionId, SessionSummary};
use holdpoint_session::form::{Guard, Key};
use holdpoint_session::model::DefaultModel;

use super::ask::{AskView, Begun};
use super::hub::Hub;
use super::keymap::{Keymap, Press};
use super::message::Moment;
use super::session::Session;
use super::style::Tone;

/// How often what moves is drawn anew.
const SPIN: Duration = Duration::from_millis(125);
/// How long a notice stays; one of what went wrong is read twice.
const NOTICE: Duration = Duration::from_secs(6);
const WRONG: Duration = Duration::from_secs(12);
/// How soon a second Ctrl+C leaves.
pub(crate) const AGAIN: Duration = Duration::from_secs(2);

/// Who looks, and from where.
#[derive(Debug, Clone)]
pub(crate) struct Me {
    /// This process.
    pub(crate) pid: u32,
    /// Its folder.
    pub(crate) folder: String,
    /// The model of the sessions that are opened here, and why it is that one.
    pub(crate) model: DefaultModel,
}

/// All that the screen shows.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) me: Me,
    pub(crate) settings: Settings,
    pub(crate) keymap: Keymap,
    pub(crate) hub: Hub,
    /// What was left while it was open, to be named when all is left.
    pub(crate) left: Option<SessionId>,
    /// The session that is open; without one, the hub is shown.
    pub(crate) session: Option<Session>,
    /// A session is being opened, by the attachment of this number.
    pub(crate) opening: Option<Opening>,
    /// What lies over all of it.
    pub(crate) overlay: Option<Overlay>,
    /// The first key of two.
    pub(crate) prefix: Option<Press>,
    pub(crate) notice: Option<Notice>,
    /// The terminal is the one that is looked at.
    pub(crate) focused: bool,
    /// The daemon is there.
    pub(crate) daemon: bool,
    pub(crate) now: Moment,
    /// Attachments there have been.
    pub(crate) attachments: u64,
    /// What was typed in sessions that were left, and prompts they did not take: typed again when they are shown.
    pub(crate) drafts: Vec<(SessionId, String)>,
    /// The prompts that were not taken.
    refused: Vec<Refused>,
    /// The same, of answers.
    pub(crate) begun: Begun,
    /// Ctrl+C was pressed in the hub.
    pub(crate) leaving: Option<Instant>,
}

/// A session that is about to be shown.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) attachment: u64,
    pub(crate) fresh: bool,
    /// The session that was shown before: shown again, if this one can't be.
    pub(crate) back: Option<SessionId>,
}

/// A prompt that was not taken.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) id: SessionId,
    pub(crate) text: String,
    pub(crate) why: String,
}

/// What lies over the rest, and takes the keys.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Overlay {
    Help {
        scroll: usize,
    },
    /// The session runs: what becomes of it?
    Leave {
        quit: bool,
    },
    /// The session would be deleted, or closed first.
    Delete {
        id: SessionId,
        name: String,
        live: bool,
    },
    /// The daemon was told to stop.
    Stopped {
        /// From when that came, or a key was pressed that means nothing here.
        guard: Guard,
    },
}

/// Something that is told for a while.
#[derive(Debug, Clone)]
pub(crate) struct Notice {
    pub(crate) tone: Tone,
    pub(crate) text: String,
    pub(crate) until: Instant,
    /// It says what came of a key: with the next one it is read, or no longer so.
    pub(crate) of_key: bool,
}

impl State {
    pub(crate) fn new(me: Me, settings: Settings, keymap: Keymap, now: Moment) -> Self {
        let hub = Hub::new(me.folder.clone(), me.model.clone());
        Self {
            me,
            settings,
            keymap,
            hub,
            left: None,
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
            begun: Begun::default(),
            leaving: None,
        }
    }

    /// Tells something for a while.
    pub(crate) fn tell(&mut self, tone: Tone, text: impl Into<String>) {
        let stays = if matches!(tone, Tone::Warning | Tone::Fault) { WRONG } else { NOTICE };
        self.notice = Some(Notice { tone, text: text.into(), until: self.now.instant + stays, of_key: false });
    }

    /// Tells why what was chosen can't be shown, until something else is pressed.
    pub(crate) fn tell_not_opened(&mut self, why: String) {
        let until = self.now.instant + WRONG;
        self.notice = Some(Notice { tone: Tone::Fault, text: why, until, of_key: true });
    }

    /// Tells that Ctrl+C leaves now, for as long as it does.
    pub(crate) fn tell_leaving(&mut self) {
        let (text, until) = ("Ctrl+C again leaves".to_owned(), self.now.instant + AGAIN);
        self.notice = Some(Notice { tone: Tone::Plain, text, until, of_key: true });
    }

    /// Something else than Ctrl+C: the next one does not leave.
    pub(crate) fn stay(&mut self) {
        self.leaving = None;
        if let Some(session) = &mut self.session {
            session.leaving = None;
        }
        self.notice.take_if(|notice| notice.of_key);
    }

    /// Shows the session no longer, and keeps what was being typed. Returns which it was, if it can be come back to.
    pub(crate) fn put_away(&mut self) -> Option<SessionId> {
        let mut session = self.session.take()?;
        self.begun.keep(session.asking.take());
        let draft = session.prompt.text();
        if !draft.is_empty() {
            self.drafts.push((session.id.clone(), draft));
        }
        if session.closed || session.is_untouched() {
            return None;
        }
        // Who is told of all sessions may not have been told of this one yet.
        if self.hub.get(&session.id).is_none() {
            self.hub.put(SessionSummary::from(&*session.snapshot));
        }
        Some(session.id)
    }

    /// When the screen changes by itself: what spins, what counts seconds, what goes away. Nothing if it does not.
    pub(crate) fn next_tick(&self) -> Option<Duration> {
        let moves = match &self.session {
            Some(session) if session.spins() => Some(SPIN),
            Some(_) => None,
            None if self.hub.working.is_some() => Some(SPIN),
            None => self.hub.next_age(self.now.time),
        };
        let goes = self.notice.as_ref().map(|notice| notice.until.saturating_duration_since(self.now.instant));
        moves.into_iter().chain(goes.map(|left| left.max(Duration::from_millis(10)))).min()
    }

    /// Whether what this attachment brings is shown, or is about to be.
    pub(crate) fn awaits(&self, attachment: u64) -> bool {
        let opening = self.opening.as_ref().map(|opening| opening.attachment);
        let shown = self.session.as_ref().map(|session| session.attachment);
        opening.or(shown) == Some(attachment)
    }

    /// What asks, in the session and in the hub.
    pub(crate) fn asks(&mut self) -> impl Iterator<Item = &mut AskView> {
        let of_session = self.session.as_mut().and_then(|session| session.asking.as_mut());
        of_session.into_iter().chain(self.hub.asking.as_mut())
    }

    /// The user, or the terminal, does something else than to answer.
    pub(crate) fn put_off_asks(&mut self) {
        let now = self.now.instant;
        self.asks().for_each(|view| view.put_off(now));
        let of_session = self.session.as_mut().map(|session| &mut session.after);
        for after in of_session.into_iter().chain([&mut self.hub.after]) {
            after.swallows(Key::Other, now);
        }
    }

    /// Something else is on the screen.
    pub(crate) fn hide_asks(&mut self) {
        self.asks().for_each(AskView::hide);
    }

    /// The asks that are on the screen have been drawn, and can be answered a moment later.
    pub(crate) fn drawn(&mut self, now: Instant) {
        if self.overlay.is_none() {
            self.asks().for_each(|view| view.appear(now));
        }
    }

    /// A session did not take a prompt.
    pub(crate) fn refuse(&mut self, refused: Refused) {
        self.forget_refused(&refused.id, &refused.text);
        self.refused.push(refused);
    }

    /// Forgets that a session refused this prompt: it is sent again.
    pub(crate) fn forget_refused(&mut self, id: &SessionId, text: &str) {
        self.refused.retain(|refused| refused.id != *id || refused.text != text);
    }

    pub(crate) fn has_refused(&self, id: &SessionId, text: &str) -> bool {
        self.refused.iter().any(|refused| refused.id == *id && refused.text == text)
    }

    /// The prompts that were not taken, nor sent again or cleared since.
    pub(crate) fn unsent(&self) -> impl Iterator<Item = &Refused> {
        let drafts = |id| self.drafts.iter().filter(move |(of, _)| of == id);
        self.refused.iter().filter(move |refused| drafts(&refused.id).any(|(_, text)| text.contains(&refused.text)))
    }

    /// What a session is called, in a line.
    pub(crate) fn name_of(&self, id: &SessionId) -> String {
        let name = self.hub.get(id).map_or(id.as_str(), |session| &session.name);
        holdpoint_tools::shown::prose_line(name).into_owned()
    }

    /// The terminal's title.
    pub(crate) fn title(&self) -> String {
        let waiting = match self.hub.count_asks() {
            0 => String::new(),
            count => format!("({count}) "),
        };
        match &self.session {
            Some(session) => {
                let name = holdpoint_tools::shown::prose_line(&session.snapshot.settings.name).into_owned();
                format!("{waiting}{name} - holdpoint")
            }
            None => format!("{waiting}holdpoint"),
        }
    }
}
