//! Properties of every history: the machine's part of the invariants and of docs/spec.md.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use holdpoint_common::{
    Answer, AnswerError, AnsweredBy, AskCloseCause, AskFact, AskId, AskOrigin, AskRequest,
    AsksMode, BlockKind, Body, CallId, CutCause, Delta, Event, Fact, FileMark, Hold, HoldCause,
    HoldState, ItemId, JobFact, LastTurn, Outcome, PromptFact, PromptId, Question, QuestionReply,
    QuestionRequest, QuestionResponse, Refused, RestoreCause, RunFact, SessionFact, SessionStatus,
    Snapshot, StopHow, Timestamp, ToolFact, ToolResult, ToolStatus, TurnFact, TurnId, Usage,
};
use holdpoint_session::history;
use holdpoint_session::model::Message;
use holdpoint_session::state::{
    CallStage, Clearance, Confirm, Cut, Effect, Gate, GateReply, Moment, Phase, Report, State,
    Turn, UnreadPart,
};
use holdpoint_tools::AskReply;

use super::bench::{
    Bench, allow, ann, answer, ask, ben, confirm, finished, gate, piece, prompt, report, restored,
};
use super::input::{Decision, Input, Reply, decide};
use super::stories::{Property, ROOM, StepOfHistory, check_property, ensure};

// ---- the status

/// The status that the facts alone imply.
#[derive(Default)]
struct Status {
    /// How many asks are open, by the facts.
    asks: usize,
    held: bool,
    in_turn: bool,
    cut: bool,
    in_run: bool,
    closed: bool,
}

impl Status {
    fn note(&mut self, fact: &Fact) {
        match fact {
            Fact::Turn(TurnFact::Started { .. }) | Fact::Run(RunFact::IterationStarted { .. }) => {
                (self.in_turn, self.cut) = (true, false)
            }
            Fact::Turn(TurnFact::Cut { .. }) => self.cut = true,
            Fact::Turn(TurnFact::Finished { .. }) => (self.in_turn, self.cut) = (false, false),
            Fact::Run(RunFact::Started { .. }) => self.in_run = true,
            Fact::Run(RunFact::Finished { .. }) => self.in_run = false,
            Fact::Session(SessionFact::HoldChanged { hold }) => {
                self.held = matches!(hold, Hold::Standing { .. })
            }
            Fact::Ask(AskFact::Raised { .. }) => self.asks += 1,
            Fact::Ask(AskFact::Answered { .. } | AskFact::Closed { .. }) => self.asks -= 1,
            Fact::Session(SessionFact::Closed { .. }) => self.closed = true,
            Fact::Session(SessionFact::Restored { .. }) => self.closed = false,
            _ => {}
        }
    }

    fn status(&self) -> SessionStatus {
        match self {
            Self { closed: true, .. } => SessionStatus::Idle,
            Self { in_turn: true, cut: true, .. } => SessionStatus::Interrupted,
            Self { asks: 1.., .. } | Self { held: true, .. } => SessionStatus::Paused,
            Self { in_turn: true, .. } | Self { in_run: true, .. } => SessionStatus::Running,
            _ => SessionStatus::Idle,
        }
    }
}

impl Property for Status {
    fn open(_: &Bench) -> Self {
        Self::default()
    }

    fn see(&mut self, seen: &StepOfHistory<'_>) -> Result<(), String> {
        for (_, fact) in seen.facts() {
            self.note(fact);
        }
        let (expected, actual) = (self.status(), seen.after().status());
        ensure!(actual == expected, "the status is {actual}, the facts imply {expected}");
        Ok(())
    }
}

#[test]
fn m_a1_the_status_follows_from_the_facts() {
    check_property::<Status>();
}

// ---- asks

#[derive(Default)]
struct Asks {
    open: Vec<AskId>,
    over: BTreeSet<AskId>,
}

impl Property for Asks {
    fn open(_: &Bench) -> Self {
        Self::default()
    }

    fn see(&mut self, seen: &StepOfHistory<'_>) -> Result<(), String> {
        for (event, fact) in seen.facts() {
            match fact {
                Fact::Ask(AskFact::Raised { ask }) => {
                    ensure!(
                        ask.id.seq == event.seq,
                        "{} was raised by event {}",
                        ask.id,
                        event.seq
                    );
                    ensure!(
                        ask.id.session == *seen.after().id(),
                        "{} is of another session",
                        ask.id
                    );
                    ensure!(event.turn.is_some(), "{} was raised outside of a turn", ask.id);
                    ensure!(
                        !self.over.contains(&ask.id) && !self.open.contains(&ask.id),
                        "{} came again",
                        ask.id
                    );
                    self.open.push(ask.id.clone());
                }
                Fact::Ask(AskFact::Answered { ask, .. } | AskFact::Closed { ask, .. }) => {
                    let at = self.open.iter().position(|open| open == ask);
                    let Some(at) = at else { return Err(format!("{ask} ended but was not open")) };
                    self.over.insert(self.open.remove(at));
                }
                Fact::Turn(TurnFact::Finished { .. }) => {
                    ensure!(self.open.is_empty(), "a turn ended with open asks {:?}", self.open)
                }
                _ => {}
            }
        }
        let state = seen.after();
        ensure!(state.asks().iter().map(|ask| &ask.id).eq(&self.open), "open are {:?}", self.open);
        if !self.open.is_empty() {
            ensure!(
                matches!(state.phase(), Phase::Running(_)),
                "asks are open in {:?}",
                state.phase()
            );
            ensure!(
                state.status() == SessionStatus::Paused,
                "asks are open and it is {}",
                state.status()
            );
        }
        Ok(())
    }
}

#[test]
fn invariant_1_asks_are_open_only_in_a_turn_and_close_once() {
    check_property::<Asks>();
}

/// How each ask ended, by its facts.
#[derive(Default)]
struct SecondAnswers {
    over: Vec<(AskId, Result<AnsweredBy, AskCloseCause>)>,
}

impl Property for SecondAnswers {
    fn open(_: &Bench) -> Self {
        Self::default()
    }

    fn see(&mut self, seen: &StepOfHistory<'_>) -> Result<(), String> {
        for (_, fact) in seen.facts() {
            match fact {
                Fact::Ask(AskFact::Answered { ask, by, .. }) => {
                    self.over.push((ask.clone(), Ok(by.clone())))
                }
                Fact::Ask(AskFact::Closed { ask, cause }) => {
                    self.over.push((ask.clone(), Err(*cause)))
                }
                _ => {}
            }
        }
        let state = seen.after();
        let try_answer = |ask: &AskId, answer: Answer| {
            decide(
                state,
                seen.bench.moment(),
                Input::Answer { ask: ask.clone(), answer, by: ben() },
            )
        };
        // The first ask and the last few: an ended ask stays ended.
        for (ask, how) in self.over.iter().take(1).chain(self.over.iter().rev().take(3)) {
            let expected = match how {
                Ok(by) => AnswerError::AlreadyAnswered { ask: ask.clone(), by: by.clone() },
                Err(cause) => AnswerError::Closed { ask: ask.clone(), cause: *cause },
            };
            let result = try_answer(ask, Answer::Approve { always: true });
            ensure!(
                result == Err(Refused::Answer(expected)),
                "a second answer to {ask} got {result:?}"
            );
        }
        for ask in state.asks() {
            let result =
                try_answer(&ask.id, wrong_kind(ask.request.accepts(&Answer::Resume).is_ok()));
            let mismatch = matches!(result, Err(Refused::Answer(AnswerError::KindMismatch { .. })));
            ensure!(mismatch, "an answer of the wrong kind to {} got {result:?}", ask.id);
        }
        Ok(())
    }
}

