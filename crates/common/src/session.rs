//! A session as clients see it: its settings, its snapshot, its line in a list.

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

/// Bytes that a session's name may have.
pub const MAX_SESSION_NAME: usize = 255;

/// Characters that a session's title, and the last line said in it, may have.
pub const MAX_TITLE: usize = 200;

/// Whether a session can be called this: one line that shows, of at most [`MAX_SESSION_NAME`] bytes, that can't be taken
/// for the id of an ask.
///
/// # Errors
/// [`NameError`] says what is wrong with it.
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
    // Where a command takes either, it would be taken for the ask.
    if name.trim().parse::<AskId>().is_ok() {
        return Err(NameError::Id);
    }
    Ok(())
}

/// Why a session can't be called something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NameError {
    /// There is nothing in it.
    #[error("a session's name can't be empty")]
    Empty,
    /// There is too much in it.
    #[error("the name has {bytes} bytes; at most {MAX_SESSION_NAME} are taken")]
    TooLong {
        /// Its size.
        bytes: usize,
    },
    /// It would not stay on its line.
    #[error("a session's name can't have control characters")]
    Control,
    /// It is the id of a session, or could be that of an ask.
    #[error("a session's name can't be the id of a session, or look like that of an ask")]
    Id,
}

/// What a session is opened with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionSettings {
    /// The session.
    pub id: SessionId,
    /// What people call it; unique among live sessions.
    pub name: String,
    /// The folder it works in: absolute.
    pub workspace: String,
    /// The model, as `provider/name`.
    pub model: String,
    /// Who answers its asks.
    pub asks: AsksMode,
    /// What its tools may do unasked.
    pub policy: PolicyMode,
    /// What is allowed, asked or denied besides.
    #[serde(default, skip_serializing_if = "PolicyRules::is_empty")]
    pub rules: PolicyRules,
    /// The most steps one turn may take; 0 for no limit.
    pub max_steps: u32,
    /// The most tokens one turn may take, of requests and answers together; 0 for no limit.
    #[serde(default)]
    pub max_turn_tokens: u64,
}

/// A session at one moment. Everything in it follows from the events up to `seq`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// What it was opened with, under the name and with the model that it has now.
    pub settings: Arc<SessionSettings>,
    /// The first line of its first prompt until it is renamed; without either, its name.
    pub title: String,
    /// The last line that its model has said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_line: Option<String>,
    /// The number of the last event.
    pub seq: u64,
    /// What it is doing.
    pub status: SessionStatus,
    /// Since when.
    pub since: Timestamp,
    /// How long it has worked in all, in milliseconds: without the time it waited, was asking or was held.
    #[serde(default)]
    pub worked_ms: u64,
    /// It works now, and has since then; that is not yet counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_since: Option<Timestamp>,
    /// The open turn.
    pub turn: Option<TurnId>,
    /// Its step, counted from 1.
    pub step: Option<u32>,
    /// Its open asks; the first is the one to show.
    pub asks: Vec<Ask>,
    /// Whether it is held.
    pub hold: Hold,
    /// Prompts that wait.
    pub queue: Vec<QueuedPrompt>,
    /// Its background jobs that run, the oldest first.
    pub jobs: Vec<Job>,
    /// How the last turn ended.
    pub last_turn: Option<LastTurn>,
    /// The run that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// How the last run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun>,
    /// Its tasks, the oldest first.
    #[serde(default)]
    pub tasks: Arc<Vec<Task>>,
    /// Its newest notes, the oldest first.
    #[serde(default)]
    pub notes: Arc<Vec<Note>>,
    /// What all turns used.
    pub usage: Usage,
    /// How full the model's context is; nothing before the first answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextFill>,
    /// Files its tools changed.
    pub files_modified: Arc<BTreeSet<String>>,
    /// How many clients are attached.
    pub clients: usize,
    /// Everything up to `seq` is saved: it is on disk.
    pub saved: bool,
    /// Why not everything is saved; absent if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_saved: Option<Arc<str>>,
    /// Which of its events can't be read.
    #[serde(default, skip_serializing_if = "Gaps::is_empty")]
    pub gaps: Gaps,
    /// It is logged at debug level.
    #[serde(default)]
    pub is_debug_enabled: bool,
}

impl Snapshot {
    /// Sets whether everything is saved, by why it is not.
    pub fn set_not_saved(&mut self, reason: Option<Arc<str>>) {
        self.saved = reason.is_none();
        self.not_saved = reason;
    }

    /// How long it has worked in all, as of now.
    #[must_use]
    pub fn worked(&self, now: Timestamp) -> Duration {
        Duration::from_millis(self.worked_ms) + self.working_since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Whether nothing but the number of the last event tells this from `other`.
    #[must_use]
    pub fn differs_in_number_only(&self, other: &Self) -> bool {
        // What was taken from the same place is the same; so nothing of size is compared while text streams.
        let Self { settings, title, last_line, seq: _, status, since, worked_ms, working_since, .. } = self;
        let Self { turn, step, asks, hold, queue, jobs, last_turn, last_run, run, tasks, notes, .. } = self;
        let Self { usage, context, files_modified, clients, saved, not_saved, gaps, is_debug_enabled, .. } = self;
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
            && (Arc::ptr_eq(files_modified, &other.files_modified) || *files_modified == other.files_modified)
            && *queue == other.queue
    }
}

/// A prompt that waits for its turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedPrompt {
    /// Its name.
    pub prompt: PromptId,
    /// Its words.
    pub text: Arc<str>,
}

/// How a session's last turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastTurn {
    /// The turn.
    pub turn: TurnId,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it was cut, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<CutCause>,
    /// What went wrong, where something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A session's line in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionSummary {
    /// The session.
    pub id: SessionId,
    /// Its name.
    pub name: String,
    /// The first line of its first prompt until it is renamed; without either, its name.
    pub title: String,
    /// The last line that its model has said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_line: Option<String>,
    /// It has an actor now.
    pub live: bool,
    /// What it is doing.
    pub status: SessionStatus,
    /// Since when.
    pub since: Timestamp,
    /// How its last turn ended.
    pub last_turn: Option<LastTurn>,
    /// How its last run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun>,
    /// Its first open ask.
    pub waits_for: Option<Ask>,
    /// How many of its asks are open.
    #[serde(default)]
    pub asks: usize,
    /// Whether it is held.
    pub hold: Hold,
    /// How far its run is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunProgress>,
    /// Its tasks, counted.
    #[serde(default, skip_serializing_if = "TaskCounts::is_empty")]
    pub tasks: TaskCounts,
    /// Its model.
    pub model: String,
    /// Its folder.
    pub workspace: String,
    /// Which of its events can't be read.
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
            tasks: TaskCounts::of(&snapshot.tasks),
            model: snapshot.settings.model.clone(),
            workspace: snapshot.settings.workspace.clone(),
            gaps: snapshot.gaps.clone(),
        }
    }
}
