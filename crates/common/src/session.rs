//! Sessions as clients see them: settings, snapshots and summaries.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::ask::{Ask, AsksMode};
use crate::gaps::Gaps;
use crate::hold::Hold;
use crate::id::{AskId, PromptId, SessionId, TurnId};
use crate::job::Job;
use crate::policy::{PolicyMode, PolicyRules};
use crate::run::{LastRun, Run, RunProgress};
use crate::status::SessionStatus;
use crate::task::{Note, Task, TaskCounts};
use crate::time::Timestamp;
use crate::turn::{CutCause, Outcome};
use crate::usage::{ContextFill, Usage};

/// Maximum length of a session's name in bytes.
pub const MAX_SESSION_NAME: usize = 255;

/// Maximum length of a session's title, and of the last line in its summary, in characters.
pub const MAX_TITLE: usize = 200;

/// Checks a name for a session: one visible line of at most [`MAX_SESSION_NAME`] bytes that does
/// not look like the id of an ask.
///
/// # Errors
/// [`NameError`] if the name is not allowed.
pub fn check_name(name: &str) -> Result<(), NameError> {
    if name.trim().is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > MAX_SESSION_NAME {
        return Err(NameError::TooLong { bytes: name.len() });
    }
    if name.chars().any(char::is_control) {
        return Err(NameError::Control);
    }
    // Some commands accept the name of a session or the id of an ask, so the two must differ.
    if name.trim().parse::<AskId>().is_ok() {
        return Err(NameError::Id);
    }
    Ok(())
}

/// The reason why a session can't have a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum NameError {
    /// The name is blank.
    #[error("a session's name can't be empty")]
    Empty,
    /// The name is too long.
    #[error("the name has {bytes} bytes; at most {MAX_SESSION_NAME} are allowed")]
    TooLong {
        /// Length of the name in bytes.
        bytes: usize,
    },
    /// The name contains control characters, and would not stay on one line.
    #[error("a session's name can't contain control characters")]
    Control,
    /// The name is the id of a session, or has the form of an ask's id.
    #[error("a session's name can't be the id of a session or look like the id of an ask")]
    Id,
}

/// The settings that a session is opened with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionSettings {
    /// Id of the session.
    pub id: SessionId,
    /// Name of the session, unique among live sessions.
    pub name: String,
    /// Absolute path of the session's workspace.
    pub workspace: String,
    /// Model of the session, as `provider/name`.
    pub model: String,
    /// Asks mode of the session.
    pub asks: AsksMode,
    /// Mode of the session's policy.
    pub policy: PolicyMode,
    /// Rules of the session's policy, in addition to the mode.
    #[serde(default, skip_serializing_if = "PolicyRules::is_empty")]
    pub rules: PolicyRules,
    /// Maximum number of steps (model requests) in one turn; 0 means no limit.
    pub max_steps: u32,
    /// Maximum number of tokens that one turn may use, requests and answers together; 0 means no
    /// limit.
    #[serde(default)]
    pub max_turn_tokens: u64,
}

/// A session at one moment. It reflects all events up to `seq`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Settings of the session, with its current name and model.
    pub settings: Arc<SessionSettings>,
    /// First line of the first prompt or goal. After a rename, and before the first prompt, it is
    /// the name.
    pub title: String,
    /// Last line of text that the model wrote, at most 200 characters; absent before the first
    /// answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_line: Option<String>,
    /// Number of the last event.
    pub seq: u64,
    /// Status of the session.
    pub status: SessionStatus,
    /// Time of the last change of the status.
    pub since: Timestamp,
    /// Total working time in milliseconds up to `workingSince`, without the time that the session
    /// was idle, held or waiting for an answer.
    #[serde(default)]
    pub worked_ms: u64,
    /// Time since which the session has been working; absent while it is idle, held or waiting for
    /// an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_since: Option<Timestamp>,
    /// Open turn; `null` if there is none.
    pub turn: Option<TurnId>,
    /// Current step of the open turn, counted from 1; `null` before the first.
    pub step: Option<u32>,
    /// Open asks, the oldest first. Clients show the first one.
    pub asks: Vec<Ask>,
    /// Hold of the session.
    pub hold: Hold,
    /// Queued prompts, in order.
    pub queue: Vec<QueuedPrompt>,
    /// Running background jobs, the oldest first.
    pub jobs: Vec<Job>,
    /// End of the last turn; `null` before it.
    pub last_turn: Option<LastTurn>,
    /// Run that has not ended, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// End of the last run; absent before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun>,
    /// Tasks of the session, the oldest first.
    #[serde(default)]
    pub tasks: Arc<Vec<Task>>,
    /// Newest notes, at most 20, the oldest first.
    #[serde(default)]
    pub notes: Arc<Vec<Note>>,
    /// Usage of all turns.
    pub usage: Usage,
    /// Fill level of the model's context; absent before the first answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextFill>,
    /// Paths of the files that the session has changed, relative to the workspace if they are
    /// inside.
    pub files_modified: Arc<BTreeSet<String>>,
    /// Number of attached clients.
    pub clients: usize,
    /// Whether all events up to `seq` are saved on disk.
    pub saved: bool,
    /// Reason why some events are not saved; absent if all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_saved: Option<Arc<str>>,
    /// Ranges of events that can't be read.
    #[serde(default, skip_serializing_if = "Gaps::is_empty")]
    pub gaps: Gaps,
    /// Whether the session is logged at debug level.
    #[serde(default)]
    pub is_debug_enabled: bool,
}