/// An answer of the wrong kind, for a Continue or for any other ask.
fn wrong_kind(is_continue: bool) -> Answer {
    if is_continue { Answer::Approve { always: false } } else { Answer::Resume }
}

#[test]
fn m_a5_a_second_answer_reports_who_answered_or_why_it_closed() {
    check_property::<SecondAnswers>();
}

/// Waiting tools are woken once each, and only by an answer.
#[derive(Default)]
struct Waking;

impl Property for Waking {
    fn open(_: &Bench) -> Self {
        Self
    }

    fn see(&mut self, seen: &StepOfHistory<'_>) -> Result<(), String> {
        let Ok(decision) = seen.outcome else { return Ok(()) };
        let raised: Vec<_> = seen
            .facts()
            .filter_map(|(_, fact)| match fact {
                Fact::Ask(AskFact::Raised { ask }) => Some(ask),
                _ => None,
            })
            .collect();
        let of_tool = |id: &&AskId| {
            let ask =
                seen.before.asks().iter().chain(raised.iter().copied()).find(|ask| ask.id == **id);
            ask.is_some_and(|ask| ask.origin == AskOrigin::Tool)
        };
        let answered: Vec<_> = seen
            .facts()
            .filter_map(|(_, fact)| match fact {
                Fact::Ask(AskFact::Answered { ask, .. }) => Some(ask),
                _ => None,
            })
            .filter(of_tool)
            .collect();
        let woken: Vec<_> = decision
            .effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Wake { ask, .. } => Some(ask),
                _ => None,
            })
            .collect();
        ensure!(woken == answered, "answered of tools {answered:?}, woken {woken:?}");
        Ok(())
    }
}

#[test]
fn m_a4_a_tool_is_woken_exactly_by_the_answer_to_its_own_ask() {
    check_property::<Waking>();
}

// ---- the machine is pure

struct Pure;

impl Property for Pure {
    fn open(_: &Bench) -> Self {
        Self
    }

    fn see(&mut self, seen: &StepOfHistory<'_>) -> Result<(), String> {
        let moment = Moment {
            now: Timestamp(seen.bench.now),
            next: seen.next,
            limits: &seen.bench.limits,
            fixed_bytes: 0,
        };
        let again = decide(seen.before, moment, seen.input.clone());
        ensure!(again == *seen.outcome, "decided again, it is {again:?}");
        let settled = matches!(seen.outcome, Ok(decision) if !decision.facts.is_empty());
        if !settled {
            ensure!(
                seen.new.is_empty() && seen.before == seen.after(),
                "the state changed without a fact"
            );
            let idle = seen.outcome.is_err()
                || matches!(seen.outcome, Ok(Decision { effects, .. }) if effects.is_empty());
            // A stop and a restore may have effects without a fact, for a session at rest or with a
            // Confirm still open.
            let allowed = matches!(seen.input, Input::Shutdown | Input::Restored { .. });
            ensure!(idle || allowed, "an effect without a fact");
        }
        let mut state = seen.after().clone();
        let body = Body::Delta(Delta::Text { item: ItemId(1), text: "x".to_owned() });
        let turn = state.turn().map(|turn| turn.id);
        state.apply(&Arc::new(Event {
            seq: seen.bench.next,
            at: Timestamp(u64::MAX),
            turn,
            step: None,
            body,
        }));
        ensure!(state == *seen.after(), "a delta changed the state");
        Ok(())
    }
}

#[test]
fn invariant_2_nothing_changes_a_state_but_a_fact() {
    check_property::<Pure>();
}

// ---- turns and prompts

#[derive(Default)]
struct TurnsAndPrompts {
    open: Option<(TurnId, Option<PromptId>)>,
    /// The steps of the open turn so far.
    steps: u32,
    last: TurnId,
    accepted: PromptId,
    /// Accepted prompts that have not ended, in order, with their text.
    waiting: VecDeque<(PromptId, Arc<str>)>,
}

impl Property for TurnsAndPrompts {
    fn open(_: &Bench) -> Self {
        Self::default()
    }

    fn see(&mut self, seen: &StepOfHistory<'_>) -> Result<(), String> {
        for (event, fact) in seen.facts() {
            if let Fact::Turn(TurnFact::Started { turn, prompt }) = fact {
                ensure!(self.open.is_none(), "{turn} began in {:?}", self.open);
                ensure!(*turn == self.last.next(), "{turn} came after {}", self.last);
                let first = self.waiting.pop_front().map(|(prompt, _)| prompt);
                ensure!(first == Some(*prompt), "{turn} began with {prompt}, first was {first:?}");
                (self.open, self.last, self.steps) = (Some((*turn, Some(*prompt))), *turn, 0);
            }
            if let Fact::Run(RunFact::IterationStarted { turn, .. }) = fact {
                ensure!(self.open.is_none(), "{turn} began in {:?}", self.open);
                ensure!(*turn == self.last.next(), "{turn} came after {}", self.last);
                (self.open, self.last, self.steps) = (Some((*turn, None)), *turn, 0);
            }
            self.steps += u32::from(matches!(fact, Fact::Turn(TurnFact::StepStarted)));
            if event.turn.is_some() {
                ensure!(
                    event.turn == self.open.map(|(turn, _)| turn),
                    "{fact:?} is of {:?}",
                    event.turn
                );
                let step = (self.steps > 0).then_some(self.steps);
                ensure!(
                    event.step == step,
                    "{fact:?} is of step {:?}, open is {step:?}",
                    event.step
                );
            }
            match fact {
                Fact::Turn(TurnFact::Finished { .. }) => {
                    ensure!(self.open.take().is_some(), "a turn ended but none was open")
                }
                Fact::Prompt(PromptFact::Accepted { prompt, text, .. }) => {
                    ensure!(
                        *prompt == self.accepted.next(),
                        "{prompt} came after {}",
                        self.accepted
                    );
                    self.accepted = *prompt;
                    self.waiting.push_back((*prompt, text.clone()));
                }
                Fact::Prompt(PromptFact::Returned { prompt, text }) => {
                    let at =
                        self.waiting.iter().position(|waiting| *waiting == (*prompt, text.clone()));
                    ensure!(
                        at.and_then(|at| self.waiting.remove(at)).is_some(),
                        "{prompt} was returned but was not queued"
                    );
                }
                Fact::Prompt(PromptFact::Delivered { prompt, .. }) => {
                    let first = self.waiting.pop_front().map(|(prompt, _)| prompt);
                    ensure!(first == Some(*prompt), "{prompt} was delivered, first was {first:?}");
                    let iteration = matches!(self.open, Some((_, None)));
                    ensure!(
                        iteration && self.steps == 0,
                        "{prompt} was delivered in {:?}",
                        self.open
                    );
                }
                Fact::Session(SessionFact::Closed { .. }) => {
                    ensure!(
                        self.open.is_none() && self.waiting.is_empty(),
                        "the session ended with an open {:?}",
                        self.waiting
                    );
                }
                _ => {}
            }
        }
        let state = seen.after();
        ensure!(
            state.turn().map(|turn| (turn.id, turn.prompt)) == self.open,
            "open is {:?}",
            self.open
        );
        let queue = state.snapshot(0, 0, None).queue;
        let queue = queue.into_iter().map(|queued| (queued.prompt, queued.text));
        ensure!(queue.eq(self.waiting.iter().cloned()), "waiting are {:?}", self.waiting);
        ensure!(self.waiting.len() <= ROOM, "{} wait", self.waiting.len());
        if matches!(state.phase(), Phase::Idle)
            && *state.hold() == Hold::Off
            && state.run().is_none()
        {
            ensure!(self.waiting.is_empty(), "idle, not held, and prompts wait");
        }
        Ok(())
    }
}

