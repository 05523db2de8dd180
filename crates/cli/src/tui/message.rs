//! Messages to the pure part of the screen, and the commands it returns. The two sides share
//! nothing else.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use crossterm::event::KeyEvent;
use holdpoint_common::api::SessionNews;
use holdpoint_common::{
    Answer, AskId, AsksMode, Event, HoldState, SessionId, Snapshot, Timestamp, TurnId,
};

/// The time of an event on two clocks: the monotonic clock, by which keys are compared, and the
/// wall clock, whose time session events carry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventTime {
    pub(crate) instant: Instant,
    pub(crate) time: Timestamp,
}

impl EventTime {
    /// The current time on both clocks.
    pub(super) fn now() -> Self {
        Self { instant: Instant::now(), time: Timestamp::from(SystemTime::now()) }
    }
}

/// A message to the screen. Each attachment to a session has a number, `attachment`; messages of
/// an earlier one are ignored.
#[derive(Debug)]
pub(crate) enum Message {
    Key(KeyEvent),
    Paste(String),
    /// Terminal input without a meaning.
    Other,
    /// The terminal gained or lost the focus.
    Focus(bool),
    /// Time has passed: ages, animations and notices may change.
    Tick,
    /// The watch of all sessions has started; the existing sessions follow.
    Watching,
    /// A change in the list of sessions.
    SessionChanged(SessionNews),
    /// An attachment has started; events follow, the past first.
    Attached {
        attachment: u64,
        id: SessionId,
        snapshot: Arc<Snapshot>,
    },
    /// Events, and the session's snapshot after them.
    Events {
        attachment: u64,
        events: Vec<Arc<Event>>,
        snapshot: Arc<Snapshot>,
    },
    /// The stream of events broke; the link attaches again.
    Lost {
        attachment: u64,
    },
    /// The git branch of the workspace has changed.
    Branch {
        attachment: u64,
        branch: Option<String>,
    },
    /// The replay of the past has ended.
    ReplayEnded {
        attachment: u64,
    },
    Closed {
        attachment: u64,
    },
    /// The daemon is gone or has returned.
    Daemon {
        running: bool,
    },
    /// The daemon was stopped.
    Stopped,
    /// The session did not accept a prompt.
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
    /// How an ask was closed while the hub showed it.
    AskEnded {
        ask: AskId,
        how: String,
    },
    /// The session can't be opened.
    NotOpened {
        attachment: u64,
        why: String,
    },
    /// The text that the editor saved.
    Edited(String),
    /// A notice, in one line.
    Notice(String),
    /// An error, in one line.
    Failed(String),
}

/// A command to the loop or the link.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    /// Shows a session, with up to `limit` facts of its past.
    Open {
        id: SessionId,
        attachment: u64,
        limit: usize,
    },
    /// Shows a session again if it is still live; a saved one is not opened.
    ShowLive {
        id: SessionId,
        attachment: u64,
        limit: usize,
    },
    /// Creates a session and shows it.
    New {
        attachment: u64,
        limit: usize,
    },
    /// Stops following the session.
    Detach,
    /// Starts the daemon again.
    StartDaemon,
    Prompt {
        text: String,
    },
    Answer {
        ask: AskId,
        answer: Answer,
    },
    /// Reads how an ask was closed, in any session.
    ReadAskEnd {
        ask: AskId,
    },
    Interrupt {
        turn: Option<TurnId>,
    },
    /// Interrupts the turn of an ask, in any session.
    InterruptOther {
        ask: AskId,
    },
    ToggleHold {
        shown: HoldState,
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
    Asks {
        asks: AsksMode,
    },
    Close {
        id: SessionId,
    },
    Delete {
        id: SessionId,
    },
    /// Closes and deletes a session that was never used.
    DiscardUnused {
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
    /// Alerts a user whose focus is elsewhere.
    Notify {
        text: String,
    },
    /// Ends the program.
    Quit,
}
