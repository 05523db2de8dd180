//! What answers and asks do.

use holdpoint_common::{
    Answer, AnswerError, AnsweredBy, Ask, AskCloseCause, AskId, AskOrigin, AskRequest, AsksMode, CallId, Fact, Hold,
    PauseKind, PauseResponse, QuestionResponse, TurnId, Who,
};
use holdpoint_tools::AskReply;

use super::Draft;
use crate::state::decision::{Effect, Refused, Reply};
use crate::state::{Phase, Settled};

impl Draft<'_> {
    pub(super) fn answer(&mut self, id: &AskId, answer: Answer, by: Who) -> Result<Reply, Refused> {
        let ours = id.session == *self.state.id();
        let Some(ask) = self.state.asks.iter().find(|ask| ours && ask.id == *id) else {
            let settled = self.state.settled.get(&id.seq).filter(|_| ours);
            return Err(Refused::Answer(match settled {
                Some(Settled::Answered(by)) => AnswerError::AlreadyAnswered { ask: id.clone(), by: by.clone() },
                Some(Settled::Closed(cause)) => AnswerError::Closed { ask: id.clone(), cause: *cause },
                None => AnswerError::Unknown { ask: id.clone() },
            }));
        };
        ask.request.accepts(&answer)?;
        // *Always* answers what stands behind it for the same reason, too.
        let always = ask.always.as_ref().filter(|_| matches!(answer, Answer::Approve { always: true }));
        let alike = |other: &&Ask| other.id != ask.id && always.is_some() && other.always.as_ref() == always;
        let answered: Vec<_> = std::iter::once(ask).chain(self.state.asks.iter().filter(alike)).cloned().collect();
        for ask in answered {
            self.settle_by(&ask, answer.clone(), AnsweredBy::Client(by.clone()));
        }
        // Its turn was kept over a restart and held with what waits: from now on it runs, up to its next boundary.
        if let Hold::Standing { cause, .. } = &self.state.hold {
            let hold = Hold::Requested { cause: cause.clone(), since: self.moment.now };
            self.facts.push(Fact::HoldChanged { hold });
        }
        Ok(Reply::Answered)
    }

    /// Answers an ask: its tool wakes, or its gate opens.
    pub(super) fn settle_by(&mut self, ask: &Ask, answer: Answer, by: AnsweredBy) {
        if ask.origin == AskOrigin::Tool {
            let reply = reply_to(&ask.request, &answer, &by);
            self.effects.push(Effect::Wake { ask: ask.id.clone(), reply });
        }
        self.facts.push(Fact::AskAnswered { ask: ask.id.clone(), answer, by });
    }

    pub(super) fn ask(&mut self, turn: TurnId, call: CallId, request: AskRequest) -> Reply {
        match &self.state.phase {
            Phase::Running(open) if open.id == turn && open.has_begun(call) => {
                Reply::Asked(self.raise(call, AskOrigin::Tool, request, None, false))
            }
            Phase::Idle | Phase::Running(_) | Phase::Interrupting(..) | Phase::Closed => Reply::AskRefused,
        }
    }

    /// Opens an ask; where the session has nobody to ask, it is answered in the same breath. What a rule may deny, only a
    /// person approves.
    pub(super) fn raise(
        &mut self,
        call: CallId,
        origin: AskOrigin,
        request: AskRequest,
        always: Option<String>,
        may_be_denied: bool,
    ) -> AskId {
        let id = AskId { session: self.state.id().clone(), seq: self.moment.next + self.facts.len() as u64 };
        let ask = Ask { id: id.clone(), call, origin, since: self.moment.now, request, always };
        self.facts.push(Fact::AskRaised { ask: ask.clone() });
        let asks = self.state.settings.asks;
        if let Some(answer) = answer_of_setting(asks, &ask.request, may_be_denied) {
            self.settle_by(&ask, answer, AnsweredBy::Setting { asks });
        }
        id
    }

    pub(super) fn close_asks(&mut self, cause: AskCloseCause) {
        for ask in &self.state.asks {
            self.facts.push(Fact::AskClosed { ask: ask.id.clone(), cause });
        }
    }
}

/// What a tool that waits is told.
pub(super) fn reply_to(request: &AskRequest, answer: &Answer, by: &AnsweredBy) -> AskReply {
    match (request, answer) {
        (AskRequest::Pause(_), Answer::Approve { .. }) => AskReply::Pause(PauseResponse::Approved),
        (AskRequest::Pause(_), Answer::Deny { reason }) => {
            let reason = match by {
                AnsweredBy::Client(_) => reason.clone(),
                AnsweredBy::Setting { asks } => Some(nobody(*asks)),
            };
            AskReply::Pause(PauseResponse::Denied { reason })
        }
        (AskRequest::Pause(_), Answer::Resume | Answer::Reply { .. } | Answer::Cancel) => {
            AskReply::Pause(PauseResponse::Resumed)
        }
        (AskRequest::Question(request), Answer::Reply { answers }) => {
            let place = |id: &str| request.questions.iter().position(|question| question.id == id);
            let mut replies = answers.clone();
            replies.sort_by_key(|reply| place(&reply.id));
            AskReply::Question(QuestionResponse::Replied { replies })
        }
        (AskRequest::Question(_), _) => AskReply::Question(match by {
            AnsweredBy::Client(_) => QuestionResponse::Declined,
            AnsweredBy::Setting { .. } => QuestionResponse::Unanswerable,
        }),
    }
}

/// How a session answers by itself; `None` where a person does.
pub(super) fn answer_of_setting(asks: AsksMode, request: &AskRequest, may_be_denied: bool) -> Option<Answer> {
    let approves = match asks {
        AsksMode::Wait => return None,
        AsksMode::Deny => false,
        AsksMode::Approve => !may_be_denied,
    };
    Some(match request {
        AskRequest::Question(_) => Answer::Cancel,
        AskRequest::Pause(pause) => match pause.kind {
            PauseKind::Continue => Answer::Resume,
            PauseKind::Confirm if approves => Answer::Approve { always: false },
            PauseKind::Confirm => Answer::Deny { reason: None },
        },
    })
}

/// What the model is told of a denied call.
pub(super) fn denial(reason: Option<&str>, by: &AnsweredBy) -> String {
    match (by, reason) {
        (AnsweredBy::Setting { asks }, _) => format!("denied: {}", nobody(*asks)),
        (AnsweredBy::Client(_), Some(reason)) => format!("the user denied this: {reason}"),
        (AnsweredBy::Client(_), None) => "the user denied this".to_owned(),
    }
}

/// Why a setting has denied it.
fn nobody(asks: AsksMode) -> String {
    let why = match asks {
        AsksMode::Approve => "a rule may deny it, which only a person can approve",
        AsksMode::Deny | AsksMode::Wait => "nobody is there to confirm it",
    };
    format!("{why} (asks = {asks})")
}