#[test]
fn invariant_4_a_turn_ends_once_and_last_and_a_prompt_ends_once() {
    check_property::<TurnsAndPrompts>();
}

// ---- background jobs

/// The running jobs with their turns, by the facts alone.
#[derive(Default)]
struct Jobs(BTreeMap<CallId, TurnId>);

impl Property for Jobs {
    fn open(_: &Bench) -> Self {
        Self::default()
    }

    fn see(&mut self, seen: &StepOfHistory<'_>) -> Result<(), String> {
        let mut cut = None;
        for (event, fact) in seen.facts() {
            match fact {
                Fact::Job(JobFact::Started { job }) => {
                    let open =
                        seen.before.turn().filter(|turn| turn.id == job.turn).map(|turn| turn.id);
                    ensure!(event.turn == open, "{job:?} is of turn {:?}", event.turn);
                    let phase = seen.before.phase();
                    ensure!(
                        matches!(phase, Phase::Idle | Phase::Running(_)),
                        "a job began in {phase:?}"
                    );
                    ensure!(
                        self.0.insert(job.id, job.turn).is_none(),
                        "job {} began twice",
                        job.id
                    );
                }
                Fact::Job(JobFact::Ended { job, .. }) => {
                    ensure!(event.turn.is_none(), "the end of a job is of no turn");
                    ensure!(self.0.remove(job).is_some(), "job {job} ended twice, or never began");
                }
                Fact::Turn(TurnFact::Finished { receipt: Some(receipt), .. })
                    if receipt.processes.not_ended.is_empty() =>
                {
                    cut = event.turn
                }
                Fact::Session(SessionFact::Closed { .. }) => {
                    ensure!(self.0.is_empty(), "closed with {:?}", self.0)
                }
                _ => {}
            }
        }
        ensure!(
            !matches!(seen.input, Input::Restored { .. }) || self.0.is_empty(),
            "restored with {:?}",
            self.0
        );
        if !matches!(
            seen.input,
            Input::Report { report: Report::Finished { outcome: Outcome::Panicked, .. }, .. }
        ) {
            ensure!(
                !self.0.values().any(|turn| Some(*turn) == cut),
                "{:?} still run after the cut of {cut:?}",
                self.0
            );
        }
        let shown = seen.after().snapshot(0, 0, None).jobs;
        ensure!(
            shown.iter().map(|job| job.id).eq(self.0.keys().copied())
                || shown.len() == self.0.len(),
            "{shown:?}"
        );
        ensure!(self.0.is_empty() || !seen.after().is_at_rest(), "at rest with {:?}", self.0);
        Ok(())
    }
}

#[test]
fn m_e7_a_background_job_begins_once_in_its_turn_and_ends_once() {
    check_property::<Jobs>();
}

// ---- the cut

#[derive(Default)]
struct NothingAfterTheCut {
    cut: bool,
    started: BTreeSet<CallId>,
    /// The answers to Confirms: for a call, or always for a rule.
    approved: BTreeSet<CallId>,
    denied: BTreeSet<CallId>,
    always: BTreeSet<String>,
    never: BTreeSet<String>,
}

impl Property for NothingAfterTheCut {
    fn open(_: &Bench) -> Self {
        Self::default()
    }

    fn see(&mut self, seen: &StepOfHistory<'_>) -> Result<(), String> {
        let Ok(decision) = seen.outcome else { return Ok(()) };
        let (mut cancels, mut starts) = (Vec::new(), Vec::new());
        let mut raised = BTreeMap::new();
        for ask in seen.before.asks() {
            raised.insert(ask.id.clone(), ask.clone());
        }
        for (event, fact) in seen.facts() {
            match fact {
                Fact::Turn(TurnFact::Cut { .. }) => {
                    if !self.cut {
                        cancels.extend(event.turn.map(|turn| Effect::Cancel { turn }));
                    }
                    self.cut = true;
                }
                Fact::Turn(TurnFact::Finished { .. }) => self.cut = false,
                Fact::Turn(TurnFact::Started { turn, .. })
                | Fact::Run(RunFact::IterationStarted { turn, .. }) => {
                    ensure!(!self.cut, "a turn began during the cut");
                    starts.push(Effect::Start { turn: *turn });
                }
                Fact::Turn(TurnFact::StepStarted) | Fact::Ask(AskFact::Answered { .. })
                    if self.cut =>
                {
                    return Err(format!("{fact:?} during the cut"));
                }
                Fact::Ask(AskFact::Raised { ask }) => {
                    ensure!(!self.cut, "an ask after the cut");
                    raised.insert(ask.id.clone(), ask.clone());
                }
                Fact::Ask(AskFact::Answered { ask, answer, .. }) => {
                    let Some(ask) = raised.get(ask).filter(|ask| ask.origin == AskOrigin::Policy)
                    else {
                        continue;
                    };
                    match answer {
                        Answer::Approve { always } => {
                            self.approved.insert(ask.call);
                            self.always.extend(ask.always.clone().filter(|_| *always));
                        }
                        answer => {
                            self.denied.insert(ask.call);
                            self.never.extend(ask.always.clone().filter(|_| answer.is_always()));
                        }
                    }
                }
                Fact::Tool(ToolFact::Started { call }) => {
                    ensure!(!self.cut, "{call} began after the cut");
                    ensure!(self.started.insert(*call), "{call} began twice");
                    ensure!(!self.denied.contains(call), "{call} began although it was denied");
                    let asks = seen.after().asks().iter();
                    ensure!(
                        asks.clone().all(|ask| ask.call != *call),
                        "{call} began before it was confirmed"
                    );
                    let Input::Gate { gate: Gate::Tool { clearance, .. }, .. } = seen.input else {
                        return Err(format!("{call} began by {:?}", seen.input));
                    };
                    let (Clearance::Allow { always: rule }
                    | Clearance::Ask(Confirm { always: rule, .. })) = clearance;
                    let is_in = |rules: &BTreeSet<String>| {
                        rule.as_ref().is_some_and(|it| rules.contains(it))
                    };
                    let is_approved = self.approved.contains(call);
                    ensure!(
                        is_approved || !is_in(&self.never),
                        "{call} began although its key was denied"
                    );
                    ensure!(
                        is_approved
                            || is_in(&self.always)
                            || matches!(clearance, Clearance::Allow { .. }),
                        "{call} began without an approval"
                    );
                }
                Fact::Session(SessionFact::Restored { .. }) => self.always.clear(),
                Fact::Session(SessionFact::PolicyChanged { .. } | SessionFact::Closed { .. }) => {
                    self.always.clear();
                    self.never.clear();
                }
                _ => {}
            }
        }
        // A turn with an open Confirm continues, and that of a moved session.
        if let (Input::Restored { .. }, Phase::Running(turn)) = (seen.input, seen.after().phase())
            && seen.before.turn().is_some()
        {
            starts.push(Effect::Start { turn: turn.id });
        }
        let of = |wanted: fn(&Effect) -> bool| {
            decision.effects.iter().filter(move |effect| wanted(effect)).cloned()
        };
        ensure!(
            of(|it| matches!(it, Effect::Cancel { .. })).eq(cancels),
            "wrong cancels: {:?}",
            decision.effects
        );
        ensure!(
            of(|it| matches!(it, Effect::Start { .. })).eq(starts),
            "wrong starts: {:?}",
            decision.effects
        );
        if let Reply::Gate(reply) = &decision.reply {
            let begins = seen.facts().any(|(_, fact)| {
                matches!(
                    fact,
                    Fact::Turn(TurnFact::StepStarted) | Fact::Tool(ToolFact::Started { .. })
                )
            });
            ensure!(begins == (*reply == GateReply::Go), "{reply:?} and a start: {begins}");
            ensure!(!self.cut || *reply == GateReply::Cut, "{reply:?} during the cut");
        }
        Ok(())
    }
}

