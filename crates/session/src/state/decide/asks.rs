//! Decisions on asks and their answers.

use holdpoint_common::api::{AnswerRequest, Answered, AsksRequest};
use holdpoint_common::{
    Answer, AnswerError, AnsweredBy, Ask, AskCloseCause, AskFact, AskId, AskOrigin, AskRequest,
    AsksMode, CallId, Hold, PauseKind, PauseResponse, QuestionResponse, Refused, SessionFact, Who,
};
use holdpoint_tools::AskReply;

use super::DecisionBuilder;
use crate::state::decision::{Effect, Reception};
use crate::state::input::{AnswerAway, ByClient, Decide, Input, RaiseAsk, WithdrawAsk};
use crate::state::{Phase, Settled};

impl Decide for AnswerRequest {
    fn decide(&self, by: &Who, builder: &mut DecisionBuilder<'_>) -> Result<Answered, Refused> {
        for ask in builder.answered_by(self)? {
            builder.settle_by(ask, self.answer.clone(), AnsweredBy::Client(by.clone()));
        }
        builder.continue_to_boundary();
        Ok(Answered { ask: self.ask.clone(), saved: false, home: None })
    }
}

impl Input for AnswerAway<'_> {
    type Reply = ();

    fn decide(self, builder: &mut DecisionBuilder<'_>) -> Result<(), Refused> {
        let Self(ByClient { verb, by }) = self;
        let answered = builder.answered_by(verb)?;
        // Before the answers: the first opening continues a turn that is as they leave it.
        builder.continue_to_boundary();
        for ask in answered {
            let (ask, answer) = (ask.id.clone(), verb.answer.clone());
            let by = AnsweredBy::Client(by.clone());
            builder.record(AskFact::Answered { ask, answer, by, while_away: true });
        }
        Ok(())
    }
}

impl Input for RaiseAsk {
    type Reply = Option<AskId>;

    fn decide(self, builder: &mut DecisionBuilder<'_>) -> Result<Option<AskId>, Refused> {
        match &builder.state.phase {
            Phase::Running(open) if open.id == self.turn && open.has_begun(self.call) => {
                let Self { call, request, may_be_denied, .. } = self;
                // Only a policy Confirm can have a key for *always*.
                Ok(Some(builder.raise(call, AskOrigin::Tool, request, None, may_be_denied)))
            }
            Phase::Idle | Phase::Running(_) | Phase::Interrupting(..) | Phase::Closed => Ok(None),
        }
    }
}

impl Input for WithdrawAsk {
    type Reply = Reception;

    fn decide(self, builder: &mut DecisionBuilder<'_>) -> Result<Reception, Refused> {
        let is_of_tool = |ask: &&Ask| ask.id == self.ask && ask.origin == AskOrigin::Tool;
        if !builder.state.asks.iter().any(|ask| is_of_tool(&ask)) {
            return Ok(Reception::Stale);
        }
        builder.record(AskFact::Closed { ask: self.ask, cause: AskCloseCause::Withdrawn });
        Ok(Reception::Noted)
    }
}

impl Decide for AsksRequest {
    fn decide(&self, by: &Who, builder: &mut DecisionBuilder<'_>) -> Result<(), Refused> {
        builder.check_open()?;
        let asks = self.asks;
        if builder.state.settings.asks == asks {
            return Ok(());
        }
        builder.record(SessionFact::AsksChanged { asks, by: by.clone() });
        let open = builder.state.asks.iter();
        let answered: Vec<_> =
            open.filter_map(|ask| Some((ask, answer_of_setting(asks, ask)?))).collect();
        for (ask, answer) in &answered {
            builder.settle_by(ask, answer.clone(), AnsweredBy::Setting { asks });
        }
        if !answered.is_empty() {
            builder.continue_to_boundary();
        }
        Ok(())
    }
}

impl<'a> DecisionBuilder<'a> {
    /// The open asks that an answer is for. *Always* also answers every other open ask with the same
    /// key.
    fn answered_by(&self, request: &AnswerRequest) -> Result<Vec<&'a Ask>, Refused> {
        let AnswerRequest { ask: id, answer } = request;
        let state = self.state;
        let is_ours = id.session == *state.id();
        let Some(ask) = state.asks.iter().find(|ask| is_ours && ask.id == *id) else {
            let settled = state.settled.get(&id.seq).filter(|_| is_ours);
            return Err(Refused::Answer(match settled {
                Some(Settled::Answered(by)) => {
                    AnswerError::AlreadyAnswered { ask: id.clone(), by: by.clone() }
                }
                Some(Settled::Closed(cause)) => {
                    AnswerError::Closed { ask: id.clone(), cause: *cause }
                }
                None => AnswerError::Unknown { ask: id.clone() },
            }));
        };
        ask.request.accepts(answer)?;
        let always = ask.always.as_ref().filter(|_| answer.is_always());
        let has_same_key = |other: &&Ask| {
            other.id != ask.id && always.is_some() && other.always.as_ref() == always
        };
        Ok(std::iter::once(ask).chain(state.asks.iter().filter(has_same_key)).collect())
    }
}

