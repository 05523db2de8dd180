//! Deadlines by a clock that does not stop while the machine sleeps.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A moment, by the time since the machine was started. That clock also runs while the machine
/// sleeps, and nobody sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Duration);

impl Deadline {
    /// The moment after this time.
    #[must_use]
    pub fn after(time: Duration) -> Self {
        Self(since_start().saturating_add(time))
    }

    /// The time until the deadline; zero if it has passed.
    #[must_use]
    pub fn remaining(self) -> Duration {
        self.0.saturating_sub(since_start())
    }

    /// Whether the deadline has passed.
    #[must_use]
    pub fn has_passed(self) -> bool {
        self.remaining().is_zero()
    }
}

/// The time since the machine was started.
fn since_start() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    // On macOS, this clock runs while the machine sleeps.
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    // The time is never negative.
    clock_gettime(clock).try_into().unwrap_or_default()
}
