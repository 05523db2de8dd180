//! All inputs of the machine in one type, and all replies in another, for histories and tables.

use std::sync::Arc;

use holdpoint_common::api::{
    AnswerRequest, AsksRequest, ChangeModelRequest, CloseRequest, DebugRequest, HoldRequest,
    InterruptReply, InterruptRequest, PolicyRequest, PromptRequest, Prompted, ReleaseRequest,
    RenameRequest, RunRequest, RunStarted, ToggleRequest, UnqueueRequest, Verb,
};
use holdpoint_common::{
    Answer, AskId, AskRequest, AsksMode, CallId, Event, Hold, HoldState, IdempotencyKey, JobEnd,
    PolicyMode, PromptId, Refused, RefusedClient, RestoreCause, TaskRequest, TurnId, Who,
};
use holdpoint_session::state::{
    self, AnswerAway, ByClient, ChangeTasks, Decide, Gate, GateReply, HandOver, Handover, JobEnded,
    JobStarted, Moment, PassGate, RaiseAsk, Reception, Report, Restore, RunnerReport, Shutdown,
    State, WaitOver, WithdrawAsk,
};

pub(super) type Decision = state::Decision<Reply>;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Input {
    Prompt { text: String, by: Who },
    KeyedPrompt { text: String, key: IdempotencyKey, by: Who },
    Unqueue { prompt: PromptId, by: Who },
    Run { request: RunRequest, by: Who },
    WaitOver { turn: TurnId },
    Answer { ask: AskId, answer: Answer, by: Who },
    AnswerAway { ask: AskId, answer: Answer, by: Who },
    Interrupt { turn: Option<TurnId>, by: Who },
    Hold { by: Who },
    Release,
    Toggle { shown: HoldState, by: Who },
    Rename { name: String, by: Who },
    Move { workspace: String, by: Who },
    Model { model: String, by: Who },
    Debug { enabled: bool, by: Who },
    ClientRefused(RefusedClient),
    Asks { asks: AsksMode, by: Who },
    Policy { policy: PolicyMode, by: Who },
    Close { unused_since: Option<u64>, by: Who },
    Shutdown,
    Ask { turn: TurnId, call: CallId, request: AskRequest },
    Withdraw { ask: AskId },
    Tasks { turn: TurnId, call: CallId, request: TaskRequest },
    JobStarted { turn: TurnId, call: CallId, command: String },
    JobEnded { job: CallId, end: JobEnd },
    Gate { turn: TurnId, gate: Gate },
    Report { turn: TurnId, report: Report },
    Restored { cause: RestoreCause, draft: Vec<Arc<Event>> },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reply {
    Prompted { prompt: PromptId, position: usize },
    Unqueued,
    RunStarted { turn: Option<TurnId> },
    Answered,
    Interrupting { turn: TurnId },
    RunInterrupted,
    NotRunning,
    Hold(Hold),
    Renamed,
    Handover(Handover),
    Closing,
    Stopping,
    Asked(AskId),
    AskRefused,
    Gate(GateReply),
    Noted,
    Stale,
}

/// Decides any input.
pub(super) fn decide(state: &State, moment: Moment<'_>, input: Input) -> Result<Decision, Refused> {
    let runner = |reception| match reception {
        Reception::Noted => Reply::Noted,
        Reception::Stale => Reply::Stale,
    };
    let at = Machine { state, moment };
    match input {
        Input::Prompt { text, by } => at.prompt(text.into(), by),
        Input::KeyedPrompt { text, key, by } => {
            at.prompt(PromptRequest { idempotency_key: Some(key), ..text.into() }, by)
        }
        Input::Unqueue { prompt, by } => {
            at.verb(UnqueueRequest { prompt }, by, |_| Reply::Unqueued)
        }
        Input::Run { request, by } => {
            at.verb(request, by, |RunStarted { turn, .. }| Reply::RunStarted { turn })
        }
        Input::WaitOver { turn } => at.input(WaitOver { turn }, runner),
        Input::Answer { ask, answer, by } => {
            at.verb(AnswerRequest { ask, answer }, by, |_| Reply::Answered)
        }
        Input::AnswerAway { ask, answer, by } => {
            let verb = AnswerRequest { ask, answer };
            at.input(AnswerAway(&ByClient { verb, by }), |()| Reply::Answered)
        }
        Input::Interrupt { turn, by } => at.verb(
            InterruptRequest { turn, no_wait: false },
            by,
            |InterruptReply { turn, run, .. }| match turn {
                Some(turn) => Reply::Interrupting { turn },
                None if run => Reply::RunInterrupted,
                None => Reply::NotRunning,
            },
        ),
        Input::Hold { by } => at.verb(HoldRequest {}, by, Reply::Hold),
        Input::Release => at.verb(ReleaseRequest {}, Who::named("ann"), Reply::Hold),
        Input::Toggle { shown, by } => at.verb(ToggleRequest { shown }, by, Reply::Hold),
        Input::Rename { name, by } => at.verb(RenameRequest { name }, by, |()| Reply::Renamed),
        Input::Move { workspace, by } => {
            at.input(&HandOver { machine: None, workspace, by }, Reply::Handover)
        }
        Input::Model { model, by } => {
            at.verb(ChangeModelRequest { model, supplies: None }, by, |()| Reply::Noted)
        }
        Input::Debug { enabled, by } => at.verb(DebugRequest { enabled }, by, |()| Reply::Noted),
        Input::ClientRefused(refused) => at.input(refused, |()| Reply::Noted),
        Input::Asks { asks, by } => at.verb(AsksRequest { asks }, by, |()| Reply::Noted),
        Input::Policy { policy, by } => at.verb(PolicyRequest { policy }, by, |()| Reply::Noted),
        Input::Close { unused_since, by } => {
            at.verb(CloseRequest { unused_since }, by, |()| Reply::Closing)
        }
        Input::Shutdown => at.input(Shutdown, |()| Reply::Stopping),
        Input::Ask { turn, call, request } => {
            at.input(RaiseAsk { turn, call, request, may_be_denied: false }, |ask| match ask {
                Some(ask) => Reply::Asked(ask),
                None => Reply::AskRefused,
            })
        }
        Input::Withdraw { ask } => at.input(WithdrawAsk { ask }, runner),
        Input::Tasks { turn, call, request } => {
            at.input(ChangeTasks { turn, call, request }, runner)
        }
        Input::JobStarted { turn, call, command } => {
            at.input(JobStarted { turn, call, command }, runner)
        }
        Input::JobEnded { job, end } => at.input(JobEnded { job, end }, runner),
        Input::Gate { turn, gate } => at.input(PassGate { turn, gate }, Reply::Gate),
        Input::Report { turn, report } => at.input(RunnerReport { turn, report }, runner),
        Input::Restored { cause, draft } => at.input(Restore { cause, draft }, |()| Reply::Noted),
    }
}

struct Machine<'a> {
    state: &'a State,
    moment: Moment<'a>,
}

impl Machine<'_> {
    fn input<I: state::Input>(
        &self,
        input: I,
        reply: impl Fn(I::Reply) -> Reply,
    ) -> Result<Decision, Refused> {
        let state::Decision { facts, effects, reply: typed } =
            state::decide(self.state, self.moment, input)?;
        Ok(Decision { facts, effects, reply: reply(typed) })
    }

    fn verb<V: Decide>(
        &self,
        verb: V,
        by: Who,
        reply: impl Fn(<V as Verb>::Reply) -> Reply,
    ) -> Result<Decision, Refused> {
        self.input(&ByClient { verb, by }, reply)
    }

    fn prompt(&self, prompt: PromptRequest, by: Who) -> Result<Decision, Refused> {
        self.verb(prompt, by, |Prompted { prompt, position, .. }| Reply::Prompted {
            prompt,
            position,
        })
    }
}