#[test]
fn invariant_5_nothing_of_a_turn_starts_after_its_cut_or_unapproved() {
    check_property::<NothingAfterTheCut>();
}

/// Everything that a cut released, to compare with the receipt.
#[derive(Default)]
struct Receipts {
    cut: Option<CutCause>,
    asks: Vec<AskId>,
    prompts: Vec<PromptId>,
}

impl Property for Receipts {
    fn open(_: &Bench) -> Self {
        Self::default()
    }

    fn see(&mut self, seen: &StepOfHistory<'_>) -> Result<(), String> {
        for (_, fact) in seen.facts() {
            match fact {
                Fact::Turn(TurnFact::Cut { cause }) => {
                    self.cut.get_or_insert_with(|| cause.clone());
                }
                Fact::Ask(AskFact::Closed {
                    cause:
                        AskCloseCause::CallEnded | AskCloseCause::Withdrawn | AskCloseCause::TurnEnded,
                    ..
                }) => {}
                Fact::Ask(AskFact::Closed { ask, .. }) => self.asks.push(ask.clone()),
                // A prompt that a client takes back before the cut is not in the receipt.
                Fact::Prompt(PromptFact::Returned { prompt, .. }) if self.cut.is_some() => {
                    self.prompts.push(*prompt)
                }
                Fact::Turn(TurnFact::Finished { outcome, cause, receipt, .. }) => {
                    let (cut, asks, prompts) = (
                        self.cut.take(),
                        std::mem::take(&mut self.asks),
                        std::mem::take(&mut self.prompts),
                    );
                    if let Input::Restored { cause: restored, .. } = seen.input {
                        // A cut before the crash keeps its cause.
                        let expected = match restored {
                            _ if cut.is_some() => (Outcome::Interrupted, cut),
                            RestoreCause::Panic => (Outcome::Panicked, Some(CutCause::Panic)),
                            RestoreCause::Restart | RestoreCause::Unloaded => {
                                (Outcome::Interrupted, Some(CutCause::Restart))
                            }
                        };
                        ensure!((*outcome, cause.clone()) == expected, "{fact:?}");
                        let calls =
                            seen.before.turn().map(|turn| turn.calls.clone()).unwrap_or_default();
                        let begun = calls.iter().filter(|(_, stage)| *stage == CallStage::Started);
                        let begun = begun.map(|(call, _)| (call.id, StopHow::Lost));
                        let lost = receipt.iter().flat_map(|receipt| &receipt.tools);
                        ensure!(
                            lost.map(|tool| (tool.call, tool.how)).eq(begun),
                            "{fact:?} of {calls:?}"
                        );
                    } else {
                        ensure!(*cause == cut, "cut by {cut:?}, {fact:?}");
                        ensure!(receipt.is_some() == cut.is_some(), "cut by {cut:?}, {fact:?}");
                        ensure!(
                            cut.is_none() || *outcome == Outcome::Interrupted,
                            "cut by {cut:?}, {fact:?}"
                        );
                    }
                    if let Some(receipt) = receipt {
                        ensure!(
                            receipt.asks == asks,
                            "released {asks:?}, the receipt says {:?}",
                            receipt.asks
                        );
                        ensure!(
                            receipt.prompts == prompts,
                            "returned {prompts:?}, the receipt says {:?}",
                            receipt.prompts
                        );
                    } else {
                        ensure!(
                            asks.is_empty() && prompts.is_empty(),
                            "{asks:?} {prompts:?} and no receipt"
                        );
                    }
                }
                // Between two turns of a run there is no receipt either.
                Fact::Run(RunFact::Finished { .. })
                    if matches!(seen.before.phase(), Phase::Idle) =>
                {
                    self.prompts.clear()
                }
                Fact::Session(SessionFact::Closed { .. }) => {
                    // Closed while idle: the prompts were handed back, and no turn could have a
                    // receipt.
                    let idle = matches!(seen.before.phase(), Phase::Idle);
                    ensure!(
                        idle || self.prompts.is_empty(),
                        "{:?} were returned after the receipt",
                        self.prompts
                    );
                    self.prompts.clear();
                }
                _ => {}
            }
        }
        let leaves = matches!(seen.input, Input::Restored { .. } | Input::Shutdown);
        if leaves && matches!(seen.after().phase(), Phase::Running(_)) {
            // The turn continues: asks that the restart, or the stop before it, has closed do not
            // belong to a cut.
            self.asks.clear();
        }
        Ok(())
    }
}

#[test]
fn m_c3_a_receipt_names_exactly_what_the_cut_released() {
    check_property::<Receipts>();
}

struct Interrupts;

impl Property for Interrupts {
    fn open(_: &Bench) -> Self {
        Self
    }

    fn see(&mut self, seen: &StepOfHistory<'_>) -> Result<(), String> {
        let cuts = seen
            .facts()
            .filter(|(_, fact)| matches!(fact, Fact::Turn(TurnFact::Cut { .. })))
            .count();
        match seen.input {
            Input::Interrupt { turn, .. } => {
                let hit = match seen.before.phase() {
                    Phase::Running(open) => turn.is_none_or(|turn| turn == open.id),
                    Phase::Idle | Phase::Interrupting(..) | Phase::Closed => false,
                };
                ensure!(cuts == usize::from(hit), "{cuts} cuts");
                let ends_run =
                    matches!(seen.outcome, Ok(decision) if decision.reply == Reply::RunInterrupted);
                let between =
                    matches!(seen.before.phase(), Phase::Idle) && seen.before.run().is_some();
                ensure!(
                    ends_run == (between && turn.is_none()),
                    "between two turns of a run: {between}"
                );
                ensure!(
                    hit || ends_run || seen.new.is_empty(),
                    "an interrupt without a target had an effect"
                );
                if hit {
                    ensure!(
                        seen.after().snapshot(0, 0, None).queue.is_empty(),
                        "prompts were not handed back"
                    );
                    ensure!(*seen.after().hold() == Hold::Off, "the hold was not cleared");
                    ensure!(
                        seen.after().status() == SessionStatus::Interrupted,
                        "{}",
                        seen.after().status()
                    );
                }
            }
            Input::Close { .. } | Input::Shutdown => ensure!(cuts <= 1, "{cuts} cuts"),
            _ => ensure!(cuts == 0, "cut by {:?}", seen.input),
        }
        Ok(())
    }
}

#[test]
fn m_c5_an_interrupt_cuts_the_open_turn_once_and_never_another() {
    check_property::<Interrupts>();
}

