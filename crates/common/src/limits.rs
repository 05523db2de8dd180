//! Every bound of the runtime, in one place.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The bounds of a runtime and its sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Limits {
    /// Sessions that live at once. To open one more, the longest-untouched idle session nobody is attached
    /// to is unloaded; if there is none, opening is refused.
    pub max_sessions: usize,
    /// Prompts of one session that wait for their turn. One more is refused.
    pub max_queued_prompts: usize,
    /// Events of one session that are kept in memory, oldest out first.
    pub buffered_events: usize,
    /// Bytes of one session's events that are kept in memory, oldest out first. The same bound holds for
    /// what one slow client may lag behind before its stream ends.
    pub buffered_bytes: usize,
    /// Clients attached to one session. One more is refused.
    pub max_clients: usize,
    /// Bytes of one prompt. A longer one is refused.
    pub max_prompt_bytes: usize,
    /// Milliseconds a process has between TERM and KILL.
    pub grace_ms: u64,
    /// Tool calls of one step that run at once; the others wait for a place.
    pub parallel_tools: usize,
    /// Seconds a model may be silent before its stream is ended.
    pub model_silence_s: u64,
    /// Bytes of one model answer. At more, the turn fails.
    pub max_answer_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_sessions: 10,
            max_queued_prompts: 32,
            buffered_events: 10_000,
            buffered_bytes: 10 * 1024 * 1024,
            max_clients: 256,
            max_prompt_bytes: 1024 * 1024,
            grace_ms: 500,
            parallel_tools: 16,
            model_silence_s: 300,
            max_answer_bytes: 16 * 1024 * 1024,
        }
    }
}

impl Limits {
    /// The time a process has between TERM and KILL.
    #[must_use]
    pub fn grace(&self) -> Duration {
        Duration::from_millis(self.grace_ms)
    }
}

/// How long after the grace a tool's thread may take to come back before it is left behind.
pub const LEAVE_AFTER: Duration = Duration::from_secs(1);

/// How long a save may take before clients are told that what happens is not saved.
pub const SAVE_LATE: Duration = Duration::from_secs(2);

/// Bytes of one delta of a model's text or thought.
pub const TEXT_DELTA: usize = 4 * 1024;

/// Bytes of one delta of a tool's output.
pub const OUTPUT_DELTA: usize = 32 * 1024;
