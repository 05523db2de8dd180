//! The numbers that an owner of a session gives to its events.

use std::ops::Range;

use super::{SessionLog, StoreError};

/// Numbers that are set aside at a time.
pub(crate) const NUMBERS: u64 = 65_536;

/// The numbers of the events to come. An owner has [`NUMBERS`] more of them than it needs: it goes on with those while
/// the disk is full and no more can be set aside.
pub(crate) struct Numbers(Range<u64>);

impl Numbers {
    /// Sets numbers aside for an owner of this log: nobody else has them.
    pub(crate) async fn reserve(log: &dyn SessionLog) -> Result<Self, StoreError> {
        Ok(Self(log.reserve(2 * NUMBERS).await?))
    }

    /// All numbers from this one on, for facts that are saved before anyone sees them: nothing has to be set aside.
    pub(crate) fn from(first: u64) -> Self {
        Self(first..u64::MAX)
    }

    /// The next number.
    pub(crate) fn next(&self) -> u64 {
        self.0.start
    }

    /// The number that was used last.
    pub(crate) fn used(&self) -> u64 {
        self.0.start.saturating_sub(1)
    }

    /// Uses the next number.
    pub(crate) fn take(&mut self) -> u64 {
        let next = self.0.start;
        self.0.start += 1;
        next
    }

    /// It is time to set more aside.
    pub(crate) fn run_low(&self) -> bool {
        self.0.end.saturating_sub(self.0.start) <= NUMBERS + NUMBERS / 4
    }

    /// More have been set aside.
    pub(crate) fn extend(&mut self, reserved: &Range<u64>) {
        self.0.end = reserved.end;
    }

    /// Gives back the numbers that were not used, but for one: with that, the first snapshot of the next owner is newer
    /// than all that clients have seen.
    pub(crate) fn give_back(&self, log: &dyn SessionLog) -> impl Future<Output = ()> + 'static {
        let given_back = log.give_back(self.0.start + 1..self.0.end);
        async move {
            // Numbers that are lost do no harm.
            if let Err(error) = given_back.await {
                tracing::debug!(%error, "numbers were not given back");
            }
        }
    }
}