#[derive(Default)]
struct Closes {
    asked: Option<usize>,
}

impl Property for Closes {
    fn open(_: &Bench) -> Self {
        Self::default()
    }

    fn see(&mut self, seen: &StepOfHistory<'_>) -> Result<(), String> {
        let stops =
            matches!(seen.outcome, Ok(decision) if decision.effects.contains(&Effect::Stop));
        let closed =
            seen.facts().any(|(_, fact)| matches!(fact, Fact::Session(SessionFact::Closed { .. })));
        let stopping =
            matches!(seen.before.phase(), Phase::Interrupting(_, Cut { stopping: true, .. }));
        let shut = matches!(seen.input, Input::Shutdown | Input::Move { .. }) || stopping;
        ensure!(stops == closed || stops && shut, "stops: {stops}, closed: {closed}");
        let closes = seen.facts().filter(|(_, fact)| {
            matches!(fact, Fact::Turn(TurnFact::Cut { cause: CutCause::Close { .. } }))
        });
        match (closes.count(), self.asked) {
            (0, _) => {}
            (1, None) => self.asked = Some(0),
            (closes, asked) => return Err(format!("{closes} closes after {asked:?}")),
        }
        if matches!(seen.after().phase(), Phase::Idle | Phase::Closed) {
            let restored = matches!(seen.input, Input::Restored { .. });
            let over = matches!(seen.after().phase(), Phase::Closed) || restored;
            ensure!(self.asked.take().is_none() || over, "the close was lost");
        }
        if closed {
            ensure!(*seen.after().hold() == Hold::Off, "closed but held");
        }
        if matches!(seen.before.phase(), Phase::Closed) {
            let restored = matches!(seen.input, Input::Restored { .. });
            let changed = matches!(seen.input, Input::Rename { .. } | Input::Move { .. });
            ensure!(restored || changed || seen.new.is_empty(), "a closed session changed");
        }
        Ok(())
    }
}

#[test]
fn m_b8_a_close_is_one_fact_at_the_end_of_the_turn() {
    check_property::<Closes>();
}

// ---- holds

struct Holds;

impl Property for Holds {
    fn open(_: &Bench) -> Self {
        Self
    }

    fn see(&mut self, seen: &StepOfHistory<'_>) -> Result<(), String> {
        let (before, after) = (seen.before, seen.after());
        let (was, is) = (before.hold().shown(), after.hold().shown());
        if is == HoldState::Standing && was != HoldState::Standing {
            let cause = match after.hold() {
                Hold::Standing { cause, .. } => cause,
                Hold::Off | Hold::Requested { .. } => return Err("no cause".to_owned()),
            };
            let boundary = match seen.input {
                Input::Hold { .. } | Input::Toggle { .. } | Input::Move { .. } => {
                    matches!(before.phase(), Phase::Idle)
                }
                Input::Gate { gate: Gate::Step, .. } => {
                    let spent = before.run().is_some_and(|run| {
                        run.limit_within_iteration(Timestamp(seen.bench.now)).is_some()
                    });
                    spent || before.turn().is_some_and(|turn| turn.step > 0)
                }
                Input::Report { .. } => {
                    !after.snapshot(0, 0, None).queue.is_empty() || after.run().is_some()
                }
                Input::Restored { .. } | Input::Shutdown => *cause == HoldCause::Restored,
                Input::Prompt { .. }
                | Input::KeyedPrompt { .. }
                | Input::Unqueue { .. }
                | Input::Answer { .. }
                | Input::AnswerAway { .. }
                | Input::Interrupt { .. }
                | Input::Release
                | Input::Run { .. }
                | Input::WaitOver { .. }
                | Input::Tasks { .. }
                | Input::Rename { .. }
                | Input::Model { .. }
                | Input::Debug { .. }
                | Input::ClientRefused(_)
                | Input::Asks { .. }
                | Input::Policy { .. }
                | Input::Close { .. }
                | Input::Ask { .. }
                | Input::Withdraw { .. }
                | Input::JobStarted { .. }
                | Input::JobEnded { .. }
                | Input::Gate { .. } => false,
            };
            ensure!(boundary, "a hold took effect after {:?} in {:?}", seen.input, before.phase());
            if was == HoldState::Requested && *cause != HoldCause::Restored {
                let Hold::Requested { cause: requested, .. } = before.hold() else {
                    return Err("not requested".to_owned());
                };
                ensure!(cause == requested, "{requested}, but the fact says {cause}");
            }
        }
        ensure!(
            !matches!((after.phase(), is), (Phase::Idle, HoldState::Requested)),
            "idle, but a hold is requested"
        );
        if was == HoldState::Standing && is == HoldState::Standing {
            let began = seen.facts().find(|(_, fact)| {
                matches!(
                    fact,
                    Fact::Turn(TurnFact::Started { .. } | TurnFact::StepStarted)
                        | Fact::Run(RunFact::IterationStarted { .. })
                )
            });
            ensure!(began.is_none(), "{began:?} while held");
        }
        if let Input::Toggle { shown, .. } = seen.input {
            ensure!(*shown == was || seen.new.is_empty(), "an outdated toggle had an effect");
            let closed = matches!(
                before.phase(),
                Phase::Closed | Phase::Interrupting(_, Cut { closing: Some(_), .. })
            );
            // A released run may be held by its next limit.
            let limit =
                matches!(after.hold(), Hold::Standing { cause: HoldCause::Limit { .. }, .. });
            ensure!(*shown != was || closed || is != was || limit, "a toggle had no effect");
        }
        if matches!(seen.input, Input::Hold { .. } | Input::Release | Input::Toggle { .. }) {
            ensure!(before.asks() == after.asks(), "a hold answered an ask");
            if let Ok(decision) = seen.outcome {
                ensure!(
                    decision.reply == Reply::Hold(after.hold().clone()),
                    "the reply is {:?}",
                    decision.reply
                );
            }
        }
        Ok(())
    }
}

#[test]
fn m_d2_a_hold_takes_effect_only_at_a_boundary_and_nothing_starts_under_it() {
    check_property::<Holds>();
}

// ---- the conversation

#[derive(Default)]
struct Conversation {
    open: BTreeSet<CallId>,
    over: BTreeSet<CallId>,
    /// The usage of the open turn and of the session.
    turn: Usage,
    all: Usage,
}

/// Whether a strict provider would accept the messages: the user first, no speaker twice in a row,
/// and every call answered right after its message, in order, without other results.
pub(super) fn strict(messages: &[Message]) -> Result<(), String> {
    let mut owed: VecDeque<CallId> = VecDeque::new();
    let mut before: Option<&Message> = None;
    for (at, message) in messages.iter().enumerate() {
        match message {
            Message::User(_) => {
                ensure!(
                    !matches!(before, Some(Message::User(_))),
                    "message {at}: two user messages in a row"
                );
                ensure!(owed.is_empty(), "message {at}: {owed:?} have no result");
            }
            Message::Assistant(answer) => {
                ensure!(
                    matches!(before, Some(Message::User(_) | Message::Tool(_))),
                    "message {at} answers nothing"
                );
                ensure!(owed.is_empty(), "message {at}: {owed:?} have no result");
                ensure!(
                    !answer.calls.is_empty() || !answer.text().trim().is_empty(),
                    "message {at} is empty"
                );
                owed.extend(answer.calls.iter().map(|call| call.id));
            }
            Message::Tool(result) => {
                ensure!(
                    owed.pop_front() == Some(result.call),
                    "message {at}: unexpected result of {}",
                    result.call
                );
            }
        }
        before = Some(message);
    }
    ensure!(owed.is_empty(), "at the end {owed:?} have no result");
    Ok(())
}

