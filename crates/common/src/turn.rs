//! The outcomes of turns, and the receipts of interrupts.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::client::Who;
use crate::id::{AskId, CallId, PromptId};

/// The outcome of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The model finished its work.
    Done,
    /// The model or the runtime failed.
    Failed,
    /// A tool or the session panicked.
    Panicked,
    /// The turn was cut.
    Interrupted,
    /// The turn reached a limit.
    Limit,
}

impl Outcome {
    /// Returns the stable name of the outcome.
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

/// The reason why a turn was cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum CutCause {
    /// A client interrupted the turn.
    User {
        /// Client that interrupted the turn.
        by: Who,
    },
    /// A client closed the session.
    Close {
        /// Client that closed the session.
        by: Who,
    },
    /// The runtime was stopped during the turn.
    Shutdown,
    /// The runtime was restarted during the turn.
    Restart,
    /// The session's actor failed during the turn.
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

/// The reason why a session had no actor before it was restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RestoreCause {
    /// The runtime ended, and cut the session's work or left it waiting.
    Restart,
    /// The session's actor failed.
    Panic,
    /// The session was unloaded at rest, or closed.
    Unloaded,
}

/// The receipt of an interrupt, in the turn's last event: the stopped calls and ended processes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// Tool calls that were running, and how each stopped.
    pub tools: Vec<StoppedTool>,
    /// Numbers of processes that were ended.
    pub processes: EndedProcesses,
    /// Asks that the interrupt closed.
    pub asks: Vec<AskId>,
    /// Queued prompts that were handed back.
    pub prompts: Vec<PromptId>,
    /// Whether the runtime or the session's actor had ended before the turn, so that its processes
    /// were not counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncounted: bool,
}

/// A tool call that was running when its turn was cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoppedTool {
    /// Id of the call.
    pub call: CallId,
    /// Name of the tool.
    pub name: String,
    /// Way the call stopped.
    pub how: StopHow,
}

/// The way a tool call stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StopHow {
    /// The call returned in time.
    Returned,
    /// The call did not return within the grace and one more second. Its thread is abandoned and
    /// its result ignored.
    #[serde(alias = "left")]
    Abandoned,
    /// The call's runtime was killed or its session failed. Its processes were ended as always, but
    /// not counted.
    Lost,
}

/// The numbers of processes that were ended, by signal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndedProcesses {
    /// Number of processes that ended after TERM, within the grace.
    pub terminated: u32,
    /// Number of processes that were ended with KILL.
    pub killed: u32,
    /// Ids of processes that could not be ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty", alias = "left")]
    pub not_ended: Vec<u32>,
}

impl EndedProcesses {
    /// Returns the number of ended processes.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.terminated.saturating_add(self.killed)
    }

    /// Adds the numbers and ids of `other`.
    pub fn add(&mut self, other: Self) {
        self.terminated = self.terminated.saturating_add(other.terminated);
        self.killed = self.killed.saturating_add(other.killed);
        self.not_ended.extend(other.not_ended);
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted =
            |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
        let lost = self.tools.iter().filter(|tool| tool.how == StopHow::Lost).count();
        let mut parts = Vec::new();
        if lost > 0 {
            parts.push(format!(
                "{} lost, processes were not counted",
                counted(lost, "tool", "tools")
            ));
        } else if self.uncounted {
            parts.push("no tool was running, processes were not counted".to_owned());
        } else {
            parts.push(format!("{} stopped", counted(self.tools.len(), "tool", "tools")));
            let mut ended = format!(
                "{} ended",
                counted(self.processes.total() as usize, "process", "processes")
            );
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
        for tool in self.tools.iter().filter(|tool| tool.how == StopHow::Abandoned) {
            parts.push(format!(
                "{} (call {}) did not return and was abandoned",
                tool.name, tool.call
            ));
        }
        if !self.processes.not_ended.is_empty() {
            let pids: Vec<_> = self.processes.not_ended.iter().map(u32::to_string).collect();
            parts.push(format!("could not end pid {}", pids.join(", ")));
        }
        f.write_str(&parts.join(", "))
    }
}