impl DecisionBuilder<'_> {
    /// Lets a turn with an answered ask run to its next boundary, if the turn was kept over a
    /// restart and is held.
    fn continue_to_boundary(&mut self) {
        if let Hold::Standing { cause, .. } = &self.state.hold {
            let hold = Hold::Requested { cause: cause.clone(), since: self.moment.now };
            self.record(SessionFact::HoldChanged { hold });
        }
    }

    /// Answers an ask. A tool's ask wakes the tool; a policy Confirm opens the gate of its call.
    pub(super) fn settle_by(&mut self, ask: &Ask, answer: Answer, by: AnsweredBy) {
        if ask.origin == AskOrigin::Tool {
            let reply = reply_to(&ask.request, &answer, &by);
            self.effects.push(Effect::Wake { ask: ask.id.clone(), reply });
        }
        self.record(AskFact::Answered { ask: ask.id.clone(), answer, by, while_away: false });
    }

    /// Raises an ask. If the asks mode answers by itself, the same decision also answers it. A call
    /// that a rule may deny is approved only by a person.
    pub(super) fn raise(
        &mut self,
        call: CallId,
        origin: AskOrigin,
        request: AskRequest,
        always: Option<String>,
        may_be_denied: bool,
    ) -> AskId {
        let id = AskId {
            session: self.state.id().clone(),
            seq: self.moment.next + self.facts.len() as u64,
        };
        let since = self.moment.now;
        let ask = Ask { id: id.clone(), call, origin, since, request, always, may_be_denied };
        self.record(AskFact::Raised { ask: ask.clone() });
        let asks = self.state.settings.asks;
        if let Some(answer) = answer_of_setting(asks, &ask) {
            self.settle_by(&ask, answer, AnsweredBy::Setting { asks });
        }
        id
    }

    pub(super) fn close_asks(&mut self, cause: AskCloseCause) {
        for ask in &self.state.asks {
            self.record(AskFact::Closed { ask: ask.id.clone(), cause });
        }
    }
}

/// The reply that a waiting tool receives.
pub(super) fn reply_to(request: &AskRequest, answer: &Answer, by: &AnsweredBy) -> AskReply {
    match (request, answer) {
        (AskRequest::Pause(_), Answer::Approve { .. }) => AskReply::Pause(PauseResponse::Approved),
        (AskRequest::Pause(_), Answer::Deny { reason, .. }) => {
            let reason = match by {
                AnsweredBy::Client(_) => reason.clone(),
                AnsweredBy::Setting { asks } => Some(asks_mode_reason(*asks)),
            };
            AskReply::Pause(PauseResponse::Denied { reason })
        }
        (AskRequest::Pause(_), Answer::Resume | Answer::Reply { .. } | Answer::Cancel) => {
            AskReply::Pause(PauseResponse::Resumed)
        }
        (AskRequest::Question(request), Answer::Reply { answers }) => {
            let position =
                |id: &str| request.questions.iter().position(|question| question.id == id);
            let mut replies = answers.clone();
            replies.sort_by_key(|reply| position(&reply.id));
            AskReply::Question(QuestionResponse::Replied { replies })
        }
        (AskRequest::Question(_), _) => AskReply::Question(match by {
            AnsweredBy::Client(_) => QuestionResponse::Declined,
            AnsweredBy::Setting { .. } => QuestionResponse::Unanswerable,
        }),
    }
}

/// The answer that the asks mode gives by itself; `None` if a person answers.
fn answer_of_setting(asks: AsksMode, ask: &Ask) -> Option<Answer> {
    let approves = match asks {
        AsksMode::Wait => return None,
        AsksMode::Deny => false,
        AsksMode::Approve => !ask.may_be_denied,
    };
    Some(match &ask.request {
        AskRequest::Question(_) => Answer::Cancel,
        AskRequest::Pause(pause) => match pause.kind {
            PauseKind::Continue => Answer::Resume,
            PauseKind::Confirm if approves => Answer::Approve { always: false },
            PauseKind::Confirm => Answer::Deny { reason: None, always: false },
        },
    })
}

/// The text that the model receives for a denied call. `always` is whether the denial also applies to
/// later calls with the same key.
pub(in crate::state) fn denial(reason: Option<&str>, always: bool, by: &AnsweredBy) -> String {
    match by {
        AnsweredBy::Client(_) => denial_by_user(reason, always),
        AnsweredBy::Setting { asks } => denial_by_setting(*asks),
    }
}

/// The text that the model receives for a call that the asks mode denies.
pub(super) fn denial_by_setting(asks: AsksMode) -> String {
    format!("denied: {}", asks_mode_reason(asks))
}

/// The text that the model receives for a call that the user denies.
pub(super) fn denial_by_user(reason: Option<&str>, always: bool) -> String {
    let scope = if always { " for the whole session" } else { "" };
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("the user denied this{scope}{reason}")
}

/// The reason for a denial by the asks mode.
fn asks_mode_reason(asks: AsksMode) -> String {
    let why = match asks {
        AsksMode::Approve => "a rule may deny it, so only a person can approve it",
        AsksMode::Deny | AsksMode::Wait => "no user is available to confirm it",
    };
    format!("{why} (asks = {asks})")
}
