//! Histories: random inputs of all kinds, most of them plausible, and the watches that check them.
//!
//! In half of the histories, the *orderly* ones, the runner keeps its order (gate, answer, calls,
//! next gate). In the others, any input may arrive at any time. `HOLDPOINT_FULL=1` plays fifty
//! times as many.

use std::fmt::Write;
use std::sync::Arc;

use holdpoint_common::api::RunRequest;
use holdpoint_common::{
    Answer, AskFact, AskId, AskRequest, AsksMode, AssistantMessage, BlockKind, CallId, Event, Fact,
    HoldAt, HoldState, Outcome, PauseKind, PolicyMode, PromptId, QuestionReply, Refused,
    RestoreCause, RunFact, RunLimits, StopHow, TaskId, TaskRequest, TaskState, TurnFact, TurnId,
};
use holdpoint_session::state::{CallStage, Gate, Phase, Report, State};
use holdpoint_tools::testing::rounds;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::bench::{
    Bench, LONGEST, allow, allow_key, ann, answer, ask, ask_id, ben, confirm, confirm_deniable,
    finished, gate, job_ended, job_started, pause, piece, prompt, question, refused_client, report,
    restored, session, step_finished, tasks, tool_finished,
};
use super::describe;
use super::input::{Decision, Input};

/// How many prompts may wait.
pub(super) const ROOM: usize = 3;

/// The random choices behind a history.
#[derive(Debug, Clone)]
pub(super) struct Plot {
    pub(super) asks: AsksMode,
    orderly: bool,
    /// Each chooses an input from the plausible ones at its turn.
    beats: Vec<[u8; 4]>,
}

fn plots() -> impl Strategy<Value = Plot> {
    let asks = prop_oneof![4 => Just(AsksMode::Wait), 1 => Just(AsksMode::Deny), 1 => Just(AsksMode::Approve)];
    let beats = proptest::collection::vec(any::<u32>().prop_map(u32::to_be_bytes), 1..=60);
    (asks, any::<bool>(), beats).prop_map(|(asks, orderly, beats)| Plot { asks, orderly, beats })
}

/// One input and its outcome.
pub(super) struct StepOfHistory<'a> {
    pub(super) before: &'a State,
    /// The number of the first new fact.
    pub(super) next: u64,
    pub(super) input: &'a Input,
    pub(super) outcome: &'a Result<Decision, Refused>,
    /// The new facts.
    pub(super) new: &'a [Arc<Event>],
    pub(super) bench: &'a Bench,
    pub(super) orderly: bool,
}

impl StepOfHistory<'_> {
    pub(super) fn after(&self) -> &State {
        &self.bench.state
    }

    pub(super) fn facts(&self) -> impl Iterator<Item = (&Event, &Fact)> {
        self.new.iter().filter_map(|event| event.fact().map(|fact| (&**event, fact)))
    }
}

