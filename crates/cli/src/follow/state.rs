//! The state of the followed work: where it ends, and with which exit code.

use holdpoint_common::{
    Answer, AnsweredBy, AskFact, CutCause, Event, Fact, Outcome, PromptFact, PromptId, RunEnd,
    RunFact, SessionFact, TurnFact, TurnId,
};

use crate::error::FAILED;

/// The exit code for work that is done, although a Confirm was denied because no user was there.
const DENIED_UNSEEN: i32 = 3;
/// The exit code for work that a key interrupted, and for Ctrl+C.
pub(super) const INTERRUPTED: i32 = 130;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    Turn { prompt: PromptId },
    Run,
    Left,
}

/// The reason why following ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FollowEnd {
    Turn(Outcome),
    Run(RunEnd),
    Closed,
    /// The daemon was stopped.
    Stopped,
    /// The user left, and the session continues.
    Left,
}

/// The state of the followed work, as seen in events.
#[derive(Debug)]
pub(super) struct FollowState {
    until: Until,
    /// The followed turn, once it has begun.
    turn: Option<TurnId>,
    /// The number of the event that began the turn.
    pub(super) turn_seq: u64,
    denied_unseen: bool,
    /// The first reason to end. Later events do not change it.
    pub(super) ended: Option<FollowEnd>,
    /// The number of the event that set `ended`.
    pub(super) end_seq: u64,
}

impl FollowState {
    pub(super) fn new(until: Until) -> Self {
        Self { until, turn: None, turn_seq: 0, denied_unseen: false, ended: None, end_seq: 0 }
    }

    /// Whether the session is followed until the user leaves.
    pub(super) fn follows_until_left(&self) -> bool {
        self.until == Until::Left
    }

    pub(super) fn follows_run(&self) -> bool {
        self.until == Until::Run
    }

    /// The followed turn, once it has begun.
    pub(super) fn turn(&self) -> Option<TurnId> {
        self.turn
    }

    /// Updates the state with an event. Events up to number `replayed_to` happened before following
    /// began.
    pub(super) fn observe(&mut self, event: &Event, replayed_to: u64) {
        let (None, Some(fact)) = (self.ended, event.fact()) else { return };
        match fact {
            Fact::Turn(TurnFact::Started { turn, prompt }) if self.is_followed_prompt(*prompt) => {
                self.turn = Some(*turn);
                self.turn_seq = event.seq;
            }
            Fact::Ask(AskFact::Answered {
                answer: Answer::Deny { .. },
                by: AnsweredBy::Setting { .. },
                ..
            }) => self.denied_unseen = true,
            Fact::Turn(TurnFact::Finished { outcome, cause, .. })
                if event.turn.is_some() && event.turn == self.turn =>
            {
                self.ended = Some(match cause {
                    Some(CutCause::Shutdown) => FollowEnd::Stopped,
                    // These were not requested, so they count as failures.
                    Some(CutCause::Panic | CutCause::Restart) => FollowEnd::Turn(Outcome::Failed),
                    _ => FollowEnd::Turn(*outcome),
                });
            }
            Fact::Run(RunFact::Finished { end, .. }) if self.until == Until::Run => {
                self.ended = Some(FollowEnd::Run(*end))
            }
            // A handed-back prompt starts no turn.
            Fact::Prompt(PromptFact::Returned { prompt, .. })
                if self.is_followed_prompt(*prompt) =>
            {
                self.ended = Some(FollowEnd::Turn(Outcome::Interrupted));
            }
            // A session closed in the past was opened again.
            Fact::Session(SessionFact::Closed { .. }) if event.seq > replayed_to => {
                self.ended = Some(FollowEnd::Closed)
            }
            _ => {}
        }
        if self.ended.is_some() {
            self.end_seq = event.seq;
        }
    }

    /// The exit code. `signal` is the code of the signal that ended the work, if one did.
    pub(super) fn code(&self, signal: Option<i32>) -> i32 {
        match self.ended {
            Some(FollowEnd::Turn(Outcome::Done) | FollowEnd::Run(RunEnd::Done))
                if self.denied_unseen =>
            {
                DENIED_UNSEEN
            }
            Some(FollowEnd::Turn(Outcome::Done) | FollowEnd::Run(RunEnd::Done)) => 0,
            Some(
                FollowEnd::Turn(Outcome::Interrupted)
                | FollowEnd::Run(RunEnd::Interrupted | RunEnd::Closed)
                | FollowEnd::Closed
                | FollowEnd::Left,
            ) => signal.unwrap_or(INTERRUPTED),
            Some(
                FollowEnd::Turn(Outcome::Failed | Outcome::Panicked | Outcome::Limit)
                | FollowEnd::Stopped,
            )
            | None => FAILED,
        }
    }

    fn is_followed_prompt(&self, prompt: PromptId) -> bool {
        self.until == Until::Turn { prompt }
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_common::{AskId, AsksMode, Body, SessionId, Timestamp};

    use super::*;

    #[test]
    fn a_denial_by_a_setting_gives_the_work_its_own_exit_code() {
        let session: SessionId = "k3v9x2m7qa".parse().unwrap();
        let observe = |state: &mut FollowState, fact| {
            let body = Body::Fact(fact);
            state.observe(&Event { seq: 7, at: Timestamp(0), turn: None, step: None, body }, 0);
        };
        let by_setting = || AnsweredBy::Setting { asks: AsksMode::Deny };
        for (answer, code) in [
            (Answer::Deny { reason: None, always: false }, DENIED_UNSEEN),
            (Answer::Resume, 0),
            (Answer::Cancel, 0),
        ] {
            let mut state = FollowState::new(Until::Run);
            let ask = AskId { session: session.clone(), seq: 5 };
            observe(
                &mut state,
                Fact::Ask(AskFact::Answered { ask, answer, by: by_setting(), while_away: false }),
            );
            state.ended = Some(FollowEnd::Run(RunEnd::Done));
            assert_eq!(state.code(None), code);
        }
    }
}