/// Whether a provider would accept the conversation of `state`.
fn valid(state: &State) -> Result<(), String> {
    strict(&history::messages(state.history().events()))
}

impl Property for Conversation {
    fn open(_: &Bench) -> Self {
        Self::default()
    }

    fn see(&mut self, seen: &StepOfHistory<'_>) -> Result<(), String> {
        for (_, fact) in seen.facts() {
            match fact {
                Fact::Turn(TurnFact::AssistantMessage(message)) => {
                    for call in &message.calls {
                        ensure!(self.open.insert(call.id), "{} came twice", call.id);
                    }
                }
                Fact::Tool(ToolFact::Finished(result)) => {
                    let known = self.open.remove(&result.call) && self.over.insert(result.call);
                    ensure!(known, "{} has a second result", result.call);
                }
                Fact::Turn(TurnFact::StepFinished { usage, .. }) => {
                    self.turn += *usage;
                    self.all += *usage;
                }
                Fact::Turn(TurnFact::Finished { usage, .. }) => {
                    ensure!(self.open.is_empty(), "{:?} have no result", self.open);
                    ensure!(
                        *usage == std::mem::take(&mut self.turn),
                        "the steps used another amount: {usage:?}"
                    );
                }
                _ => {}
            }
        }
        ensure!(seen.after().snapshot(0, 0, None).usage == self.all, "all used {:?}", self.all);
        let state = seen.after();
        let calls: BTreeSet<_> = state
            .turn()
            .iter()
            .flat_map(|turn| turn.calls.iter().map(|(call, _)| call.id))
            .collect();
        ensure!(calls == self.open, "open are {:?}, the state has {calls:?}", self.open);
        let grew = seen.before.history().events().len() != state.history().events().len();
        if seen.orderly && self.open.is_empty() && grew {
            let answered = matches!(seen.input, Input::Report { .. });
            valid(state).map_err(|why| format!("{why} (after a report: {answered})"))?;
        }
        Ok(())
    }
}

#[test]
fn m_c4_every_call_gets_one_result_and_the_history_stays_valid() {
    check_property::<Conversation>();
}

// ---- the log

/// A second state, folded from the facts alone, as a log returns them.
struct Refolded(State);

fn read_back(event: &Event) -> Arc<Event> {
    let text = serde_json::to_string(event).expect("events are written as JSON");
    Arc::new(serde_json::from_str(&text).expect("what was written can be read"))
}

impl Property for Refolded {
    fn open(bench: &Bench) -> Self {
        Self(State::open(&read_back(&bench.log[0])).expect("the first fact opens"))
    }

    fn see(&mut self, seen: &StepOfHistory<'_>) -> Result<(), String> {
        for event in seen.new {
            // The round trip through JSON takes most of the time, so one fact in eight makes it.
            let read =
                if event.seq % 8 == 0 { read_back(event) } else { Arc::new((**event).clone()) };
            self.0.apply(&read);
        }
        ensure!(
            self.0 == *seen.after(),
            "folded from the log it is\n{:?}\nlive\n{:?}",
            self.0,
            seen.after()
        );
        Ok(())
    }

    fn end(&mut self, bench: &Bench) -> Result<(), String> {
        let mut scratch = State::open(&bench.log[0]).expect("the first fact opens");
        bench.log[1..].iter().for_each(|event| scratch.apply(event));
        ensure!(scratch == bench.state, "folded from scratch it is {scratch:?}");
        Ok(())
    }
}

#[test]
fn m_b7_the_facts_alone_give_the_same_state_at_every_point() {
    check_property::<Refolded>();
}

/// A second state, which now and then is saved as text and read again, as an opening does.
struct Reopened {
    state: State,
    inputs: usize,
    /// A part of its conversation that is read at a later input.
    part: Option<UnreadPart>,
}

/// Reads a part of the conversation.
fn read(state: &mut State, part: Option<UnreadPart>, log: &[Arc<Event>]) {
    if let Some(part) = part {
        let facts = log.iter().filter(|event| part.seqs().contains(&event.seq)).cloned();
        state.read(&part, &facts.collect::<Vec<_>>());
    }
}

/// Reads the rest of the conversation.
fn read_rest(state: &mut State, log: &[Arc<Event>]) {
    read(state, state.unread(u64::MAX), log);
}

impl Property for Reopened {
    fn open(bench: &Bench) -> Self {
        Self { state: bench.state.clone(), inputs: 0, part: None }
    }

    fn see(&mut self, seen: &StepOfHistory<'_>) -> Result<(), String> {
        if let Some(first) = seen.new.first() {
            let bench = seen.bench;
            let (now, limits) = (first.at, &bench.limits);
            let moment = Moment { now, next: seen.next, limits, fixed_bytes: 0 };
            let decided = decide(&self.state, moment, seen.input.clone());
            let facts = seen.facts().map(|(_, fact)| fact.clone()).collect::<Vec<_>>();
            ensure!(
                decided.as_ref().is_ok_and(|decided| decided.facts == facts),
                "reopened it decides {decided:?}, live {facts:?}"
            );
        }
        self.state.follow(seen.new);
        // A part arrives a few inputs after it was asked for, perhaps in a run that began meanwhile.
        // The requests of a run need all facts.
        let is_run = self.state.run().is_some();
        if is_run || self.inputs.is_multiple_of(3) {
            read(&mut self.state, self.part.take(), &seen.bench.log);
            self.part = self.state.unread([1, u64::MAX][self.inputs % 2]);
        }
        if is_run {
            read_rest(&mut self.state, &seen.bench.log);
        }
        let mut whole = self.state.clone();
        read_rest(&mut whole, &seen.bench.log);
        ensure!(whole == *seen.after(), "reopened it is\n{whole:?}\nlive\n{:?}", seen.after());
        self.inputs += 1;
        if self.inputs.is_multiple_of(5)
            && let Some(saved) = self.state.to_saved()
        {
            let reopened = State::from_saved(&saved);
            self.state = reopened.ok_or_else(|| format!("can't be read: {saved}"))?;
            if self.state.needs_conversation() {
                read_rest(&mut self.state, &seen.bench.log);
            }
        }
        Ok(())
    }
}

#[test]
fn m_b7_a_state_that_was_saved_continues_in_the_same_way() {
    check_property::<Reopened>();
}

/// Restores after every fact, even where the crash cut the facts of one input.
struct RestoredAnywhere {
    /// Whether the session was moved and has begun no work since.
    moved: bool,
}

/// Processes `Restored` as a rebuilt actor does.
fn restore(state: &State, bench: &Bench, after: u64, cause: RestoreCause) -> (State, Decision) {
    let moment = Moment {
        now: Timestamp(bench.now + after),
        next: bench.next + 1000 * after,
        limits: &bench.limits,
        fixed_bytes: 0,
    };
    let decision = decide(state, moment, restored(cause)).expect("`Restored` is never refused");
    let mut state = state.clone();
    for (n, fact) in decision.facts.iter().enumerate() {
        let (turn, step) = state.turn_and_step(fact);
        let body = Body::Fact(fact.clone());
        state.apply(&Arc::new(Event {
            seq: moment.next + n as u64,
            at: moment.now,
            turn,
            step,
            body,
        }));
    }
    (state, decision)
}

