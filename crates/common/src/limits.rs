//! All limits of the runtime.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The limits of the runtime and its sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Limits {
    /// Maximum number of live sessions, from 1 to 100,000. To open one more, the longest-untouched
    /// idle session without clients is unloaded; if there is none, opening fails. Default: 10.
    #[schemars(range(min = 1, max = 100000))]
    pub max_sessions: usize,
    /// Maximum number of queued prompts of one session, from 0 to 10,000. Further prompts are
    /// refused. Default: 32.
    #[schemars(range(min = 0, max = MAX_QUEUED_PROMPTS))]
    pub max_queued_prompts: usize,
    /// Maximum number of events of one session in memory, from 1 to 1,000,000. The oldest are
    /// dropped first. Default: 10,000.
    #[schemars(range(min = 1, max = 1000000))]
    pub buffered_events: usize,
    /// Maximum size of one session's events in memory, from 64 KiB to 1 GiB, in bytes. The oldest
    /// are dropped first. A client that lags further behind has its stream ended, so slow clients
    /// take no extra memory. Default: 10 MiB.
    #[schemars(range(min = 65536, max = 1073741824))]
    pub buffered_bytes: usize,
    /// Maximum number of clients attached to one session, from 1 to 65,536. Further clients are
    /// refused. Default: 256.
    #[schemars(range(min = 1, max = 65536))]
    pub max_clients: usize,
    /// Maximum length of one prompt, from 1 byte to 64 MiB, in bytes. Longer prompts are refused.
    /// Default: 1 MiB.
    #[schemars(range(min = 1, max = 67108864))]
    pub max_prompt_bytes: usize,
    /// Milliseconds that a process has between TERM and KILL, from 0 to 60,000. Default: 500.
    #[schemars(range(min = 0, max = 60000))]
    pub grace_ms: u64,
    /// Maximum number of tool calls of one step that run at the same time, from 1 to 256.
    /// Default: 16.
    #[schemars(range(min = 1, max = 256))]
    pub parallel_tools: usize,
    /// Seconds of silence after which a model's stream is ended, from 1 to 86,400. Default: 300.
    #[schemars(range(min = 1, max = 86400))]
    pub model_silence_s: u64,
    /// Milliseconds between the times at which the text of models is sent to clients, from 0 to 100,
    /// while at least three pieces arrive in that time, in one session or in several. With fewer, or
    /// with 0, each piece is sent at once. Default: 16.
    #[schemars(range(min = 0, max = 100))]
    pub text_interval_ms: u64,
    /// Maximum number of tries of one model request, from 1 to 20. A request is tried again if the
    /// provider is overloaded, fails or can't be reached. Default: 5.
    #[schemars(range(min = 1, max = 20))]
    pub model_tries: u32,
    /// Milliseconds before the second try of a model request, from 1 to 60,000. Each further wait
    /// is twice as long, and up to half is added at random. Default: 1,000.
    #[schemars(range(min = 1, max = 60000))]
    pub model_retry_ms: u64,
    /// Milliseconds that a run waits after a failed iteration, from 1 to 3,600,000. The wait
    /// doubles with each further failure in a row. Default: 5,000.
    #[schemars(range(min = 1, max = 3600000))]
    pub run_retry_ms: u64,
    /// Maximum number of lines in the messages of one model request, from 100 to 10,000,000. The
    /// oldest part beyond is left out. Default: 50,000.
    #[schemars(range(min = 100, max = 10000000))]
    pub max_history_lines: u64,
    /// Maximum number of tokens of one model request, by Holdpoint's estimate, from 1,000 to
    /// 10,000,000. The model's window also bounds it. The oldest part beyond is left out.
    /// Default: 100,000.
    #[schemars(range(min = 1000, max = 10000000))]
    pub max_history_tokens: u64,
    /// Maximum size of one model answer, from 1 KiB to 1 GiB, in bytes. If an answer is larger, the
    /// turn fails. Default: 16 MiB.
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
            text_interval_ms: 16,
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
    /// Checks that each limit is in its range. The schema has the same ranges.
    ///
    /// # Errors
    /// [`LimitError`] for the first limit that is out of its range.
    pub fn check(&self) -> Result<(), LimitError> {
        let bounds: [(&'static str, u64, RangeInclusive<u64>); 16] = [
            ("max_sessions", self.max_sessions as u64, 1..=100000),
            ("max_queued_prompts", self.max_queued_prompts as u64, 0..=MAX_QUEUED_PROMPTS),
            ("buffered_events", self.buffered_events as u64, 1..=1000000),
            ("buffered_bytes", self.buffered_bytes as u64, 65536..=1073741824),
            ("max_clients", self.max_clients as u64, 1..=65536),
            ("max_prompt_bytes", self.max_prompt_bytes as u64, 1..=67108864),
            ("grace_ms", self.grace_ms, 0..=60000),
            ("parallel_tools", self.parallel_tools as u64, 1..=256),
            ("model_silence_s", self.model_silence_s, 1..=86400),
            ("text_interval_ms", self.text_interval_ms, 0..=100),
            ("model_tries", self.model_tries.into(), 1..=20),
            ("model_retry_ms", self.model_retry_ms, 1..=60000),
            ("run_retry_ms", self.run_retry_ms, 1..=3600000),
            ("max_history_lines", self.max_history_lines, 100..=10000000),
            ("max_history_tokens", self.max_history_tokens, 1000..=10000000),
            ("max_answer_bytes", self.max_answer_bytes as u64, 1024..=1073741824),
        ];
        match bounds.into_iter().find(|(_, value, range)| !range.contains(value)) {
            Some((key, value, range)) => {
                Err(LimitError { key, value, min: *range.start(), max: *range.end() })
            }
            None => Ok(()),
        }
    }

    /// Returns the time that a process has between TERM and KILL.
    #[must_use]
    pub fn grace(&self) -> Duration {
        Duration::from_millis(self.grace_ms)
    }

    /// Returns the time between the times at which text is sent while many pieces arrive.
    #[must_use]
    pub fn text_interval(&self) -> Duration {
        Duration::from_millis(self.text_interval_ms)
    }
}

