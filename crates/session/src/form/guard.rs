//! The pause in typing that separates keys for an ask from keys for anything else.

use std::time::{Duration, Instant};

use super::Key;

/// A key that answers counts only this long after the ask appeared and after the last key that does not answer: both the
/// time to read it, and a sign that the user has stopped typing something else.
pub const GUARD: Duration = Duration::from_millis(300);

/// A [`GUARD`] from one moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard(Instant);

impl Guard {
    /// One that begins now.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self(now)
    }

    /// Whether it is over at this time.
    #[must_use]
    pub fn is_over(self, at: Instant) -> bool {
        at.saturating_duration_since(self.0) >= GUARD
    }

    /// When it is over.
    #[must_use]
    pub fn end(self) -> Instant {
        self.0 + GUARD
    }
}

/// Keys after an ask has closed, by whomever: those that were meant for it are swallowed until none was pressed for a
/// [`GUARD`].
#[derive(Debug, Default)]
pub struct AfterAsk(Option<Guard>);

impl AfterAsk {
    /// An ask has closed.
    pub fn begin(&mut self, now: Instant) {
        self.0 = Some(Guard::new(now));
    }

    /// Whether this key is swallowed. Esc and Ctrl+C never are.
    pub fn swallows(&mut self, key: Key, at: Instant) -> bool {
        self.0 = self.0.filter(|guard| !guard.is_over(at)).map(|_| Guard::new(at));
        self.0.is_some() && !key.interrupts()
    }

    /// Until when keys are swallowed, if they are and no other is pressed.
    #[must_use]
    pub fn end(&self) -> Option<Instant> {
        self.0.map(Guard::end)
    }
}