/// Whether nothing of a moved session runs, and nothing starts by itself.
fn is_as_it_was(state: &State) -> bool {
    let is_held = matches!(state.hold(), Hold::Standing { .. });
    let of = |stage: CallStage| move |call: &(_, CallStage)| call.1 == stage;
    match state.phase() {
        Phase::Idle => {
            is_held || state.run().is_none() && state.snapshot(0, 0, None).queue.is_empty()
        }
        Phase::Running(turn) if turn.calls.is_empty() => is_held && turn.open_step.is_none(),
        Phase::Running(turn) => {
            turn.calls.iter().any(of(CallStage::Asking))
                && !turn.calls.iter().any(of(CallStage::Started))
        }
        Phase::Interrupting(..) => false,
        Phase::Closed => true,
    }
}

fn settled(
    before: &State,
    after: &State,
    cause: RestoreCause,
    moved: bool,
    orderly: bool,
) -> Result<(), String> {
    let snapshot = after.snapshot(0, 0, None);
    if matches!(before.phase(), Phase::Interrupting(_, Cut { closing: Some(_), .. })) {
        // An accepted close is not forgotten.
        ensure!(matches!(after.phase(), Phase::Closed), "restored, it is {:?}", after.phase());
        ensure!(snapshot.queue.is_empty() && snapshot.hold == Hold::Off, "{:?}", snapshot);
        return Ok(());
    }
    let stands = |(_, stage): &(_, CallStage)| *stage == CallStage::Asking;
    if moved && cause == RestoreCause::Unloaded && is_as_it_was(before) {
        let turn = |state: &State| state.turn().cloned();
        let is_released =
            matches!(before.hold(), Hold::Standing { cause: HoldCause::Move { .. }, .. });
        if turn(before).is_some() || !is_released {
            ensure!(turn(before) == turn(after), "moved, it was {:?}", turn(before));
            ensure!(before.asks() == after.asks(), "moved, the asks are {:?}", after.asks());
        }
        if !is_released {
            ensure!(before.hold() == after.hold(), "moved, it is held: {:?}", after.hold());
            let queue = |state: &State| state.snapshot(0, 0, None).queue;
            ensure!(queue(before) == queue(after), "moved, the queue is {:?}", queue(after));
        }
        return if orderly { valid(after) } else { Ok(()) };
    }
    let kept = before.turn().filter(|turn| {
        let running = matches!(before.phase(), Phase::Running(_));
        running && cause != RestoreCause::Panic && turn.calls.iter().any(stands)
    });
    match (kept, after.phase()) {
        (None, phase) => {
            ensure!(matches!(phase, Phase::Idle), "restored, it is {phase:?}");
            ensure!(snapshot.asks.is_empty(), "asks are open: {:?}", snapshot.asks);
        }
        (Some(kept), Phase::Running(turn)) => {
            // A11: the Confirm is open under its id, and the rest of the turn is gone.
            ensure!(turn.calls.iter().all(stands), "{:?} go on", turn.calls);
            let policy = |ask: &&holdpoint_common::Ask| ask.origin == AskOrigin::Policy;
            ensure!(
                after.asks().iter().eq(before.asks().iter().filter(policy)),
                "standing are {:?}",
                after.asks()
            );
            ensure!((turn.id, turn.step) == (kept.id, kept.step), "{turn:?} is another turn");
        }
        (Some(_), phase) => return Err(format!("restored, it is {phase:?}")),
    }
    ensure!(
        snapshot.queue == before.snapshot(0, 0, None).queue,
        "the queue is now {:?}",
        snapshot.queue
    );
    let held = matches!(&snapshot.hold, Hold::Standing { cause: HoldCause::Restored, .. });
    let waits = !snapshot.queue.is_empty() || snapshot.run.is_some();
    ensure!(held == waits, "{:?} with {} waiting", snapshot.hold, snapshot.queue.len());
    ensure!(held || kept.is_some() || after.is_at_rest(), "not held, and not at rest");
    let over =
        |turn: &Turn| turn.calls.iter().filter(|call| kept.is_none() || !stands(call)).count();
    let open = before.turn().map(over).unwrap_or_default();
    let results = |state: &State| {
        let is_result =
            |event: &&Arc<Event>| matches!(event.fact(), Some(Fact::Tool(ToolFact::Finished(_))));
        state.history().events().iter().filter(is_result).count()
    };
    ensure!(results(after) == results(before) + open, "a call has no result");
    if let Some(turn) = before.turn().filter(|_| kept.is_none()) {
        ensure!(
            snapshot.last_turn.is_some_and(|last| last.turn == turn.id),
            "{} did not end",
            turn.id
        );
    }
    if orderly { valid(after) } else { Ok(()) }
}

impl Property for RestoredAnywhere {
    fn open(_: &Bench) -> Self {
        Self { moved: false }
    }

    fn see(&mut self, seen: &StepOfHistory<'_>) -> Result<(), String> {
        let mut crashed = seen.before.clone();
        let causes = [RestoreCause::Restart, RestoreCause::Panic, RestoreCause::Unloaded];
        for (n, event) in seen.new.iter().enumerate() {
            crashed.apply(event);
            self.moved = match event.fact() {
                Some(Fact::Session(SessionFact::Moved { .. })) => true,
                Some(Fact::Session(
                    SessionFact::Renamed { .. }
                    | SessionFact::ModelChanged { .. }
                    | SessionFact::PolicyChanged { .. },
                )) => self.moved,
                _ => false,
            };
            let cause = causes[(seen.bench.now as usize + n) % 3];
            let (once, decision) = restore(&crashed, seen.bench, 1, cause);
            let ends = matches!(once.phase(), Phase::Closed);
            let expected = match once.phase() {
                Phase::Closed if ends => vec![Effect::Stop],
                Phase::Running(turn) => vec![Effect::Start { turn: turn.id }],
                _ => vec![],
            };
            ensure!(decision.effects == expected, "restoring does {:?}", decision.effects);
            settled(&crashed, &once, cause, self.moved, seen.orderly)?;
            let is_moved = self.moved && cause == RestoreCause::Unloaded;
            if n + 1 < seen.new.len() || is_moved {
                continue;
            }
            let (twice, decision) = restore(&once, seen.bench, 2, cause);
            settled(&once, &twice, cause, false, seen.orderly)?;
            for fact in &decision.facts {
                let own = matches!(
                    fact,
                    Fact::Session(SessionFact::Restored { .. } | SessionFact::HoldChanged { .. })
                );
                ensure!(own, "the second restore adds {fact:?}");
            }
            let same = |state: &State| {
                let hold = state.hold().shown();
                let snapshot = state.snapshot(0, 0, None);
                (hold, Snapshot { hold: Hold::Off, ..snapshot }, state.history(), state.next_item())
            };
            ensure!(same(&once) == same(&twice), "the second restore gives {twice:?}");
        }
        Ok(())
    }
}

#[test]
fn m_b7_restored_at_any_fact_it_is_at_rest_or_held_with_its_queue() {
    check_property::<RestoredAnywhere>();
}

// ---- single stories

