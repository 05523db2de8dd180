//! How turns end, and what an interrupt found and ended.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::client::Who;
use crate::id::{AskId, CallId, PromptId};

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The model had nothing more to do.
    Done,
    /// The model or the runtime could not go on.
    Failed,
    /// A tool or the session panicked.
    Panicked,
    /// It was cut.
    Interrupted,
    /// It reached a limit.
    Limit,
}

impl Outcome {
    /// The outcome as its stable word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Panicked => "panicked",
            Self::Interrupted => "interrupted",
            Self::Limit => "limit",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why a turn was cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum CutCause {
    /// A client interrupted it.
    User {
        /// Who.
        by: Who,
    },
    /// A client closed the session.
    Close {
        /// Who.
        by: Who,
    },
    /// The runtime was stopped while it was open.
    Shutdown,
    /// The runtime was restarted while it was open.
    Restart,
    /// The session's actor failed while it was open.
    Panic,
}

impl fmt::Display for CutCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User { by } => write!(f, "interrupted {}", by.origin()),
            Self::Close { by } => write!(f, "session closed {}", by.origin()),
            Self::Shutdown => f.write_str("the runtime was stopped"),
            Self::Restart => f.write_str("the runtime was restarted"),
            Self::Panic => f.write_str("the session failed"),
        }
    }
}

/// What had ended a session's actor before the session was rebuilt from its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RestoreCause {
    /// The end of its runtime, which has cut what it did, or left it waiting.
    Restart,
    /// The session's actor failed.
    Panic,
    /// Nothing: it was at rest, or closed, and had no actor.
    Unloaded,
}

/// What an interrupt found and ended. Part of the turn's last event.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// The tool calls that were running, and how each stopped.
    pub tools: Vec<StoppedTool>,
    /// The processes that were ended.
    pub processes: EndedProcesses,
    /// The asks that were answered Interrupted.
    pub asks: Vec<AskId>,
    /// The queued prompts that were handed back.
    pub prompts: Vec<PromptId>,
    /// The runtime, or the session's actor, had ended before the turn was: its processes were not counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncounted: bool,
}

/// A tool call that the cut of its turn found running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoppedTool {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub name: String,
    /// How it stopped.
    pub how: StopHow,
}

/// How a tool call stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StopHow {
    /// It came back.
    Returned,
    /// It did not come back within the grace and one second more: its thread is left, its result ignored.
    Left,
    /// It went with what it ran in, which was killed or has failed: what it had started was ended as always, and nobody was
    /// there to count it.
    Lost,
}

/// How many processes were ended, and how.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndedProcesses {
    /// Ended by TERM within the grace.
    pub terminated: u32,
    /// Had to be killed.
    pub killed: u32,
    /// Could not be ended: their process ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<u32>,
}

impl EndedProcesses {
    /// How many were ended, either way.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.terminated.saturating_add(self.killed)
    }

    /// Adds another count to this one.
    pub fn add(&mut self, other: Self) {
        self.terminated = self.terminated.saturating_add(other.terminated);
        self.killed = self.killed.saturating_add(other.killed);
        self.left.extend(other.left);
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
        let lost = self.tools.iter().filter(|tool| tool.how == StopHow::Lost).count();
        let mut parts = Vec::new();
        if lost > 0 {
            parts.push(format!("{} lost, with what had been started", counted(lost, "tool", "tools")));
        } else if self.uncounted {
            parts.push("no tool was running, processes were not counted".to_owned());
        } else {
            parts.push(format!("{} stopped", counted(self.tools.len(), "tool", "tools")));
            let mut ended = format!("{} ended", counted(self.processes.total() as usize, "process", "processes"));
            if self.processes.killed > 0 {
                ended.push_str(&format!(" ({} killed)", self.processes.killed));
            }
            parts.push(ended);
        }
        if !self.asks.is_empty() {
            parts.push(format!("{} released", counted(self.asks.len(), "ask", "asks")));
        }
        if !self.prompts.is_empty() {
            parts.push(format!("{} handed back", counted(self.prompts.len(), "prompt", "prompts")));
        }
        for tool in self.tools.iter().filter(|tool| tool.how == StopHow::Left) {
            parts.push(format!("{} (call {}) did not come back and was left", tool.name, tool.call));
        }
        if !self.processes.left.is_empty() {
            let pids: Vec<_> = self.processes.left.iter().map(u32::to_string).collect();
            parts.push(format!("could not end pid {}", pids.join(", ")));
        }
        f.write_str(&parts.join(", "))
    }
}