/// A property that is checked over a history.
pub(super) trait Property {
    fn open(bench: &Bench) -> Self;
    fn see(&mut self, seen: &StepOfHistory<'_>) -> Result<(), String>;
    fn end(&mut self, _: &Bench) -> Result<(), String> {
        Ok(())
    }
}

/// Fails a watch with a message unless the condition holds.
macro_rules! ensure {
    ($holds:expr, $($why:tt)+) => {
        if !$holds {
            return Err(format!($($why)+));
        }
    };
}
pub(super) use ensure;

/// Plays histories while `W` watches.
pub(super) fn check_property<W: Property>() {
    let cases = rounds(2_000, 100_000);
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 4_000, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let result = runner.run(&plots(), |plot| {
        play::<W>(&plot, None).map_err(|why| {
            let mut transcript = String::new();
            // The same again, with a transcript.
            let _ = play::<W>(&plot, Some(&mut transcript));
            TestCaseError::fail(format!(
                "{why}\nasks = {}, orderly: {}\n{transcript}",
                plot.asks, plot.orderly
            ))
        })
    });
    if let Err(failed) = result {
        panic!("{failed}");
    }
}

fn play<W: Property>(plot: &Plot, mut transcript: Option<&mut String>) -> Result<(), String> {
    let mut bench = Bench::open(plot.asks, ROOM);
    let mut watch = W::open(&bench);
    let mut director = Director { orderly: plot.orderly, answered: false, called: false };
    for beat in &plot.beats {
        let input = director.choose(&bench, *beat);
        let (before, known, next) = (bench.state.clone(), bench.log.len(), bench.next);
        let outcome = bench.take(input.clone());
        if let Some(transcript) = &mut transcript {
            let _ = writeln!(transcript, "{input:?}\n    -> {}", describe::outcome(&outcome));
        }
        let new = &bench.log[known..];
        director.saw(&input, new);
        let orderly = plot.orderly;
        watch.see(&StepOfHistory {
            before: &before,
            next,
            input: &input,
            outcome: &outcome,
            new,
            bench: &bench,
            orderly,
        })?;
    }
    watch.end(&bench)
}

/// Chooses inputs.
struct Director {
    orderly: bool,
    /// The open step has its answer.
    answered: bool,
    /// That answer had calls.
    called: bool,
}

impl Director {
    fn saw(&mut self, input: &Input, new: &[Arc<Event>]) {
        for event in new {
            match event.fact() {
                Some(
                    Fact::Turn(TurnFact::StepStarted | TurnFact::Started { .. })
                    | Fact::Run(RunFact::IterationStarted { .. }),
                ) => (self.answered, self.called) = (false, false),
                Some(Fact::Turn(TurnFact::AssistantMessage(message))) => {
                    self.called = !message.calls.is_empty()
                }
                _ => {}
            }
        }
        self.answered |= matches!(input, Input::Report { report: Report::Answered(_), .. });
    }

    fn choose(&self, bench: &Bench, [kind, a, b, c]: [u8; 4]) -> Input {
        if kind < 144 {
            return self.plausible(bench, a, b, c);
        }
        let input = anything(bench, [kind, a, b, c]);
        if self.orderly && !self.in_order(bench, &input) {
            self.plausible(bench, a, b, c)
        } else {
            input
        }
    }

    /// Whether an orderly runner would send this input now.
    fn in_order(&self, bench: &Bench, input: &Input) -> bool {
        let Some(open) = bench.state.turn() else { return true };
        let between = open.calls.is_empty() && (open.step == 0 || self.answered && self.called);
        match input {
            Input::Gate { turn, gate: Gate::Step } if *turn == open.id => between,
            Input::Report { turn, report: Report::Answered(_) } if *turn == open.id => {
                open.step > 0 && !self.answered
            }
            _ => true,
        }
    }