#[test]
fn m_a3_always_does_not_outlive_a_restore() {
    let mut bench = Bench::open(AsksMode::Wait, 1).with([
        prompt("one"),
        gate(1, Gate::Step),
        report(1, Report::Answered(answer(1, 1))),
        gate(1, confirm(2, Some("true"))),
    ]);
    let ask = bench.last_ask().expect("an ask");
    bench = bench.with([
        Input::Answer { ask, answer: Answer::Approve { always: true }, by: ann() },
        report(1, finished(Outcome::Done)),
        restored(RestoreCause::Unloaded),
        prompt("two"),
        gate(2, Gate::Step),
        report(2, Report::Answered(answer(3, 1))),
    ]);
    let decision = bench.take(gate(2, confirm(4, Some("true")))).expect("not refused");
    assert_eq!(decision.reply, Reply::Gate(GateReply::Wait), "the gate waits again");
}

#[test]
fn m_a2_replies_come_in_the_order_of_the_questions() {
    let question = |id: &str| Question {
        id: id.to_owned(),
        header: String::new(),
        question: "?".to_owned(),
        options: vec![],
    };
    let request = QuestionRequest {
        tool_name: "ask_user".to_owned(),
        questions: vec![question("b"), question("a")],
    };
    let mut bench = Bench::open(AsksMode::Wait, 1).with([
        prompt("one"),
        gate(1, Gate::Step),
        report(1, Report::Answered(answer(1, 1))),
        gate(1, allow(2)),
        ask(1, 2, AskRequest::Question(request)),
    ]);
    let reply = |id: &str| QuestionReply { id: id.to_owned(), answer: Some(format!("{id}!")) };
    let answer = Answer::Reply { answers: vec![reply("a"), reply("b")] };
    let id = bench.last_ask().expect("an ask");
    let decision =
        bench.take(Input::Answer { ask: id.clone(), answer, by: ann() }).expect("not refused");
    let replies = vec![reply("b"), reply("a")];
    let reply = AskReply::Question(QuestionResponse::Replied { replies });
    assert_eq!(decision.effects, [Effect::Wake { ask: id, reply }]);
}

#[test]
fn m_b9_the_summary_follows_from_the_facts() {
    let wrote = |path: &str| FileMark { path: path.to_owned(), size: 1, modified: 1, hash: None };
    let mut result = ToolResult::not_run(CallId(2), ToolStatus::Ok, "fine");
    result.wrote = vec![wrote("b"), wrote("a"), wrote("b")];
    let bench = Bench::open(AsksMode::Wait, 1);
    assert_eq!(
        bench.state.snapshot(0, 0, None).title,
        "bench",
        "the title is the name until the first prompt"
    );
    let bench = bench.with([
        prompt("\n  first line \nsecond line"),
        gate(1, Gate::Step),
        report(1, Report::Answered(answer(1, 1))),
        gate(1, allow(2)),
        report(1, Report::ToolFinished(result)),
        report(1, finished(Outcome::Failed)),
        prompt("another"),
    ]);
    let snapshot = bench.state.snapshot(0, 0, None);
    assert_eq!(snapshot.title, "first line");
    assert!(snapshot.files_modified.iter().eq(["a", "b"]));
    let error = Some("no".to_owned());
    let last = LastTurn { turn: TurnId(1), outcome: Outcome::Failed, cause: None, error };
    assert_eq!(snapshot.last_turn, Some(last));
}

/// Finding the block of a piece does not scan the other blocks.
#[test]
fn a_draft_of_very_many_blocks_is_restored_in_linear_time() {
    let mut bench = Bench::open(AsksMode::Wait, 1).with([prompt("one"), gate(1, Gate::Step)]);
    let draft = (1..=1_000_000).chain([1]).map(|item| piece(1, 1, item)).collect();
    bench.take(Input::Restored { cause: RestoreCause::Restart, draft }).expect("not refused");
    let mut facts = bench.log.iter().filter_map(|event| event.fact());
    let message = facts
        .find_map(|fact| match fact {
            Fact::Turn(TurnFact::AssistantMessage(message)) => Some(message),
            _ => None,
        })
        .expect("an answer");
    assert_eq!(message.blocks.len(), 1_000_000);
    assert_eq!(message.blocks[0].text, "half ahalf a");
}

/// Cut while it thinks: providers accept no answer of thoughts alone, and without it two prompts
/// would meet.
#[test]
fn m_c4_an_answer_of_thoughts_alone_is_not_sent() {
    let mut thought = answer(1, 0);
    thought.blocks[0].kind = BlockKind::Thought;
    thought.partial = true;
    let bench = Bench::open(AsksMode::Wait, 1).with([
        prompt("one"),
        gate(1, Gate::Step),
        Input::Interrupt { turn: None, by: ann() },
        report(1, Report::Answered(thought)),
        report(1, finished(Outcome::Interrupted)),
        prompt("two"),
    ]);
    let both = format!("one\n\n{}\n\ntwo", history::UNANSWERED);
    assert_eq!(history::messages(bench.state.history().events()), [Message::User(both)]);
}

/// A turn that is cut before its answer leaves its prompt; a provider gets both prompts as one.
#[test]
fn m_c4_the_prompt_of_a_turn_cut_early_goes_with_the_next() {
    let bench = Bench::open(AsksMode::Wait, 1).with([
        prompt("one"),
        Input::Interrupt { turn: None, by: ann() },
        report(1, finished(Outcome::Interrupted)),
        prompt("two"),
    ]);
    let both = format!("one\n\n{}\n\ntwo", history::UNANSWERED);
    assert_eq!(history::messages(bench.state.history().events()), [Message::User(both)]);
}

#[test]
fn m_b7_a_confirm_that_changed_over_a_restart_is_refused() {
    let standing = || {
        Bench::open(AsksMode::Wait, 1).with([
            prompt("one"),
            gate(1, Gate::Step),
            report(1, Report::Answered(answer(1, 1))),
            gate(1, confirm(2, None)),
            restored(RestoreCause::Restart),
        ])
    };
    let other = || match confirm(2, None) {
        Gate::Tool { call, clearance: Clearance::Ask(confirm) } => {
            let confirm = holdpoint_session::state::Confirm {
                details: Some("another diff".to_owned()),
                ..confirm
            };
            gate(1, Gate::Tool { call, clearance: Clearance::Ask(confirm) })
        }
        _ => unreachable!(),
    };
    let denied = |reply: &Reply| matches!(reply, Reply::Gate(GateReply::Denied { reason }) if reason.contains("changed"));
    // The new runner sees the change before the answer: the ask closes.
    let mut bench = standing();
    let ask = bench.last_ask().expect("an ask");
    assert!(denied(&bench.take(other()).expect("not refused").reply));
    let late =
        bench.take(Input::Answer { ask, answer: Answer::Approve { always: false }, by: ann() });
    assert!(matches!(
        late,
        Err(Refused::Answer(AnswerError::Closed { cause: AskCloseCause::Restart, .. }))
    ));
    // The new runner sees the change after the answer: the call does not run either.
    let mut bench = standing();
    let ask = bench.last_ask().expect("an ask");
    let mut bench = {
        bench
            .take(Input::Answer { ask, answer: Answer::Approve { always: false }, by: ann() })
            .expect("it counts");
        bench
    };
    assert!(denied(&bench.take(other()).expect("not refused").reply));
    // An unchanged call runs.
    let mut bench = standing();
    let ask = bench.last_ask().expect("an ask");
    bench
        .take(Input::Answer { ask, answer: Answer::Approve { always: false }, by: ann() })
        .expect("it counts");
    let reply = bench.take(gate(1, confirm(2, None))).expect("not refused").reply;
    assert_eq!(reply, Reply::Gate(GateReply::Go));
}
