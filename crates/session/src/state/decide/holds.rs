//! Decisions on holding and releasing.

use holdpoint_common::{Fact, Hold, HoldCause, HoldShown, Who};

use super::DecisionBuilder;
use crate::state::decision::{Refused, Reply};
use crate::state::{Cut, Phase};

impl DecisionBuilder<'_> {
    pub(super) fn hold(&mut self, by: Who) -> Result<Reply, Refused> {
        let since = self.moment.now;
        let cause = HoldCause::User { by };
        let hold = match (&self.state.phase, &self.state.hold) {
            (Phase::Closed | Phase::Interrupting(_, Cut { closing: Some(_), .. }), _) => return Err(Refused::Closed),
            (_, hold @ (Hold::Requested { .. } | Hold::Standing { .. })) => return Ok(Reply::Hold(hold.clone())),
            (Phase::Idle, Hold::Off) => Hold::Standing { cause, since },
            (Phase::Running(_) | Phase::Interrupting(..), Hold::Off) => Hold::Requested { cause, since },
        };
        self.facts.push(Fact::HoldChanged { hold: hold.clone() });
        Ok(Reply::Hold(hold))
    }

    pub(super) fn release(&mut self) -> Result<Reply, Refused> {
        match (&self.state.phase, &self.state.hold) {
            (Phase::Closed | Phase::Interrupting(_, Cut { closing: Some(_), .. }), _) => return Err(Refused::Closed),
            (_, Hold::Off) => {}
            (Phase::Idle, hold @ (Hold::Requested { .. } | Hold::Standing { .. })) => {
                self.facts.push(Fact::HoldChanged { hold: Hold::Off });
                match self.extend_limit(hold) {
                    Some(run) => self.continue_run(&run),
                    None => self.start_next(),
                }
            }
            (Phase::Running(_) | Phase::Interrupting(..), hold @ (Hold::Requested { .. } | Hold::Standing { .. })) => {
                self.facts.push(Fact::HoldChanged { hold: Hold::Off });
                self.extend_limit(hold);
            }
        }
        // The released run may have reached its next limit, which holds it again.
        Ok(Reply::Hold(match self.facts.last() {
            Some(Fact::HoldChanged { hold }) => hold.clone(),
            _ => Hold::Off,
        }))
    }

    /// Puts the hold into effect: the session stops until it is released.
    pub(super) fn put_hold_in_effect(&mut self, cause: HoldCause) {
        self.facts.push(Fact::HoldChanged { hold: Hold::Standing { cause, since: self.moment.now } });
    }

    pub(super) fn toggle(&mut self, shown: HoldShown, by: Who) -> Result<Reply, Refused> {
        if self.state.hold.shown() != shown {
            return match &self.state.phase {
                Phase::Closed | Phase::Interrupting(_, Cut { closing: Some(_), .. }) => Err(Refused::Closed),
                Phase::Idle | Phase::Running(_) | Phase::Interrupting(_, Cut { closing: None, .. }) => {
                    Ok(Reply::Hold(self.state.hold.clone()))
                }
            };
        }
        match shown {
            HoldShown::Off => self.hold(by),
            HoldShown::Requested | HoldShown::Standing => self.release(),
        }
    }
}
