//! Every bound of the runtime, in one place.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The bounds of a runtime and its sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Limits {
    /// Sessions that live at once. To open one more, the longest-untouched idle session nobody is attached
    /// to is unloaded; if there is none, opening is refused.
    #[schemars(range(min = 1, max = 100000))]
    pub max_sessions: usize,
    /// Prompts of one session that wait for their turn. One more is refused.
    #[schemars(range(min = 0, max = MOST_QUEUED_PROMPTS))]
    pub max_queued_prompts: usize,
    /// Events of one session that are kept in memory, oldest out first.
    #[schemars(range(min = 1, max = 1000000))]
    pub buffered_events: usize,
    /// Bytes of one session's events that are kept in memory, oldest out first. Who lags further behind than what is
    /// kept has its stream ended; so a slow client takes no memory of its own.
    #[schemars(range(min = 65536, max = 1073741824))]
    pub buffered_bytes: usize,
    /// Clients attached to one session. One more is refused.
    #[schemars(range(min = 1, max = 65536))]
    pub max_clients: usize,
    /// Bytes of one prompt. A longer one is refused.
    #[schemars(range(min = 1, max = 67108864))]
    pub max_prompt_bytes: usize,
    /// Milliseconds a process has between TERM and KILL.
    #[schemars(range(min = 0, max = 60000))]
    pub grace_ms: u64,
    /// Tool calls of one step that run at once; the others wait for a place.
    #[schemars(range(min = 1, max = 256))]
    pub parallel_tools: usize,
    /// Seconds a model may be silent before its stream is ended.
    #[schemars(range(min = 1, max = 86400))]
    pub model_silence_s: u64,
    /// Times a request to a model is tried, where the provider has too much to do, is broken, or can't be reached.
    #[schemars(range(min = 1, max = 20))]
    pub model_tries: u32,
    /// Milliseconds before the second try; each further wait is twice as long, and up to half is added at random.
    #[schemars(range(min = 1, max = 60000))]
    pub model_retry_ms: u64,
    /// Milliseconds that a run waits after an iteration that failed; after the second in a row, twice as long.
    #[schemars(range(min = 1, max = 3600000))]
    pub run_retry_ms: u64,
    /// Lines that the messages of one model request may have. What is beyond is left out, the oldest first.
    #[schemars(range(min = 100, max = 10000000))]
    pub max_history_lines: u64,
    /// Tokens that one model request may have, by our own estimate, and never more than the window of its model.
    /// What is beyond is left out, the oldest first.
    #[schemars(range(min = 1000, max = 10000000))]
    pub max_history_tokens: u64,
    /// Bytes of one model answer. At more, the turn fails.
    #[schemars(range(min = 1024, max = 1073741824))]
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
            max_history_lines: 50_000,
            max_history_tokens: 100_000,
            model_tries: 5,
            model_retry_ms: 1000,
            run_retry_ms: 5000,
            max_answer_bytes: 16 * 1024 * 1024,
        }
    }
}

impl Limits {
    /// Whether each bound is one that makes sense. What it may be stands in the schema, too.
    ///
    /// # Errors
    /// [`LimitError`] names the first that does not.
    pub fn check(&self) -> Result<(), LimitError> {
        let bounds: [(&'static str, u64, RangeInclusive<u64>); 15] = [
            ("max_sessions", self.max_sessions as u64, 1..=100000),
            ("max_queued_prompts", self.max_queued_prompts as u64, 0..=MOST_QUEUED_PROMPTS),
            ("buffered_events", self.buffered_events as u64, 1..=1000000),
            ("buffered_bytes", self.buffered_bytes as u64, 65536..=1073741824),
            ("max_clients", self.max_clients as u64, 1..=65536),
            ("max_prompt_bytes", self.max_prompt_bytes as u64, 1..=67108864),
            ("grace_ms", self.grace_ms, 0..=60000),
            ("parallel_tools", self.parallel_tools as u64, 1..=256),
            ("model_silence_s", self.model_silence_s, 1..=86400),
            ("model_tries", self.model_tries.into(), 1..=20),
            ("model_retry_ms", self.model_retry_ms, 1..=60000),
            ("run_retry_ms", self.run_retry_ms, 1..=3600000),
            ("max_history_lines", self.max_history_lines, 100..=10000000),
            ("max_history_tokens", self.max_history_tokens, 1000..=10000000),
            ("max_answer_bytes", self.max_answer_bytes as u64, 1024..=1073741824),
        ];
        match bounds.into_iter().find(|(_, value, range)| !range.contains(value)) {
            Some((key, value, range)) => Err(LimitError { key, value, least: *range.start(), most: *range.end() }),
            None => Ok(()),
        }
    }

    /// The time a process has between TERM and KILL.
    #[must_use]
    pub fn grace(&self) -> Duration {
        Duration::from_millis(self.grace_ms)
    }
}

/// A bound that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("limits.{key} is {value}; it can be {least} to {most}")]
pub struct LimitError {
    /// Which.
    pub key: &'static str,
    /// What it was set to.
    pub value: u64,
    /// The least it can be.
    pub least: u64,
    /// The most it can be.
    pub most: u64,
}

/// The most that `max_queued_prompts` can be.
pub const MOST_QUEUED_PROMPTS: u64 = 10_000;

/// How long after the grace a tool's thread may take to come back before it is left behind.
pub const LEAVE_AFTER: Duration = Duration::from_secs(1);

/// How long a save may take before clients are told that what happens is not saved.
pub const SAVE_LATE: Duration = Duration::from_secs(2);

/// The longest that an engine takes to stop: what has not come back by then is left, and its processes are killed.
pub const STOP_WITHIN: Duration = Duration::from_secs(10);

/// How long a piece of an answer that is still coming waits before it is saved: with the save itself under two seconds.
pub const DRAFT_EVERY: Duration = Duration::from_secs(1);

/// Iterations in a row that fail before their run is held.
pub const RUN_FAILURES: u32 = 3;

/// Bytes of one delta of a model's text or thought.
pub const TEXT_DELTA: usize = 4 * 1024;

/// Bytes of one delta of a tool's output.
pub const OUTPUT_DELTA: usize = 32 * 1024;

/// The longest a provider that says when to come back is waited for. At more, its refusal is told at once.
pub const RETRY_AFTER_MOST: Duration = Duration::from_secs(5 * 60);

/// The longest that one request to a model waits between its tries, all waits together.
pub const RETRY_TOTAL: Duration = Duration::from_secs(15 * 60);

/// Bytes of a workspace's `AGENTS.md` that a model is told.
pub const MAX_PROJECT_WORDS: usize = 32 * 1024;
