//! Decisions on holding and releasing.

use holdpoint_common::api::{HoldRequest, ReleaseRequest, ToggleRequest};
use holdpoint_common::{Fact, Hold, HoldCause, HoldState, Refused, SessionFact, Who};

use super::DecisionBuilder;
use crate::state::input::Decide;
use crate::state::{Cut, Phase};

impl Decide for HoldRequest {
    fn decide(&self, by: &Who, builder: &mut DecisionBuilder<'_>) -> Result<Hold, Refused> {
        let since = builder.moment.now;
        let cause = HoldCause::User { by: by.clone() };
        let hold = match (&builder.state.phase, &builder.state.hold) {
            (Phase::Closed | Phase::Interrupting(_, Cut { closing: Some(_), .. }), _) => {
                return Err(Refused::Closed);
            }
            (_, hold @ (Hold::Requested { .. } | Hold::Standing { .. })) => return Ok(hold.clone()),
            (Phase::Idle, Hold::Off) => Hold::Standing { cause, since },
            (Phase::Running(_) | Phase::Interrupting(..), Hold::Off) => {
                Hold::Requested { cause, since }
            }
        };
        builder.record(SessionFact::HoldChanged { hold: hold.clone() });
        Ok(hold)
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
    /// Puts the hold into effect: the session stops until it is released.
    pub(super) fn put_hold_in_effect(&mut self, cause: HoldCause) {
        self.record(SessionFact::HoldChanged {
            hold: Hold::Standing { cause, since: self.moment.now },
        });
    }
}
