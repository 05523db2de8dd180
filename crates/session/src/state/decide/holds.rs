//! What holding and releasing do.

use holdpoint_common::{Fact, Hold, HoldCause, HoldShown, Who};

use super::Draft;
use crate::state::decision::{Refused, Reply};
use crate::state::{Cut, Phase};

impl Draft<'_> {
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
                match self.grant(hold) {
                    Some(run) => self.go_on(&run),
                    None => self.start_next(),
                }
            }
            (Phase::Running(_) | Phase::Interrupting(..), hold @ (Hold::Requested { .. } | Hold::Standing { .. })) => {
                self.facts.push(Fact::HoldChanged { hold: Hold::Off });
                self.grant(hold);
            }
        }
        // A run may have come to its next limit with it.
        Ok(Reply::Hold(match self.facts.last() {
            Some(Fact::HoldChanged { hold }) => hold.clone(),
            _ => Hold::Off,
        }))
    }

    /// The session stops here until it is released.
    pub(super) fn stand(&mut self, cause: HoldCause) {
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
