//! Sessions as clients see them: settings, snapshots and summaries.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::agent::AgentSettings;
use crate::ask::{Ask, AsksMode};
use crate::gaps::Gaps;
use crate::hold::Hold;
use crate::id::{AskId, PromptId, SessionId, TurnId};
use crate::instructions::InstructionFile;
use crate::job::Job;
use crate::policy::{PolicyMode, PolicyRules};
use crate::run::{LastRun, Run, RunProgress};
use crate::sandbox::SandboxSettings;
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
    if name.chars().all(is_invisible) {
        return Err(NameError::Empty);
    }
    if name.len() > MAX_SESSION_NAME {
        return Err(NameError::TooLong { bytes: name.len() });
    }
    if name.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        return Err(NameError::Control);
    }
    // Some commands accept the name of a session or the id of an ask, so the two must differ.
    if name.trim().parse::<AskId>().is_ok() {
        return Err(NameError::Id);
    }
    Ok(())
}

/// Whether a character has no visible form. These include the blank of Braille, a note head
/// without ink, and the marks of annotations.
fn is_invisible(character: char) -> bool {
    character.is_whitespace()
        || is_default_ignorable(character)
        || matches!(character, '\u{2800}' | '\u{1d159}' | '\u{fff9}'..='\u{fffb}')
}

/// Whether a character has Unicode's property `Default_Ignorable_Code_Point`: joiners, fillers,
/// selectors and others that are not shown.
#[must_use]
pub fn is_default_ignorable(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// The reason why a session can't have a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum NameError {
    /// The name is blank.
    #[error("a session's name can't be blank")]
    Empty,
    /// The name is too long.
    #[error("the name has {bytes} bytes; at most {MAX_SESSION_NAME} are allowed")]
    TooLong {
        /// Length of the name in bytes.
        bytes: usize,
    },
    /// The name contains control characters or line separators, and would not stay on one line.
    #[error("a session's name can't contain control characters or line separators")]
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
    /// Model of the session, as `provider/name`; `agent/NAME` if it hosts an agent.
    pub model: String,
    /// Agent that the session hosts; absent if it has a model and tools of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Box<AgentSettings>>,
    /// Asks mode of the session.
    pub asks: AsksMode,
    /// Mode of the session's policy.
    pub policy: PolicyMode,
    /// Rules of the session's policy, in addition to the mode.
    #[serde(default, skip_serializing_if = "PolicyRules::is_empty")]
    pub rules: PolicyRules,
    /// Sandbox of the session's tool processes. Its level is the one that was chosen when the session
    /// was opened, and never `auto`. Default: `off`.
    #[serde(default = "SandboxSettings::off", skip_serializing_if = "SandboxSettings::is_off")]
    pub sandbox: SandboxSettings,
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
    /// Instruction files that the last turn found, the user's first and the nearest one last.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub instructions: Arc<Vec<InstructionFile>>,
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

fn is_empty(files: &Arc<Vec<InstructionFile>>) -> bool {
    files.is_empty()
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
        // The largest parts are compared by address first, so this is cheap while text streams.
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
            instructions,
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
            && (Arc::ptr_eq(instructions, &other.instructions)
                || *instructions == other.instructions)
            && (Arc::ptr_eq(files_modified, &other.files_modified)
                || *files_modified == other.files_modified)
            && queue.len() == other.queue.len()
            && queue.iter().zip(&other.queue).all(|(one, other)| one.is_same(other))
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

impl QueuedPrompt {
    /// Whether the prompts are equal. A text that both share is not read.
    fn is_same(&self, other: &Self) -> bool {
        let Self { prompt, text } = self;
        *prompt == other.prompt && (Arc::ptr_eq(text, &other.text) || *text == other.text)
    }
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
    /// Other machine of the fleet that has the session, or, if none has it, the one with its
    /// workspace; absent for a session of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Present if `machine` does not respond. The session is then shown as it was saved last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub away: Option<Away>,
    /// Ranges of events that can't be read.
    #[serde(default, skip_serializing_if = "Gaps::is_empty")]
    pub gaps: Gaps,
}

/// The absence of a machine of the fleet that does not respond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Away {
    /// Time of the machine's last heartbeat or clean stop, by the clock of this one; absent if the
    /// machine is not in the fleet any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Timestamp>,
}

impl SessionSummary {
    /// Whether the session works in this folder of this machine.
    #[must_use]
    pub fn works_in(&self, folder: &str) -> bool {
        self.machine.is_none() && self.workspace == folder
    }
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
            machine: None,
            away: None,
            gaps: snapshot.gaps.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_is_one_visible_line() {
        for blank in ["", " ", "\u{200b}", "\u{2060}\u{a0}\u{fe0f}", "\u{3164}"] {
            assert_eq!(check_name(blank), Err(NameError::Empty), "{blank:?}");
        }
        for lines in ["a\nb", "a\u{2028}b", "a\u{2029}", "a\u{85}b"] {
            assert_eq!(check_name(lines), Err(NameError::Control), "{lines:?}");
        }
        // Joiners belong to some words and emoji.
        for name in ["a", "\u{645}\u{6cc}\u{200c}\u{62e}", "\u{1f469}\u{200d}\u{1f4bb}", "a.+5"] {
            assert_eq!(check_name(name), Ok(()), "{name:?}");
        }
        assert_eq!(check_name("a.5"), Err(NameError::Id));
    }

    #[test]
    fn snapshots_that_share_prompts_are_compared_without_their_texts() {
        let text: Arc<str> = "x".repeat(32 << 20).into();
        let queued = |prompt, text: &Arc<str>| QueuedPrompt {
            prompt: PromptId(prompt),
            text: Arc::clone(text),
        };
        let mut one: Snapshot = serde_json::from_value(json!({
            "settings": {
                "id": "a", "name": "demo", "workspace": "/w", "model": "rehearsal",
                "asks": "wait", "policy": "ask", "maxSteps": 0,
            },
            "title": "demo", "seq": 1, "status": "running", "since": 0, "turn": 1, "step": 1,
            "asks": [], "hold": { "state": "off" }, "queue": [], "jobs": [], "lastTurn": null,
            "usage": { "input": 1, "output": 1 }, "filesModified": [], "clients": 1, "saved": true,
        }))
        .unwrap();
        one.queue.push(queued(1, &text));
        let other = Snapshot { seq: one.seq + 1, ..one.clone() };
        for _ in 0..100_000 {
            assert!(one.differs_in_number_only(&other));
        }
        let copy = Snapshot { queue: vec![queued(1, &Arc::from(&*text))], ..one.clone() };
        assert!(one.differs_in_number_only(&copy));
        for queue in [vec![], vec![queued(2, &text)], vec![queued(1, &"y".into())]] {
            assert!(!one.differs_in_number_only(&Snapshot { queue, ..one.clone() }));
        }
    }
}
