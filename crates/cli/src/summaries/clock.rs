//! Measures how long a turn works.

use std::time::Duration;

use holdpoint_common::{AskFact, Fact, Hold, SessionFact, Timestamp};

/// A clock that is stopped while an ask is open or a hold is in force.
#[derive(Debug)]
pub(crate) struct Clock {
    worked: Duration,
    /// The time up to which `worked` counts.
    to: Timestamp,
    asks: usize,
    held: bool,
}

impl Clock {
    pub(crate) fn begun(at: Timestamp) -> Self {
        Self { worked: Duration::ZERO, to: at, asks: 0, held: false }
    }

    /// Advances the clock to a fact and its time.
    pub(crate) fn tick(&mut self, at: Timestamp, fact: &Fact) {
        // The session did not work between its last fact and a restart.
        let was_working = self.asks == 0
            && !self.held
            && !matches!(fact, Fact::Session(SessionFact::Restored { .. }));
        if was_working {
            self.worked += at.since(self.to);
        }
        self.to = at;
        match fact {
            Fact::Ask(AskFact::Raised { .. }) => self.asks += 1,
            Fact::Ask(AskFact::Answered { .. } | AskFact::Closed { .. }) => {
                self.asks = self.asks.saturating_sub(1)
            }
            Fact::Session(SessionFact::HoldChanged { hold }) => {
                self.held = matches!(hold, Hold::Standing { .. })
            }
            _ => {}
        }
    }

    /// The working time so far, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.worked.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_common::{HoldCause, RestoreCause, TurnFact, Who};

    use super::*;

    #[test]
    fn the_clock_stops_during_a_hold_and_a_restart() {
        let mut clock = Clock::begun(Timestamp(1_000));
        let mut tick = |at, fact| clock.tick(Timestamp(at), &fact);
        let (by, since) = (Who::named("test"), Timestamp(2_000));
        tick(
            2_000,
            Fact::Session(SessionFact::HoldChanged {
                hold: Hold::Requested { cause: HoldCause::User { by: by.clone() }, since },
            }),
        );
        tick(
            3_000,
            Fact::Session(SessionFact::HoldChanged {
                hold: Hold::Standing { cause: HoldCause::User { by }, since },
            }),
        );
        tick(60_000, Fact::Session(SessionFact::HoldChanged { hold: Hold::Off }));
        tick(61_000, Fact::Turn(TurnFact::StepStarted));
        tick(90_000, Fact::Session(SessionFact::Restored { cause: RestoreCause::Restart }));
        tick(91_000, Fact::Turn(TurnFact::StepStarted));
        assert_eq!(clock.worked, Duration::from_secs(4));
    }
}
