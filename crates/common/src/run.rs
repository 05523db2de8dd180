//! Runs: a goal that is worked through in iterations, each a turn with a fresh context.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::TurnId;
use crate::limits::MAX_RUN_FAILURES;
use crate::time::Timestamp;
use crate::turn::{CutCause, Outcome};

/// Default limit of a run's iterations.
pub const RUN_ITERATIONS: NonZeroU64 = NonZeroU64::new(50).unwrap();

/// The settings that a run is started with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunSettings {
    /// Goal of the run.
    pub goal: String,
    /// Limits at which the run is held. Each release of such a hold grants the same amount again.
    #[serde(default)]
    pub limits: RunLimits,
    /// Boundary at which a hold takes effect.
    #[serde(default)]
    pub hold_at: HoldAt,
}

/// The boundary at which a hold of a run takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HoldAt {
    /// The end of an iteration.
    #[default]
    Iteration,
    /// The end of a step, as in turns outside of runs.
    Step,
}

/// The limits of a run. A run that reaches one is held, never cut: tokens and time are checked
/// before each model request, iterations at the end of each one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RunLimits {
    /// Maximum number of iterations; `null` means no limit. Default: 50.
    pub iterations: Option<NonZeroU64>,
    /// Maximum number of tokens, requests and answers together; `null` means no limit.
    /// Default: `null`.
    pub tokens: Option<NonZeroU64>,
    /// Maximum working time in milliseconds, without the time that the run is held or waits for an
    /// answer; `null` means no limit. Default: `null`.
    pub time_ms: Option<NonZeroU64>,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self { iterations: Some(RUN_ITERATIONS), tokens: None, time_ms: None }
    }
}

/// A limit that a run has reached, so that it is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "limit", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RunLimit {
    /// The maximum number of iterations.
    Iterations {
        /// Number of iterations that were granted.
        count: u64,
    },
    /// The maximum number of tokens.
    Tokens {
        /// Number of tokens that were granted.
        count: u64,
    },
    /// The maximum working time.
    Time {
        /// Granted working time in milliseconds.
        ms: u64,
    },
    /// The maximum number of failed iterations in a row.
    Failures {
        /// Number of iterations that failed in a row.
        count: u32,
    },
}

impl fmt::Display for RunLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iterations { count: 1 } => f.write_str("1 iteration"),
            Self::Iterations { count } => write!(f, "{count} iterations"),
            Self::Tokens { count } => write!(f, "{count} tokens"),
            Self::Time { ms } => write!(f, "{} of work", WorkTime(Duration::from_millis(*ms))),
            Self::Failures { count } => write!(f, "{count} failures in a row"),
        }
    }
}

/// Hours, minutes and seconds, without parts that are zero: `1h 30m`.
struct WorkTime(Duration);

impl fmt::Display for WorkTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let parts = [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
        let parts: Vec<_> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, unit)| format!("{count}{unit}"))
            .collect();
        if parts.is_empty() {
            write!(f, "{} ms", self.0.as_millis())
        } else {
            f.write_str(&parts.join(" "))
        }
    }
}

/// The progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunProgress {
    /// Current or last iteration, counted from 1; 0 before the first.
    pub iteration: u32,
    /// Number of tokens used, requests and answers together.
    pub tokens: u64,
    /// Working time in milliseconds up to `workingSince`, without the time that the run was held or
    /// waited for an answer.
    pub worked_ms: u64,
    /// Time since which the run has been working; absent while it is held or waits for an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_since: Option<Timestamp>,
}

impl RunProgress {
    /// Returns the working time up to `now`.
    #[must_use]
    pub fn worked(&self, now: Timestamp) -> Duration {
        Duration::from_millis(self.worked_ms)
            + self.working_since.map_or(Duration::ZERO, |since| now.since(since))
    }
}

