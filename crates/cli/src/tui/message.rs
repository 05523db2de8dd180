//! What the screen is told, and what it wants done: all there is between the pure part and the rest.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use crossterm::event::KeyEvent;
use holdpoint_common::api::SessionNews;
use holdpoint_common::{Answer, AskId, Event, HoldShown, SessionId, Snapshot, Timestamp, TurnId};

/// When something happened: by the clock that keys are compared by, and by the one that events carry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) instant: Instant,
    pub(crate) time: Timestamp,
}

impl Moment {
    /// Now, by both clocks.
    pub(super) fn now() -> Self {
        Self { instant: Instant::now(), time: Timestamp::from(SystemTime::now()) }
    }
}

/// What the screen is told.
#[derive(Debug)]
pub(crate) enum Message {
    Key(KeyEvent),
    Paste(String),
    /// Input of the terminal that means nothing here.
    Other,
    /// The terminal is, or is no longer, the one that is looked at.
    Focus(bool),
    /// Time has passed: what shows it is to be drawn anew.
    Tick,
    /// All sessions are watched: what there is comes now.
    Watching,
    /// What has changed of all sessions.
    News(SessionNews),
    /// A session's events begin, from the past on; of the attachment of this number.
    Attached {
        attachment: u64,
        id: SessionId,
        snapshot: Arc<Snapshot>,
    },
    /// What happened, and the session after it.
    Happened {
        attachment: u64,
        events: Vec<Arc<Event>>,
        snapshot: Arc<Snapshot>,
    },
    /// Its events have broken off, and are begun again.
    Lost {
        attachment: u64,
    },
    /// The branch that its folder is on now.
    Branch {
        attachment: u64,
        branch: Option<String>,
    },
    /// All of the past that was asked for has come.
    Live {
        attachment: u64,
    },
    /// The session was closed.
    Closed {
        attachment: u64,
    },
    /// The daemon is gone, or is back.
    Daemon {
        here: bool,
    },
    /// The daemon was told to stop.
    Stopped,
    /// A prompt to this session was not taken.
    PromptRefused {
        id: SessionId,
        text: String,
        why: String,
    },
    /// An answer had no effect.
    AnswerRefused {
        ask: AskId,
        why: String,
    },
    /// How an ask has ended that was closed while the hub showed it.
    AskEnded {
        ask: AskId,
        how: String,
    },
    /// The session can't be opened; by the attachment of this number.
    NotOpened {
        attachment: u64,
        why: String,
    },
    /// What the editor left.
    Edited(String),
    /// Something to be told in a line.
    Told(String),
    /// Something that went wrong, in a line.
    Failed(String),
}

/// What the screen wants done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    /// Shows this session, with so many facts of its past.
    Open {
        id: SessionId,
        attachment: u64,
        limit: usize,
    },
    /// Shows this session again if it is still live; opens nothing.
    Reach {
        id: SessionId,
        attachment: u64,
        limit: usize,
    },
    /// Opens a fresh session and shows it.
    New {
        attachment: u64,
        limit: usize,
    },
    /// No longer shows the session.
    Detach,
    /// Starts the daemon again.
    Start,
    Prompt {
        text: String,
    },
    Answer {
        ask: AskId,
        answer: Answer,
    },
    /// Reads how this ask has ended, of whichever session.
    ReadAskEnd {
        ask: AskId,
    },
    Interrupt {
        turn: Option<TurnId>,
    },
    /// Ends the turn that asks this, of whichever session.
    InterruptOther {
        ask: AskId,
    },
    ToggleHold {
        shown: HoldShown,
    },
    Hold,
    Release,
    Rename {
        name: String,
    },
    Model {
        name: String,
    },
    Debug {
        enabled: bool,
    },
    Close {
        id: SessionId,
    },
    Delete {
        id: SessionId,
    },
    /// Deletes a session in which nothing was said.
    Forget {
        id: SessionId,
    },
    Export {
        path: PathBuf,
    },
    Edit {
        text: String,
    },
    Redraw,
    Suspend,
    /// Calls for the user, who looks elsewhere.
    Notify {
        text: String,
    },
    /// Ends the program.
    Quit,
}