impl Snapshot {
    /// Sets `saved` and `not_saved` from the reason why some events are not saved.
    pub fn set_not_saved(&mut self, reason: Option<Arc<str>>) {
        self.saved = reason.is_none();
        self.not_saved = reason;
    }

    /// Returns the total working time up to `now`.
    #[must_use]
    pub fn worked(&self, now: Timestamp) -> Duration {
        Duration::from_millis(self.worked_ms)
            + self.working_since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Whether the snapshots are equal apart from the number of the last event.
    #[must_use]
    pub fn differs_in_number_only(&self, other: &Self) -> bool {
        // Parts that both snapshots share are not compared, so this is cheap while text streams.
        let Self {
            settings,
            title,
            last_line,
            seq: _,
            status,
            since,
            worked_ms,
            working_since,
            turn,
            step,
            asks,
            hold,
            queue,
            jobs,
            last_turn,
            last_run,
            run,
            tasks,
            notes,
            usage,
            context,
            files_modified,
            clients,
            saved,
            not_saved,
            gaps,
            is_debug_enabled,
        } = self;
        *status == other.status
            && *since == other.since
            && *worked_ms == other.worked_ms
            && *working_since == other.working_since
            && *turn == other.turn
            && *step == other.step
            && *clients == other.clients
            && *saved == other.saved
            && *not_saved == other.not_saved
            && *gaps == other.gaps
            && *is_debug_enabled == other.is_debug_enabled
            && *usage == other.usage
            && *context == other.context
            && *hold == other.hold
            && *asks == other.asks
            && *jobs == other.jobs
            && *last_turn == other.last_turn
            && *last_run == other.last_run
            && *run == other.run
            && (Arc::ptr_eq(tasks, &other.tasks) || *tasks == other.tasks)
            && (Arc::ptr_eq(notes, &other.notes) || *notes == other.notes)
            && *title == other.title
            && *last_line == other.last_line
            && (Arc::ptr_eq(settings, &other.settings) || *settings == other.settings)
            && (Arc::ptr_eq(files_modified, &other.files_modified)
                || *files_modified == other.files_modified)
            && *queue == other.queue
    }
}

/// A prompt in the queue of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedPrompt {
    /// Id of the prompt.
    pub prompt: PromptId,
    /// Text of the prompt.
    pub text: Arc<str>,
}

/// The end of a session's last turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastTurn {
    /// Id of the turn.
    pub turn: TurnId,
    /// Outcome of the turn.
    pub outcome: Outcome,
    /// Reason for the cut; absent if the turn was not cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<CutCause>,
    /// Description of the error, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The summary of a session, as lists show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionSummary {
    /// Id of the session.
    pub id: SessionId,
    /// Name of the session.
    pub name: String,
    /// First line of the first prompt or goal. After a rename, and before the first prompt, it is
    /// the name.
    pub title: String,
    /// Last line of text that the model wrote, at most 200 characters; absent before the first
    /// answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_line: Option<String>,
    /// Whether the session is live.
    pub live: bool,
    /// Status of the session.
    pub status: SessionStatus,
    /// Time of the last change of the status.
    pub since: Timestamp,
    /// End of the last turn; `null` before it.
    pub last_turn: Option<LastTurn>,
    /// End of the last run; absent before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun>,
    /// First open ask; `null` if there is none.
    pub waits_for: Option<Ask>,
    /// Number of open asks.
    #[serde(default)]
    pub asks: usize,
    /// Hold of the session.
    pub hold: Hold,
    /// Progress of the run that has not ended, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunProgress>,
    /// Numbers of tasks, by state.
    #[serde(default, skip_serializing_if = "TaskCounts::is_empty")]
    pub tasks: TaskCounts,
    /// Model of the session, as `provider/name`.
    pub model: String,
    /// Absolute path of the session's workspace.
    pub workspace: String,
    /// Ranges of events that can't be read.
    #[serde(default, skip_serializing_if = "Gaps::is_empty")]
    pub gaps: Gaps,
}

impl From<&Snapshot> for SessionSummary {
    fn from(snapshot: &Snapshot) -> Self {
        Self {
            id: snapshot.settings.id.clone(),
            name: snapshot.settings.name.clone(),
            title: snapshot.title.clone(),
            last_line: snapshot.last_line.clone(),
            live: true,
            status: snapshot.status,
            since: snapshot.since,
            last_turn: snapshot.last_turn.clone(),
            last_run: snapshot.last_run,
            waits_for: snapshot.asks.first().cloned(),
            asks: snapshot.asks.len(),
            hold: snapshot.hold.clone(),
            run: snapshot.run.as_ref().map(|run| run.progress),
            tasks: TaskCounts::from_tasks(&snapshot.tasks),
            model: snapshot.settings.model.clone(),
            workspace: snapshot.settings.workspace.clone(),
            gaps: snapshot.gaps.clone(),
        }
    }
}