    /// The next input if everything continues normally.
    fn plausible(&self, bench: &Bench, a: u8, b: u8, c: u8) -> Input {
        let state = &bench.state;
        let of = |len: usize| usize::from(b) % len;
        match state.phase() {
            Phase::Closed => restored(RestoreCause::Unloaded),
            Phase::Idle if state.hold().shown() == HoldState::Standing && a < 100 => Input::Release,
            Phase::Idle if state.run().is_some() && a < 200 => Input::WaitOver {
                turn: state.snapshot(0, 0, None).last_turn.map_or(TurnId(0), |last| last.turn),
            },
            Phase::Idle if a.is_multiple_of(4) => some_run(b, c),
            Phase::Idle => prompt("go on"),
            Phase::Running(_) if !state.asks().is_empty() && a < 150 => {
                let ask = &state.asks()[of(state.asks().len())];
                Input::Answer { ask: ask.id.clone(), answer: fitting(&ask.request, c), by: ann() }
            }
            Phase::Running(turn) if !turn.calls.is_empty() => {
                let (call, stage) = &turn.calls[of(turn.calls.len())];
                let (turn, call) = (turn.id.0, call.id.0);
                match stage {
                    CallStage::Proposed | CallStage::Asking => gate(turn, cleared(call, c)),
                    CallStage::Approved { .. } | CallStage::Denied { .. } if c < 160 => {
                        gate(turn, cleared(call, a))
                    }
                    CallStage::Started if c < 90 => ask(turn, call, request(a)),
                    CallStage::Started if c < 140 => tasks(turn, call, some_tasks(a, b)),
                    CallStage::Approved { .. } | CallStage::Denied { .. } | CallStage::Started => {
                        report(turn, tool_finished(call))
                    }
                }
            }
            Phase::Running(turn) => {
                let id = turn.id.0;
                if turn.step > 0 && !self.answered {
                    report(id, Report::Answered(message(state, c)))
                } else if turn.step > 0 && !self.called {
                    let outcome = if c < 110 { Outcome::Failed } else { Outcome::Done };
                    report(id, if c < 60 { step_finished() } else { finished(outcome) })
                } else {
                    gate(id, Gate::Step)
                }
            }
            Phase::Interrupting(turn, _) => {
                let id = turn.id.0;
                match turn.calls.front() {
                    Some((call, _)) if c < 128 => report(id, tool_finished(call.id.0)),
                    None if c < 60 && turn.step > 0 && !self.answered => report(
                        id,
                        Report::Answered(AssistantMessage {
                            partial: true,
                            ..message(state, c % 51)
                        }),
                    ),
                    _ => report(id, finished(Outcome::Interrupted)),
                }
            }
        }
    }
}

/// Any input at all; ids are mostly of things that exist or existed.
fn anything(bench: &Bench, [kind, a, b, c]: [u8; 4]) -> Input {
    let state = &bench.state;
    let open = state.turn().map_or(1, |turn| turn.id.0);
    let turn = if a < 200 { open } else { (open + 1).saturating_sub(u64::from(a % 4)) };
    let next = state.next_item().0;
    let call = match state.turn().filter(|turn| b < 200 && !turn.calls.is_empty()) {
        Some(turn) => turn.calls[usize::from(b) % turn.calls.len()].0.id.0,
        None => u64::from(b) % (next + 1),
    };
    let by = if c < 128 { ann() } else { ben() };
    match kind % 40 {
        0..=3 => match a {
            0..=9 => prompt(" "),
            10..=19 => prompt(&"x".repeat(LONGEST + 1)),
            _ => Input::Prompt { text: format!("p{}", bench.next), by },
        },
        4..=7 => {
            let asks = state.asks();
            let raised = || {
                bench.log.iter().filter_map(|event| match event.fact() {
                    Some(Fact::Ask(AskFact::Raised { ask })) => Some(ask.id.clone()),
                    _ => None,
                })
            };
            let ask = match a {
                0..=150 if !asks.is_empty() => asks[usize::from(b) % asks.len()].id.clone(),
                0..=240 => {
                    raised().nth(usize::from(b) % raised().count().max(1)).unwrap_or(ask_id(3))
                }
                241..=248 => ask_id(u64::from(b)),
                _ => AskId {
                    session: session("other"),
                    seq: bench.last_ask().map_or(3, |ask| ask.seq),
                },
            };
            Input::Answer { ask, answer: some_answer(c), by }
        }
        8 | 9 => Input::Interrupt { turn: (b < 128).then_some(TurnId(turn)), by },
        10 | 11 => Input::Hold { by },
        12 => Input::Release,
        13 => {
            let shown = match a {
                0..=150 => state.hold().shown(),
                151..=185 => HoldState::Off,
                186..=220 => HoldState::Requested,
                _ => HoldState::Standing,
            };
            Input::Toggle { shown, by }
        }
        14 => Input::Close {
            unused_since: (a < 64).then(|| bench.next.saturating_sub(u64::from(b % 16))),
            by,
        },
        31 => Input::Rename {
            name: if a < 20 { String::new() } else { format!("name {}", a % 3) },
            by,
        },
        38 if a < 128 => Input::Model { model: format!("own/{}", b % 3), by },
        38 if a < 160 => refused_client(),
        38 if a < 192 => {
            let policy = [PolicyMode::Ask, PolicyMode::Edits, PolicyMode::Readonly];
            Input::Policy { policy: policy[usize::from(b % 3)], by }
        }
        38 => Input::Debug { enabled: b < 128, by },
        39 => {
            let asks = [AsksMode::Wait, AsksMode::Wait, AsksMode::Deny, AsksMode::Approve]
                [usize::from(b % 4)];
            Input::Asks { asks, by }
        }
        15 => Input::Restored {
            cause: [RestoreCause::Restart, RestoreCause::Panic, RestoreCause::Unloaded]
                [usize::from(b % 3)],
            draft: if c < 128 {
                vec![]
            } else {
                vec![piece(turn, state.turn().map_or(1, |turn| turn.step), next)]
            },
        },
        32 if a < 128 => Input::Move { workspace: format!("/folder {}", b % 3), by },
        32 => Input::Shutdown,
        33 => {
            let asks = state.asks();
            let open = asks.get(usize::from(b) % asks.len().max(1));
            Input::Withdraw { ask: open.map_or(ask_id(u64::from(b)), |ask| ask.id.clone()) }
        }
        34 => some_run(b, c),
        36 => {
            let queue = state.snapshot(0, 0, None).queue;
            let queued = queue.get(usize::from(b) % (queue.len() + 1));
            let prompt = queued.map_or(PromptId(u64::from(c % 8)), |queued| queued.prompt);
            Input::Unqueue { prompt, by }
        }
        35 => Input::WaitOver { turn: TurnId(u64::from(b % 4)) },
        37 => tasks(turn, call, some_tasks(a, b)),
        16..=18 => ask(turn, call, request(c)),
        19 => gate(turn, Gate::Step),
        20 | 21 => gate(turn, cleared(call, c)),
        22 | 23 => report(turn, Report::Answered(message(state, c))),
        24 | 25 => report(turn, tool_finished(call)),
        26 if c < 40 => report(turn, Report::FilesChanged(vec![format!("f{b}")])),
        26 if c < 80 => {
            report(turn, Report::ContentAdded { name: format!("s:{b}"), text: "content".into() })
        }
        26 => report(turn, step_finished()),
        27 | 28 => job_started(turn, call),
        29 => match bench.state.snapshot(0, 0, None).jobs.first() {
            Some(job) if c < 200 => job_ended(job.id.0),
            _ => job_ended(call),
        },
        _ => {
            let outcomes = [
                Outcome::Done,
                Outcome::Failed,
                Outcome::Panicked,
                Outcome::Limit,
                Outcome::Interrupted,
            ];
            report(turn, finished(outcomes[usize::from(c) % outcomes.len()]))
        }
    }
}

/// A run that reaches its limits soon. Time is left out: the model has no clock.
fn some_run(b: u8, c: u8) -> Input {
    let some = |n: u8, of: u64| std::num::NonZeroU64::new(u64::from(n % 4) * of);
    let limits = RunLimits { iterations: some(b, 1), tokens: some(c, 15), time_ms: None };
    let goal =
        if b == 255 { " ".to_owned() } else { "x".repeat(if c == 255 { LONGEST + 1 } else { 9 }) };
    let titles =
        (0..b % 3).map(|n| format!("task {n}")).chain((c == 1).then(String::new)).collect();
    let hold_at = if c.is_multiple_of(3) { HoldAt::Step } else { HoldAt::Iteration };
    Input::Run { request: RunRequest { goal, tasks: titles, limits, hold_at }, by: ann() }
}

fn some_tasks(a: u8, b: u8) -> TaskRequest {
    let task = (b > 100).then(|| TaskId(u64::from(b) % 4));
    match a % 8 {
        0 | 1 => TaskRequest::Add {
            titles: vec!["one".to_owned(), if b < 20 { " " } else { "two" }.to_owned()],
        },
        2 | 3 => TaskRequest::Move { task, to: TaskState::Doing },
        4 | 5 => TaskRequest::Move { task, to: TaskState::Done },
        6 => TaskRequest::Move {
            task,
            to: if b.is_multiple_of(2) { TaskState::Dropped } else { TaskState::Todo },
        },
        _ if b < 30 => TaskRequest::List,
        _ => TaskRequest::Note {
            text: if b < 50 { String::new() } else { "known".to_owned() },
            task,
        },
    }
}

fn cleared(call: u64, c: u8) -> Gate {
    match c % 6 {
        0 => allow(call),
        5 => allow_key(call, Some("one rule")),
        1 => confirm(call, None),
        4 => confirm_deniable(call),
        2 => confirm(call, Some("one rule")),
        _ => confirm(call, Some("another rule")),
    }
}

fn request(c: u8) -> AskRequest {
    match c % 3 {
        0 => AskRequest::Pause(pause(PauseKind::Continue)),
        1 => AskRequest::Pause(pause(PauseKind::Confirm)),
        _ => question(),
    }
}

fn message(state: &State, c: u8) -> AssistantMessage {
    match c {
        0..=15 => AssistantMessage::default(),
        16..=30 => {
            // Cut while it thinks, or before it has any text.
            let mut message = answer(state.next_item().0, 0);
            let block = &mut message.blocks[0];
            if c < 24 {
                block.kind = BlockKind::Thought
            } else {
                " \n".clone_into(&mut block.text)
            }
            message
        }
        31..=50 => answer(state.next_item().0, 0),
        _ => answer(state.next_item().0, u64::from(c) % 3 + 1),
    }
}

fn reply(text: &str) -> Answer {
    Answer::Reply {
        answers: vec![QuestionReply { id: "q".to_owned(), answer: Some(text.to_owned()) }],
    }
}

fn fitting(request: &AskRequest, c: u8) -> Answer {
    match request {
        AskRequest::Question(_) if c < 60 => Answer::Cancel,
        AskRequest::Question(_) => reply("yes"),
        AskRequest::Pause(pause) if pause.kind == PauseKind::Continue => Answer::Resume,
        AskRequest::Pause(_) if c < 70 => {
            Answer::Deny { reason: Some("no".to_owned()), always: c < 25 }
        }
        AskRequest::Pause(_) => Answer::Approve { always: c > 160 },
    }
}

fn some_answer(c: u8) -> Answer {
    match c % 9 {
        0 => Answer::Resume,
        1 => Answer::Approve { always: false },
        2 => Answer::Approve { always: true },
        3 => Answer::Deny { reason: None, always: false },
        8 => Answer::Deny { reason: None, always: true },
        4 => Answer::Cancel,
        5 => reply("yes"),
        6 => reply(""),
        _ => Answer::Reply { answers: vec![] },
    }
}

/// The runner of a cut turn is gone; the receipt names the calls that had started.
#[test]
fn m_c3_a_receipt_names_the_tools_that_were_lost_with_their_runner() {
    let cut = Input::Interrupt { turn: None, by: ann() };
    let begun = [
        prompt("one"),
        gate(1, Gate::Step),
        report(1, Report::Answered(answer(1, 2))),
        gate(1, allow(2)),
        cut,
    ];
    let mut bench = Bench::open(AsksMode::Wait, 1).with(begun);
    let decision = bench.take(report(1, finished(Outcome::Panicked))).unwrap();
    let receipt = decision.facts.iter().find_map(|fact| match fact {
        Fact::Turn(TurnFact::Finished { receipt, .. }) => receipt.clone(),
        _ => None,
    });
    let tools: Vec<_> =
        receipt.unwrap().tools.into_iter().map(|tool| (tool.call, tool.how)).collect();
    assert_eq!(tools, [(CallId(2), StopHow::Lost)]);
}