/// The error for a limit that is out of its range.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("limits.{key} is {value}; it must be from {min} to {max}")]
pub struct LimitError {
    /// Key of the limit.
    pub key: &'static str,
    /// Configured value of the limit.
    pub value: u64,
    /// Minimum value of the limit.
    pub min: u64,
    /// Maximum value of the limit.
    pub max: u64,
}

/// Maximum value of `max_queued_prompts`.
pub const MAX_QUEUED_PROMPTS: u64 = 10_000;

/// Time after the grace in which a tool's thread must return. Then the thread is abandoned.
pub const ABANDON_AFTER: Duration = Duration::from_secs(1);

/// Time after which a save counts as late, and clients get a notice.
pub const SAVE_LATE: Duration = Duration::from_secs(2);

/// Maximum time that an engine takes to stop. Then it abandons its threads and kills their
/// processes.
pub const STOP_WITHIN: Duration = Duration::from_secs(10);

/// Maximum time before a piece of a streaming answer is saved. With the save itself, it is on disk
/// within two seconds.
pub const DRAFT_EVERY: Duration = Duration::from_secs(1);

/// Number of failed iterations in a row after which a run is held.
pub const MAX_RUN_FAILURES: u32 = 3;

/// Maximum number of tool calls of one answer.
pub const MAX_CALLS: usize = 1_000;

/// Maximum bytes of one delta of a model's text or thought.
pub const MAX_TEXT_DELTA: usize = 4 * 1024;

/// Maximum bytes of one delta of a tool's output.
pub const MAX_OUTPUT_DELTA: usize = 32 * 1024;

/// Longest wait that a provider may ask for before the next try. If it asks for more, the request
/// fails at once.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(5 * 60);

/// Maximum total of the waits between the tries of one model request.
pub const RETRY_TOTAL: Duration = Duration::from_secs(15 * 60);

/// Maximum bytes of a project's instruction files together that are sent to a model, and of the
/// user's own file.
pub const MAX_PROJECT_BYTES: usize = 32 * 1024;

/// Maximum number of folders that may have instruction files of a project: the workspace and those
/// above it. In a deeper workspace, the root of its repository is not found.
pub const MAX_PROJECT_FOLDERS: usize = 32;
