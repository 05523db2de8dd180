//! Runs: a goal worked through in iterations, each a turn with a fresh context.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::TurnId;
use crate::limits::RUN_FAILURES;
use crate::time::Timestamp;
use crate::turn::{CutCause, Outcome};

/// Iterations of a run that says nothing about it, before it is held.
pub const RUN_ITERATIONS: NonZeroU64 = NonZeroU64::new(50).unwrap();

/// What a run is begun with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunSettings {
    /// What is to be reached.
    pub goal: String,
    /// What it may take before it is held. Each release of such a hold grants as much again.
    #[serde(default)]
    pub limits: RunLimits,
    /// Where a hold stands.
    #[serde(default)]
    pub hold_at: HoldAt,
}

/// Where in a run a hold stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HoldAt {
    /// At the end of an iteration.
    #[default]
    Iteration,
    /// At the end of a step, as in every other turn.
    Step,
}

/// What a run may take. None of it cuts an iteration: tokens and time are looked at before every request to the model,
/// iterations when one is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RunLimits {
    /// Iterations: 50 where nothing is said, `null` for no limit.
    pub iterations: Option<NonZeroU64>,
    /// Tokens, of requests and answers together.
    pub tokens: Option<NonZeroU64>,
    /// Milliseconds of work: without the time it was held or asked.
    pub time_ms: Option<NonZeroU64>,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self { iterations: Some(RUN_ITERATIONS), tokens: None, time_ms: None }
    }
}

/// What holds a run by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "limit", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RunLimit {
    /// So many iterations.
    Iterations {
        /// How many it was granted.
        count: u64,
    },
    /// So many tokens.
    Tokens {
        /// How many it was granted.
        count: u64,
    },
    /// So much work.
    Time {
        /// How many milliseconds it was granted.
        ms: u64,
    },
    /// So many iterations in a row that failed.
    Failures {
        /// How many.
        count: u32,
    },
}

impl fmt::Display for RunLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iterations { count: 1 } => f.write_str("1 iteration"),
            Self::Iterations { count } => write!(f, "{count} iterations"),
            Self::Tokens { count } => write!(f, "{count} tokens"),
            Self::Time { ms } => write!(f, "{} of work", Work(Duration::from_millis(*ms))),
            Self::Failures { count } => write!(f, "{count} failures in a row"),
        }
    }
}

/// Hours, minutes and seconds, those that are none left out: `1h 30m`.
struct Work(Duration);

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let parts = [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
        let parts: Vec<_> =
            parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count}{unit}")).collect();
        if parts.is_empty() { write!(f, "{} ms", self.0.as_millis()) } else { f.write_str(&parts.join(" ")) }
    }
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunProgress {
    /// The iteration it is in, or was in last, counted from 1; 0 before the first.
    pub iteration: u32,
    /// Tokens used.
    pub tokens: u64,
    /// Milliseconds of work until `workingSince`: without the time it was held or asked.
    pub worked_ms: u64,
    /// Since when it works; nothing while it is held or asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_since: Option<Timestamp>,
}

impl RunProgress {
    /// How long it has worked.
    #[must_use]
    pub fn worked(&self, now: Timestamp) -> Duration {
        let open = self.working_since.map_or(Duration::ZERO, |since| now.since(since));
        Duration::from_millis(self.worked_ms) + open
    }
}

/// A run that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// What it was begun with.
    pub settings: Arc<RunSettings>,
    /// What it may take by now.
    pub limits: RunLimits,
    /// How far it is.
    pub progress: RunProgress,
    /// Iterations in a row that failed.
    pub failures: u32,
    /// After a failed iteration: when the next begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Timestamp>,
    /// A restart has cut its iteration, which goes on when the run is released.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl Run {
    /// A run before its first iteration.
    #[must_use]
    pub fn begun(settings: RunSettings) -> Self {
        let limits = settings.limits;
        let (progress, failures) = Default::default();
        Self { settings: Arc::new(settings), limits, progress, failures, waits_until: None, cut: false }
    }

    /// The run after a turn of it that ended so.
    #[must_use]
    pub fn after(&self, outcome: Outcome, cause: Option<&CutCause>) -> Self {
        let cut = matches!(cause, Some(CutCause::Shutdown | CutCause::Restart | CutCause::Panic));
        let failures = match outcome {
            _ if cause.is_some() => self.failures,
            Outcome::Failed | Outcome::Panicked => self.failures.saturating_add(1),
            Outcome::Done | Outcome::Limit => 0,
            Outcome::Interrupted => self.failures,
        };
        Self { failures, cut, ..self.clone() }
    }

    /// What it has come to between two iterations, if it has come to a limit.
    #[must_use]
    pub fn reached(&self, now: Timestamp) -> Option<RunLimit> {
        let failures = Some(self.failures).filter(|count| *count >= RUN_FAILURES);
        failures
            .map(|count| RunLimit::Failures { count })
            .or_else(|| granted(self.limits.iterations, self.iterated()).map(|count| RunLimit::Iterations { count }))
            .or_else(|| self.spent(now))
    }

    /// What it has come to within an iteration, if it has come to a limit: tokens or time.
    #[must_use]
    pub fn spent(&self, now: Timestamp) -> Option<RunLimit> {
        granted(self.limits.tokens, self.progress.tokens)
            .map(|count| RunLimit::Tokens { count })
            .or_else(|| granted(self.limits.time_ms, self.worked_ms(now)).map(|ms| RunLimit::Time { ms }))
    }

    /// Grants as much again of what it has come to: as often as it takes, for one request may use more than a grant.
    pub fn extend(&mut self, reached: RunLimit, now: Timestamp) {
        let (iterated, worked) = (self.iterated(), self.worked_ms(now));
        let again = self.settings.limits;
        self.failures = 0;
        let (limit, again, is) = match reached {
            RunLimit::Iterations { .. } => (&mut self.limits.iterations, again.iterations, iterated),
            RunLimit::Tokens { .. } => (&mut self.limits.tokens, again.tokens, self.progress.tokens),
            RunLimit::Time { .. } => (&mut self.limits.time_ms, again.time_ms, worked),
            RunLimit::Failures { .. } => return,
        };
        *limit = again.map(|again| again.saturating_mul(NonZeroU64::MIN.saturating_add(is / again)));
    }

    /// Iterations that are over. One that was cut is still to be finished.
    fn iterated(&self) -> u64 {
        u64::from(self.progress.iteration).saturating_sub(u64::from(self.cut))
    }

    fn worked_ms(&self, now: Timestamp) -> u64 {
        u64::try_from(self.progress.worked(now).as_millis()).unwrap_or(u64::MAX)
    }
}

/// The limit, if it is reached.
fn granted(limit: Option<NonZeroU64>, is: u64) -> Option<u64> {
    limit.map(NonZeroU64::get).filter(|limit| is >= *limit)
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunEnd {
    /// No task is left.
    Done,
    /// It was interrupted.
    Interrupted,
    /// Its session was closed.
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

/// How a session's last run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastRun {
    /// How.
    pub end: RunEnd,
    /// The session's last turn when it ended; one that came later is none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// How far it was.
    pub progress: RunProgress,
}