/// A run that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Settings that the run was started with.
    pub settings: Arc<RunSettings>,
    /// Current limits, including later grants.
    pub limits: RunLimits,
    /// Progress of the run.
    pub progress: RunProgress,
    /// Number of iterations that failed in a row.
    pub failures: u32,
    /// Start of the next iteration after a failed one; absent if the run does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Timestamp>,
    /// Whether the current iteration was cut by a restart or a failure. It continues when the run
    /// is released.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl Run {
    /// Creates a run before its first iteration.
    #[must_use]
    pub fn new(settings: RunSettings) -> Self {
        let limits = settings.limits;
        Self {
            settings: Arc::new(settings),
            limits,
            progress: RunProgress::default(),
            failures: 0,
            waits_until: None,
            cut: false,
        }
    }

    /// Returns the run after one of its turns has ended.
    #[must_use]
    pub fn after_turn(&self, outcome: Outcome, cause: Option<&CutCause>) -> Self {
        let cut = matches!(cause, Some(CutCause::Shutdown | CutCause::Restart | CutCause::Panic));
        let failures = match outcome {
            _ if cause.is_some() => self.failures,
            Outcome::Failed | Outcome::Panicked => self.failures.saturating_add(1),
            Outcome::Done | Outcome::Limit => 0,
            Outcome::Interrupted => self.failures,
        };
        Self { failures, cut, ..self.clone() }
    }

    /// Returns the limit that the run has reached between two iterations, if any.
    #[must_use]
    pub fn limit_between_iterations(&self, now: Timestamp) -> Option<RunLimit> {
        let failures = Some(self.failures).filter(|count| *count >= MAX_RUN_FAILURES);
        failures
            .map(|count| RunLimit::Failures { count })
            .or_else(|| {
                reached_limit(self.limits.iterations, self.completed_iterations())
                    .map(|count| RunLimit::Iterations { count })
            })
            .or_else(|| self.limit_within_iteration(now))
    }

    /// Returns the limit of tokens or time that the run has reached within an iteration, if any.
    #[must_use]
    pub fn limit_within_iteration(&self, now: Timestamp) -> Option<RunLimit> {
        reached_limit(self.limits.tokens, self.progress.tokens)
            .map(|count| RunLimit::Tokens { count })
            .or_else(|| {
                reached_limit(self.limits.time_ms, self.worked_ms(now))
                    .map(|ms| RunLimit::Time { ms })
            })
    }

    /// Resets the count of failures. Raises a reached limit of iterations, tokens or time to the
    /// lowest multiple of its initial value that exceeds the amount used.
    pub fn extend(&mut self, reached: RunLimit, now: Timestamp) {
        let iterations = self.completed_iterations();
        let worked_ms = self.worked_ms(now);
        let initial = self.settings.limits;
        self.failures = 0;
        let (limit, grant, used) = match reached {
            RunLimit::Iterations { .. } => {
                (&mut self.limits.iterations, initial.iterations, iterations)
            }
            RunLimit::Tokens { .. } => {
                (&mut self.limits.tokens, initial.tokens, self.progress.tokens)
            }
            RunLimit::Time { .. } => (&mut self.limits.time_ms, initial.time_ms, worked_ms),
            RunLimit::Failures { .. } => return,
        };
        *limit =
            grant.map(|grant| grant.saturating_mul(NonZeroU64::MIN.saturating_add(used / grant)));
    }

    /// Number of completed iterations. An iteration that was cut is not complete.
    fn completed_iterations(&self) -> u64 {
        u64::from(self.progress.iteration).saturating_sub(u64::from(self.cut))
    }

    fn worked_ms(&self, now: Timestamp) -> u64 {
        u64::try_from(self.progress.worked(now).as_millis()).unwrap_or(u64::MAX)
    }
}

/// Returns the limit if the value has reached it.
fn reached_limit(limit: Option<NonZeroU64>, value: u64) -> Option<u64> {
    limit.map(NonZeroU64::get).filter(|limit| value >= *limit)
}

/// The reason why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunEnd {
    /// All tasks are done or dropped.
    Done,
    /// A client interrupted the run.
    Interrupted,
    /// A client closed the session.
    Closed,
}

impl fmt::Display for RunEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Done => "done",
            Self::Interrupted => "interrupted",
            Self::Closed => "closed",
        })
    }
}

/// The end of a session's last run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastRun {
    /// Reason why the run ended.
    pub end: RunEnd,
    /// Last turn of the session when the run ended. Later turns do not belong to the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Progress of the run at its end.
    pub progress: RunProgress,
}
