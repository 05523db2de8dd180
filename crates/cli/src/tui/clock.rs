//! How long a turn has worked: without the time it was held, and without the time it waited for an answer.

use std::collections::BTreeSet;
use std::time::Duration;

use holdpoint_common::{AskId, Event, Fact, Hold, Timestamp};

/// Follows the turns of a session.
#[derive(Debug, Default)]
pub(crate) struct WorkClock {
    /// Of the turn that is open, or of the last one.
    worked: Duration,
    /// It works since then.
    since: Option<Timestamp>,
    open: bool,
    held: bool,
    asks: BTreeSet<AskId>,
}

impl WorkClock {
    /// Follows what happened.
    pub(crate) fn add(&mut self, event: &Event) {
        let Some(fact) = event.fact() else { return };
        match fact {
            Fact::TurnStarted { .. } => {
                *self = Self { open: true, held: self.held, ..Self::default() };
            }
            Fact::TurnFinished { .. } => {
                self.open = false;
                self.asks.clear();
            }
            Fact::AskRaised { ask } => {
                self.asks.insert(ask.id.clone());
            }
            Fact::AskAnswered { ask, .. } | Fact::AskClosed { ask, .. } => {
                self.asks.remove(ask);
            }
            Fact::HoldChanged { hold } => self.held = matches!(hold, Hold::Standing { .. }),
            _ => return,
        }
        let works = self.open && !self.held && self.asks.is_empty();
        match (self.since, works) {
            (None, true) => self.since = Some(event.at),
            (Some(since), false) => {
                self.worked += event.at.since(since);
                self.since = None;
            }
            _ => {}
        }
    }

    /// How long, as of now.
    pub(crate) fn worked(&self, now: Timestamp) -> Duration {
        self.worked + self.since.map_or(Duration::ZERO, |since| now.since(since))
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_common::{Body, HoldCause, Outcome, PromptId, TurnId, Usage};

    use super::*;

    #[test]
    fn m_d6_the_time_is_work_without_held_and_asking() {
        let mut clock = WorkClock::default();
        let mut add = |at, fact| {
            clock.add(&Event { seq: at, at: Timestamp(at * 1000), turn: None, step: None, body: Body::Fact(fact) });
            clock.worked(Timestamp(at * 1000 + 500)).as_millis()
        };
        let hold = |hold| Fact::HoldChanged { hold };
        let standing = Hold::Standing { cause: HoldCause::Restored, since: Timestamp(0) };
        assert_eq!(add(10, Fact::TurnStarted { turn: TurnId(1), prompt: PromptId(1) }), 500);
        assert_eq!(add(12, hold(standing)), 2000);
        assert_eq!(add(20, hold(Hold::Off)), 2500);
        let ask = "s.1".parse::<AskId>().unwrap();
        assert_eq!(add(21, Fact::AskClosed { ask, cause: holdpoint_common::AskCloseCause::TurnEnded }), 3500);
        let end = Fact::TurnFinished {
            outcome: Outcome::Done,
            error: None,
            cause: None,
            receipt: None,
            usage: Usage::default(),
        };
        assert_eq!(add(23, end), 5000);
        assert_eq!(clock.since, None);
    }
}
