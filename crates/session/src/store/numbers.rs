//! The event numbers that the owner of a session has reserved.

use std::ops::Range;

use super::{SessionLog, StoreError};

/// How many numbers are reserved at a time.
pub(crate) const NUMBER_BLOCK: u64 = 65_536;

/// The numbers of the events to come. An owner has [`NUMBER_BLOCK`] more of them than it needs, so
/// that it can continue while the disk is full and no more can be reserved.
pub(crate) struct Numbers(Range<u64>);

impl Numbers {
    /// Reserves numbers for an owner of this log. No other owner gets them.
    pub(crate) async fn reserve(log: &dyn SessionLog) -> Result<Self, StoreError> {
        Ok(Self(log.reserve(2 * NUMBER_BLOCK).await?))
    }

    /// The numbers of the owner of a new log, which is [created](super::SessionStore::create) with
    /// [`reserved`](Self::reserved) numbers.
    pub(crate) fn of_new_log() -> Self {
        Self(1..1 + 2 * NUMBER_BLOCK)
    }

    /// The number of the last reserved event.
    pub(crate) fn reserved(&self) -> u64 {
        self.0.end - 1
    }

    /// All numbers from `first` on, for facts that are saved before anyone sees them: these need no
    /// reservation.
    pub(crate) fn unreserved_from(first: u64) -> Self {
        Self(first..u64::MAX)
    }

    pub(crate) fn next(&self) -> u64 {
        self.0.start
    }

    /// The number that was used last.
    pub(crate) fn last_used(&self) -> u64 {
        self.0.start.saturating_sub(1)
    }

    /// Uses up the next number and returns it.
    pub(crate) fn take(&mut self) -> u64 {
        let next = self.0.start;
        self.0.start += 1;
        next
    }

    /// Whether it is time to reserve more: at most the spare block and a quarter of another remain.
    pub(crate) fn run_low(&self) -> bool {
        self.0.end.saturating_sub(self.0.start) <= NUMBER_BLOCK + NUMBER_BLOCK / 4
    }

    /// Adds newly reserved numbers.
    pub(crate) fn extend(&mut self, reserved: &Range<u64>) {
        self.0.end = reserved.end;
    }

    /// Gives back all unused numbers but one. That one makes the first snapshot of the next owner
    /// newer than everything that clients have seen.
    pub(crate) fn give_back(&self, log: &dyn SessionLog) -> impl Future<Output = ()> + 'static {
        let given_back = log.give_back(self.0.start + 1..self.0.end);
        async move {
            // Lost numbers do no harm.
            if let Err(error) = given_back.await {
                tracing::debug!(%error, "could not give back unused numbers");
            }
        }
    }
}
