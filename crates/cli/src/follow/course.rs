//! How what is followed goes: where it ends, and what of that is the exit code.

use holdpoint_common::{
    Answer, AnsweredBy, AskId, AskRequest, CutCause, Event, Fact, Outcome, PauseKind, PromptId, RunEnd, TurnId,
};

use crate::error::FAILED;

/// Done, but something was denied because nobody was there.
const DENIED_UNSEEN: i32 = 3;
/// Interrupted, by a key.
pub(super) const INTERRUPTED: i32 = 130;

/// How far a session is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// To the end of the turn of this prompt.
    Turn { prompt: PromptId },
    /// To the end of the run.
    Run,
    /// Until the user leaves.
    Left,
}

/// How following ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The turn ended.
    Turn(Outcome),
    /// The run ended.
    Run(RunEnd),
    /// The session was closed.
    Closed,
    /// The daemon was told to stop.
    Stopped,
    /// The user left it.
    Left,
}

/// What was seen of that which is followed.
#[derive(Debug)]
pub(super) struct Course {
    until: Until,
    /// The turn that is followed, once it has begun.
    turn: Option<TurnId>,
    /// The number of the event that told so.
    pub(super) begun_at: u64,
    /// The Confirms there were.
    confirms: Vec<AskId>,
    denied_unseen: bool,
    /// How it ended, once it has. What comes after that changes nothing.
    pub(super) ended: Option<Ended>,
    /// The number of the event that told so.
    pub(super) ended_at: u64,
}

impl Course {
    pub(super) fn new(until: Until) -> Self {
        Self { until, turn: None, begun_at: 0, confirms: Vec::new(), denied_unseen: false, ended: None, ended_at: 0 }
    }

    /// Whether it is followed until the user leaves.
    pub(super) fn is_left_at_will(&self) -> bool {
        self.until == Until::Left
    }

    /// Whether a run is followed.
    pub(super) fn follows_run(&self) -> bool {
        self.until == Until::Run
    }

    /// The turn that is followed, once it has begun.
    pub(super) fn turn(&self) -> Option<TurnId> {
        self.turn
    }

    /// Takes what happened. Up to `told_to` it had happened before it was followed.
    pub(super) fn note(&mut self, event: &Event, told_to: u64) {
        let (None, Some(fact)) = (self.ended, event.fact()) else { return };
        match fact {
            Fact::TurnStarted { turn, prompt } if self.is_its_prompt(*prompt) => {
                (self.turn, self.begun_at) = (Some(*turn), event.seq);
            }
            Fact::AskRaised { ask } => {
                if matches!(&ask.request, AskRequest::Pause(pause) if pause.kind == PauseKind::Confirm) {
                    self.confirms.push(ask.id.clone());
                }
            }
            Fact::AskAnswered { ask, answer, by } => {
                let unseen = matches!(by, AnsweredBy::Setting { .. }) && matches!(answer, Answer::Deny { .. });
                self.denied_unseen |= unseen && self.confirms.contains(ask);
            }
            Fact::TurnFinished { outcome, cause, .. } if event.turn.is_some() && event.turn == self.turn => {
                self.ended = Some(match cause {
                    Some(CutCause::Shutdown) => Ended::Stopped,
                    // Nobody has wanted that.
                    Some(CutCause::Panic | CutCause::Restart) => Ended::Turn(Outcome::Failed),
                    _ => Ended::Turn(*outcome),
                });
            }
            Fact::RunFinished { end, .. } if self.until == Until::Run => self.ended = Some(Ended::Run(*end)),
            // No turn will come of it.
            Fact::PromptReturned { prompt, .. } if self.is_its_prompt(*prompt) => {
                self.ended = Some(Ended::Turn(Outcome::Interrupted));
            }
            // One of the past was opened again.
            Fact::SessionClosed { .. } if event.seq > told_to => self.ended = Some(Ended::Closed),
            _ => {}
        }
        if self.ended.is_some() {
            self.ended_at = event.seq;
        }
    }

    /// The exit code, with that of the signal that has ended it, if one has.
    pub(super) fn code(&self, signal: Option<i32>) -> i32 {
        match self.ended {
            Some(Ended::Turn(Outcome::Done) | Ended::Run(RunEnd::Done)) if self.denied_unseen => DENIED_UNSEEN,
            Some(Ended::Turn(Outcome::Done) | Ended::Run(RunEnd::Done)) => 0,
            Some(
                Ended::Turn(Outcome::Interrupted)
                | Ended::Run(RunEnd::Interrupted | RunEnd::Closed)
                | Ended::Closed
                | Ended::Left,
            ) => signal.unwrap_or(INTERRUPTED),
            Some(Ended::Turn(Outcome::Failed | Outcome::Panicked | Outcome::Limit) | Ended::Stopped) | None => FAILED,
        }
    }

    fn is_its_prompt(&self, prompt: PromptId) -> bool {
        self.until == Until::Turn { prompt }
    }
}
