//! A machine on the bench, which numbers, applies and keeps facts as the actor does.

use std::sync::Arc;

use holdpoint_common::api::RunRequest;
use holdpoint_common::{
    AskFact, AskId, AskRequest, AsksMode, AssistantMessage, Block, BlockKind, Body, CallId, Delta,
    EndedProcesses, Event, Fact, ItemId, JobEnd, Limits, Outcome, PauseKind, PauseRequest,
    PolicyMode, Question, QuestionRequest, Refused, RefusedClient, RestoreCause, RunLimits,
    SandboxSettings, SessionFact, SessionId, SessionSettings, TaskRequest, TaskState, Timestamp,
    ToolCall, ToolResult, ToolStatus, TurnId, Usage, Who,
};
use holdpoint_session::state::{Clearance, Confirm, Gate, Moment, Report, State};

use super::input::{Decision, Input, decide};

/// The longest accepted prompt, in bytes.
pub(super) const LONGEST: usize = 64;

pub(super) struct Bench {
    pub(super) state: State,
    /// All facts so far.
    pub(super) log: Vec<Arc<Event>>,
    /// The number of the next event.
    pub(super) next: u64,
    pub(super) now: u64,
    pub(super) limits: Limits,
}

impl Bench {
    pub(super) fn open(asks: AsksMode, max_queued_prompts: usize) -> Self {
        let settings = SessionSettings {
            id: session("bench"),
            name: "bench".to_owned(),
            workspace: "/w".to_owned(),
            model: "rehearsal".to_owned(),
            agent: None,
            asks,
            policy: PolicyMode::Ask,
            rules: holdpoint_common::PolicyRules::default(),
            sandbox: SandboxSettings::off(),
            max_steps: 0,
            max_turn_tokens: 0,
        };
        let body = Body::Fact(Fact::Session(SessionFact::Opened { settings }));
        let first = Arc::new(Event { seq: 1, at: Timestamp(1), turn: None, step: None, body });
        let state = State::open(&first).expect("the first fact opens the session");
        let limits = Limits { max_queued_prompts, max_prompt_bytes: LONGEST, ..Limits::default() };
        Self { state, log: vec![first], next: 2, now: 1, limits }
    }

    pub(super) fn moment(&self) -> Moment<'_> {
        Moment { now: Timestamp(self.now), next: self.next, limits: &self.limits, fixed_bytes: 0 }
    }

    /// Processes an input as the actor does. A change of status uses a number, too, for its delta.
    pub(super) fn take(&mut self, input: Input) -> Result<Decision, Refused> {
        self.now += 1;
        let decision = decide(&self.state, self.moment(), input)?;
        let before = self.state.status();
        for fact in &decision.facts {
            let event = self.number(fact.clone());
            self.state.apply(&event);
            self.log.push(event);
        }
        if self.state.status() != before {
            self.next += 1;
        }
        Ok(decision)
    }

    fn number(&mut self, fact: Fact) -> Arc<Event> {
        let (turn, step) = self.state.turn_and_step(&fact);
        let event =
            Event { seq: self.next, at: Timestamp(self.now), turn, step, body: Body::Fact(fact) };
        self.next += 1;
        Arc::new(event)
    }

    /// Processes inputs that must not be refused.
    pub(super) fn with(mut self, inputs: impl IntoIterator<Item = Input>) -> Self {
        for input in inputs {
            if let Err(refused) = self.take(input.clone()) {
                panic!("{input:?} was refused: {refused}");
            }
        }
        self
    }

    /// The newest ask.
    pub(super) fn last_ask(&self) -> Option<AskId> {
        self.log.iter().rev().find_map(|event| match event.fact() {
            Some(Fact::Ask(AskFact::Raised { ask })) => Some(ask.id.clone()),
            _ => None,
        })
    }
}

pub(super) fn session(id: &str) -> SessionId {
    id.parse().expect("a session id")
}

pub(super) fn ask_id(seq: u64) -> AskId {
    AskId { session: session("bench"), seq }
}

pub(super) fn ann() -> Who {
    Who::named("ann")
}

pub(super) fn ben() -> Who {
    Who::named("ben")
}

pub(super) fn prompt(text: &str) -> Input {
    Input::Prompt { text: text.to_owned(), by: ann() }
}

/// A run with one task and at most this many iterations at a time.
pub(super) fn run(iterations: u64) -> Input {
    let limits =
        RunLimits { iterations: std::num::NonZeroU64::new(iterations), ..RunLimits::default() };
    let tasks = vec!["first".to_owned()];
    Input::Run { request: RunRequest { tasks, limits, ..RunRequest::new("a goal") }, by: ann() }
}

pub(super) fn tasks(turn: u64, call: u64, request: TaskRequest) -> Input {
    Input::Tasks { turn: TurnId(turn), call: CallId(call), request }
}

