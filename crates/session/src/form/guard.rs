//! The pause in typing that separates keys for an ask from keys for anything else.

use std::time::{Duration, Instant};

use super::Key;

/// A key that answers counts only this long after the ask appeared, and after the last key that
/// does not answer. This gives time to read the ask, and shows that the user has stopped typing
/// something else.
pub const GUARD: Duration = Duration::from_millis(300);

/// A second `A` counts only this long after the first, and after any other key. A key that is held
/// down repeats sooner, for the first time after 250 to 660 ms.
pub const ALWAYS_GUARD: Duration = Duration::from_millis(700);

/// A running [`GUARD`], with the moment when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard(Instant);

impl Guard {
    /// Starts a guard at `now`.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self(now)
    }

    /// Restarts the guard. A key that was read before the ask was shown may be handled afterwards,
    /// so an earlier time has no effect.
    pub fn restart(&mut self, at: Instant) {
        self.0 = self.0.max(at);
    }

    /// Whether the guard is over at this time.
    #[must_use]
    pub fn is_over(self, at: Instant) -> bool {
        self.has_lasted(GUARD, at)
    }

    pub(super) fn has_lasted(self, time: Duration, at: Instant) -> bool {
        at.saturating_duration_since(self.0) >= time
    }

    /// The time when the guard is over.
    #[must_use]
    pub fn end(self) -> Instant {
        self.0 + GUARD
    }
}

/// Swallows the keys after an ask has closed, which may be meant for it, until no key was pressed
/// for a [`GUARD`].
#[derive(Debug, Default)]
pub struct AfterAsk(Option<Guard>);

impl AfterAsk {
    /// Starts to swallow keys, because an ask has closed.
    pub fn begin(&mut self, now: Instant) {
        self.0 = Some(Guard::new(now));
    }

    /// Whether this key is swallowed. Esc and Ctrl+C never are.
    pub fn swallows(&mut self, key: Key, at: Instant) -> bool {
        self.0 = self.0.filter(|guard| !guard.is_over(at));
        self.0.iter_mut().for_each(|guard| guard.restart(at));
        self.0.is_some() && !key.interrupts()
    }

    /// The time until which keys are swallowed if no other key is pressed; `None` if they are not.
    #[must_use]
    pub fn end(&self) -> Option<Instant> {
        self.0.map(Guard::end)
    }
}
