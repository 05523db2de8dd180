//! Decisions on holding and releasing.

use holdpoint_common::api::{HoldRequest, ReleaseRequest, ToggleRequest};
use holdpoint_common::{Fact, Hold, HoldCause, HoldState, Refused, SessionFact, Who};

use super::DecisionBuilder;
use crate::state::input::Decide;
use crate::state::{Cut, Phase};

impl Decide for HoldRequest {
    fn decide(&self, by: &Who, builder: &mut DecisionBuilder<'_>) -> Result<Hold, Refused> {
        builder.hold(HoldCause::User { by: by.clone() })
    }
}

impl Decide for ReleaseRequest {
    fn decide(&self, _by: &Who, builder: &mut DecisionBuilder<'_>) -> Result<Hold, Refused> {
        match (&builder.state.phase, &builder.state.hold) {
            (Phase::Closed | Phase::Interrupting(_, Cut { closing: Some(_), .. }), _) => {
                return Err(Refused::Closed);
            }
            (_, Hold::Off) => {}
            (Phase::Idle, hold @ (Hold::Requested { .. } | Hold::Standing { .. })) => {
                builder.record(SessionFact::HoldChanged { hold: Hold::Off });
                match builder.extend_limit(hold) {
                    Some(run) => builder.continue_run(&run),
                    None => builder.start_next(),
                }
            }
            (
                Phase::Running(_) | Phase::Interrupting(..),
                hold @ (Hold::Requested { .. } | Hold::Standing { .. }),
            ) => {
                builder.record(SessionFact::HoldChanged { hold: Hold::Off });
                builder.extend_limit(hold);
            }
        }
        // The released run may have reached its next limit, which holds it again.
        Ok(match builder.facts.last() {
            Some(Fact::Session(SessionFact::HoldChanged { hold })) => hold.clone(),
            _ => Hold::Off,
        })
    }
}

impl Decide for ToggleRequest {
    fn decide(&self, by: &Who, builder: &mut DecisionBuilder<'_>) -> Result<Hold, Refused> {
        let hold = &builder.state.hold;
        if hold.shown() != self.shown {
            builder.check_open()?;
            return Ok(hold.clone());
        }
        match self.shown {
            HoldState::Off => HoldRequest {}.decide(by, builder),
            HoldState::Requested | HoldState::Standing => ReleaseRequest {}.decide(by, builder),
        }
    }
}

impl DecisionBuilder<'_> {
    /// Holds the session at its next boundary. A hold of a user replaces one that is only for a move.
    pub(super) fn hold(&mut self, cause: HoldCause) -> Result<Hold, Refused> {
        let since = self.moment.now;
        let replaces = |held: &HoldCause| {
            matches!(held, HoldCause::Move { .. }) && !matches!(cause, HoldCause::Move { .. })
        };
        let hold = match (&self.state.phase, &self.state.hold) {
            (Phase::Closed | Phase::Interrupting(_, Cut { closing: Some(_), .. }), _) => {
                return Err(Refused::Closed);
            }
            (_, Hold::Requested { cause: held, .. } | Hold::Standing { cause: held, .. })
                if !replaces(held) =>
            {
                return Ok(self.state.hold.clone());
            }
            (_, Hold::Standing { .. }) | (Phase::Idle, _) => Hold::Standing { cause, since },
            (Phase::Running(_) | Phase::Interrupting(..), _) => Hold::Requested { cause, since },
        };
        self.record(SessionFact::HoldChanged { hold: hold.clone() });
        Ok(hold)
    }

    /// Puts the hold into effect: the session stops until it is released.
    pub(super) fn put_hold_in_effect(&mut self, cause: HoldCause) {
        self.record(SessionFact::HoldChanged {
            hold: Hold::Standing { cause, since: self.moment.now },
        });
    }
}