pub(super) fn add_task(title: &str) -> TaskRequest {
    TaskRequest::Add { titles: vec![title.to_owned()] }
}

/// Moves the task that is next in line for this state.
pub(super) fn next_task(to: TaskState) -> TaskRequest {
    TaskRequest::Move { task: None, to }
}

pub(super) fn pause(kind: PauseKind) -> PauseRequest {
    PauseRequest { kind, tool_name: "web".to_owned(), message: "look".to_owned(), details: None }
}

pub(super) fn question() -> AskRequest {
    let question = Question {
        id: "q".to_owned(),
        header: "Q".to_owned(),
        question: "?".to_owned(),
        options: vec![],
    };
    AskRequest::Question(QuestionRequest {
        tool_name: "ask_user".to_owned(),
        questions: vec![question],
    })
}

pub(super) fn gate(turn: u64, gate: Gate) -> Input {
    Input::Gate { turn: TurnId(turn), gate }
}

pub(super) fn allow(call: u64) -> Gate {
    allow_key(call, None)
}

/// A call that the policy allows, with the key that *always* would remember.
pub(super) fn allow_key(call: u64, rule: Option<&str>) -> Gate {
    let always = rule.map(str::to_owned);
    Gate::Tool { call: CallId(call), clearance: Clearance::Allow { always } }
}

/// A call that the policy wants confirmed; *always* would remember `rule`.
pub(super) fn confirm(call: u64, rule: Option<&str>) -> Gate {
    let PauseRequest { tool_name, message, details, .. } = pause(PauseKind::Confirm);
    let confirm = Confirm {
        tool_name,
        message,
        details,
        always: rule.map(str::to_owned),
        may_be_denied: false,
    };
    Gate::Tool { call: CallId(call), clearance: Clearance::Ask(confirm) }
}

/// The same for a call that a rule may deny.
pub(super) fn confirm_deniable(call: u64) -> Gate {
    match confirm(call, None) {
        Gate::Tool { call, clearance: Clearance::Ask(confirm) } => Gate::Tool {
            call,
            clearance: Clearance::Ask(Confirm { may_be_denied: true, ..confirm }),
        },
        gate => gate,
    }
}

pub(super) fn ask(turn: u64, call: u64, request: AskRequest) -> Input {
    Input::Ask { turn: TurnId(turn), call: CallId(call), request }
}

pub(super) fn refused_client() -> Input {
    let (program, request) = ("curl".to_owned(), "POST /v1/asks/a.1/answer".to_owned());
    Input::ClientRefused(RefusedClient { pid: 7, program, request })
}

pub(super) fn job_started(turn: u64, call: u64) -> Input {
    Input::JobStarted { turn: TurnId(turn), call: CallId(call), command: "serve".to_owned() }
}

pub(super) fn job_ended(job: u64) -> Input {
    Input::JobEnded { job: CallId(job), end: JobEnd::Exited { code: 0 } }
}

pub(super) fn report(turn: u64, report: Report) -> Input {
    Input::Report { turn: TurnId(turn), report }
}

/// An answer of one block and some calls, with ids from `first` on.
pub(super) fn answer(first: u64, calls: u64) -> AssistantMessage {
    let block = Block {
        item: ItemId(first),
        kind: BlockKind::Text,
        text: format!("block {first}"),
        signature: None,
        calls_before: 0,
    };
    let call = |n| ToolCall {
        id: CallId(first + n),
        provider_id: None,
        name: "shell".to_owned(),
        input: serde_json::json!({ "command": "true" }),
        signature: None,
    };
    AssistantMessage {
        blocks: vec![block],
        calls: (1..=calls).map(call).collect(),
        ..AssistantMessage::default()
    }
}

/// Restores a session without a saved draft.
pub(super) fn restored(cause: RestoreCause) -> Input {
    Input::Restored { cause, draft: vec![] }
}

/// A piece of an answer that was still streaming.
pub(super) fn piece(turn: u64, step: u32, item: u64) -> Arc<Event> {
    let body = Body::Delta(Delta::Text { item: ItemId(item), text: "half a".to_owned() });
    Arc::new(Event {
        seq: 1_000_000,
        at: Timestamp(1),
        turn: Some(TurnId(turn)),
        step: Some(step),
        body,
    })
}

pub(super) fn tool_finished(call: u64) -> Report {
    Report::ToolFinished(ToolResult::not_run(CallId(call), ToolStatus::Ok, "fine"))
}

pub(super) fn step_finished() -> Report {
    let usage = Usage { input: 10, output: 1, ..Usage::default() };
    Report::StepFinished { usage, context: None, refused: false, omitted: None }
}

pub(super) fn finished(outcome: Outcome) -> Report {
    let error = (outcome == Outcome::Failed).then(|| "no".to_owned());
    Report::Finished { outcome, error, tools: vec![], processes: EndedProcesses::default() }
}
