//! The failed actors of one session, and the delay before its next one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How many actors of a session may fail within [`WINDOW`] and be replaced at once. Further ones
/// are replaced after [`RESTART_DELAY`], so that a session that can't run uses few resources.
const MAX_QUICK_RESTARTS: usize = 10;
const WINDOW: Duration = Duration::from_secs(60);

/// The delay before another actor of a session that can't run.
pub(crate) const RESTART_DELAY: Duration = Duration::from_secs(1);

/// When the actors of a session failed, by their number: all recent failures, and always the last
/// one.
#[derive(Default)]
pub(super) struct Failures(BTreeMap<u64, Instant>);

impl Failures {
    /// Adds the failure of an actor. Returns the delay before the next one.
    pub(super) fn add(&mut self, actor: u64, now: Instant) -> Duration {
        // Older failures are dropped: callers that had seen those actors have been answered by now.
        self.0.retain(|_, at| now.saturating_duration_since(*at) < WINDOW);
        self.0.insert(actor, now);
        if self.0.len() > MAX_QUICK_RESTARTS { RESTART_DELAY } else { Duration::ZERO }
    }

    pub(super) fn contains(&self, actor: u64) -> bool {
        self.0.contains_key(&actor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_keeps_failing_restarts_with_a_delay() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        for actor in 1..=MAX_QUICK_RESTARTS as u64 {
            assert_eq!(failures.add(actor, now), Duration::ZERO);
        }
        assert_eq!(failures.add(11, now), RESTART_DELAY);
        assert_eq!(failures.add(12, now + WINDOW), Duration::ZERO, "old failures do not count");
    }

    #[test]
    fn old_failures_are_dropped() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        failures.add(1, now);
        failures.add(2, now + WINDOW / 2);
        failures.add(3, now + WINDOW);
        assert_eq!(failures.0.into_keys().collect::<Vec<_>>(), [2, 3]);
    }
}
