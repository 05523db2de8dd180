//! Properties of runs in every history, and single stories of runs.

use std::num::NonZeroU64;

use holdpoint_common::api::RunRequest;
use holdpoint_common::{
    AsksMode, Event, Fact, Hold, HoldCause, Outcome, PromptFact, RestoreCause, RunEnd, RunFact,
    RunLimit, RunLimits, SessionFact, SessionStatus, TaskRequest, TaskState, Timestamp, TurnFact,
    TurnId,
};
use holdpoint_session::history;
use holdpoint_session::model::Message;
use holdpoint_session::state::{Effect, Gate, Phase, Report};

use super::bench::{
    Bench, add_task, allow, ann, answer, finished, gate, next_task, prompt, report, restored, run,
    step_finished, tasks, tool_finished,
};
use super::input::Input;
use super::stories::{Property, StepOfHistory, check_property, ensure};

// ---- every history

#[derive(Default)]
struct Runs {
    open: bool,
    iteration: u32,
    /// A restart has cut the iteration.
    cut: bool,
    worked: u64,
    tokens: u64,
    /// In runs and outside of them.
    worked_in_all: u64,
    last_at: Timestamp,
}

impl Runs {
    fn fact(&mut self, seen: &StepOfHistory<'_>, event: &Event, fact: &Fact) -> Result<(), String> {
        match fact {
            Fact::Run(RunFact::Started { .. }) => {
                ensure!(!self.open, "a run began in a run");
                let worked_in_all = self.worked_in_all;
                *self = Self { open: true, worked_in_all, last_at: event.at, ..Self::default() };
            }
            Fact::Run(RunFact::IterationStarted { iteration, resumed, .. }) => {
                let next = if self.cut { self.iteration } else { self.iteration + 1 };
                ensure!(
                    self.open && *iteration == next,
                    "iteration {iteration} came after {}",
                    self.iteration
                );
                ensure!(*resumed == self.cut, "resumed: {resumed}, cut: {}", self.cut);
                (self.iteration, self.cut) = (*iteration, false);
            }
            Fact::Turn(TurnFact::StepStarted) => {
                let spent = seen.before.run().and_then(|run| run.limit_within_iteration(event.at));
                ensure!(spent.is_none(), "a request beyond {spent:?}");
            }
            Fact::Turn(TurnFact::StepFinished { usage, .. }) => self.tokens += usage.total(),
            Fact::Prompt(PromptFact::Delivered { iteration, .. }) => {
                ensure!(
                    *iteration == self.iteration,
                    "delivered to {iteration} in {}",
                    self.iteration
                );
            }
            Fact::Turn(TurnFact::Finished { cause, .. }) => {
                use holdpoint_common::CutCause::{Panic, Restart, Shutdown};
                self.cut = self.open && matches!(cause, Some(Shutdown | Restart | Panic));
            }
            Fact::Run(RunFact::Finished { end, progress, by }) => {
                // Every interrupt names its client: in the turn's cut, or here.
                let between =
                    *end == RunEnd::Interrupted && matches!(seen.before.phase(), Phase::Idle);
                ensure!(by.is_some() == between, "{end}, by {by:?}");
                ensure!(std::mem::take(&mut self.open), "a run ended twice");
                ensure!(
                    progress.iteration == self.iteration,
                    "the run ended in {}",
                    progress.iteration
                );
                ensure!(
                    progress.worked_ms == self.worked,
                    "the run worked {} ms, not {progress:?}",
                    self.worked
                );
                ensure!(
                    progress.tokens == self.tokens,
                    "the run used {} tokens, not {progress:?}",
                    self.tokens
                );
                ensure!(
                    progress.working_since.is_none(),
                    "the run has ended but still works: {progress:?}"
                );
                let after = seen.after().snapshot(0, 0, None);
                let left = seen.before.tasks().counts().open() > 0 || !after.queue.is_empty();
                ensure!(*end != RunEnd::Done || !left, "the run is done, but work is left");
                self.cut = false;
            }
            Fact::Session(SessionFact::Closed { .. }) => {
                ensure!(!self.open, "the session closed with an open run")
            }
            _ => {}
        }
        Ok(())
    }
}

impl Property for Runs {
    fn open(_: &Bench) -> Self {
        Self::default()
    }

    fn see(&mut self, seen: &StepOfHistory<'_>) -> Result<(), String> {
        let works = |status| matches!(status, SessionStatus::Running | SessionStatus::Interrupted);
        if let Some(first) = seen.new.first() {
            let rebuilt = matches!(seen.input, Input::Restored { .. });
            if works(seen.before.status()) && !rebuilt {
                let worked = first.at.0 - self.last_at.0;
                self.worked_in_all += worked;
                self.worked += if self.open { worked } else { 0 };
            }
            self.last_at = first.at;
        }
        for (event, fact) in seen.facts() {
            self.fact(seen, event, fact)?;
        }
        let after = seen.after();
        let shown = after.snapshot(0, 0, None);
        let worked = shown.worked(self.last_at).as_millis();
        ensure!(
            worked == u128::from(self.worked_in_all),
            "worked {worked} ms in all, not {}",
            self.worked_in_all
        );
        ensure!(
            shown.working_since.is_some() == works(after.status()),
            "working since {:?}",
            shown.working_since
        );
        ensure!(after.run().is_some() == self.open, "a run is open: {}", self.open);
        ensure!(!self.open || !after.is_at_rest(), "at rest in a run");
        if let Some(run) = after.run() {
            let worked = run.progress.worked(self.last_at).as_millis();
            ensure!(
                worked == u128::from(self.worked),
                "worked {worked} ms, by the clock {}",
                self.worked
            );
            ensure!(
                run.progress.working_since.is_some() == works(after.status()),
                "it works: {:?}",
                run.progress
            );
            let most = run.limits.iterations.map_or(u64::MAX, NonZeroU64::get);
            ensure!(
                u64::from(run.progress.iteration) <= most,
                "{} iterations of {most}",
                run.progress.iteration
            );
            let still = matches!(after.phase(), Phase::Idle) && *after.hold() == Hold::Off;
            ensure!(
                still == run.waits_until.is_some(),
                "between two turns it waits: {still}, {:?}",
                run.waits_until
            );
        }
        Ok(())
    }
}

#[test]
fn m_d5_a_run_counts_its_iterations_and_its_work_and_ends_once() {
    check_property::<Runs>();
}

// ---- single stories

fn open() -> Bench {
    Bench::open(AsksMode::Wait, 3)
}

/// The limit that holds the run, if one does.
fn limit(bench: &Bench) -> Option<RunLimit> {
    match bench.state.hold() {
        Hold::Standing { cause: HoldCause::Limit { reached }, .. } => Some(*reached),
        Hold::Off | Hold::Requested { .. } | Hold::Standing { .. } => None,
    }
}

fn release() -> Input {
    Input::Release
}

fn iteration(bench: &Bench) -> Option<u32> {
    bench.state.run().map(|run| run.progress.iteration)
}

/// Plays a whole iteration that leaves the tasks as they are.
fn iterate(bench: Bench, outcome: Outcome) -> Bench {
    let turn = bench.state.turn().expect("an open turn").id.0;
    bench.with([
        gate(turn, Gate::Step),
        report(turn, step_finished()),
        report(turn, finished(outcome)),
    ])
}

#[test]
fn m_d5_a_run_ends_when_no_task_is_left() {
    let started = |turn, first| {
        [
            gate(turn, Gate::Step),
            report(turn, Report::Answered(answer(first, 1))),
            gate(turn, allow(first + 1)),
        ]
    };
    let mut bench = open().with([run(9)]).with(started(1, 1)).with([
        tasks(1, 2, add_task("second")),
        tasks(1, 2, next_task(TaskState::Doing)),
        tasks(1, 2, next_task(TaskState::Done)),
        report(1, tool_finished(2)),
        report(1, finished(Outcome::Done)),
    ]);
    assert_eq!(iteration(&bench), Some(2), "one task is left");
    bench = bench.with(started(2, 3)).with([
        tasks(
            2,
            4,
            TaskRequest::Move { task: Some(holdpoint_common::TaskId(2)), to: TaskState::Dropped },
        ),
        report(2, tool_finished(4)),
        report(2, finished(Outcome::Done)),
    ]);
    let snapshot = bench.state.snapshot(0, 0, None);
    assert_eq!(
        snapshot.last_run.map(|run| (run.end, run.progress.iteration)),
        Some((RunEnd::Done, 2))
    );
    assert_eq!((snapshot.run, snapshot.status), (None, SessionStatus::Idle));
}

/// The tasks belong to the session; those of an earlier run do not count for this one.
#[test]
fn m_d5_a_second_run_is_not_done_because_the_first_had_no_task_left() {
    let bench = open().with([
        run(9),
        gate(1, Gate::Step),
        report(1, Report::Answered(answer(1, 1))),
        gate(1, allow(2)),
        tasks(1, 2, next_task(TaskState::Doing)),
        tasks(1, 2, next_task(TaskState::Done)),
        report(1, tool_finished(2)),
        report(1, finished(Outcome::Done)),
    ]);
    assert_eq!(iteration(&bench), None, "the first run is done");
    let mut bench = bench.with([Input::Run { request: RunRequest::new("a goal"), by: ann() }]);
    bench = iterate(bench, Outcome::Failed);
    assert_eq!(iteration(&bench), Some(1), "a failure does not end the run");
    bench = bench.with([Input::WaitOver { turn: TurnId(2) }]);
    assert_eq!(iteration(&iterate(bench, Outcome::Done)), None);
}

#[test]
fn m_d5_without_a_list_the_run_ends_with_the_first_iteration_that_is_done() {
    let bench = open().with([Input::Run { request: RunRequest::new("a goal"), by: ann() }]);
    let mut bench = iterate(bench, Outcome::Failed);
    assert_eq!(iteration(&bench), Some(1), "a failure does not end the run");
    bench = bench.with([Input::WaitOver { turn: TurnId(1) }]);
    assert_eq!(iteration(&iterate(bench, Outcome::Done)), None);
}

#[test]
fn m_d5_a_limit_is_a_hold_and_release_grants_as_much_again() {
    let mut bench = open().with([run(2)]);
    bench = iterate(iterate(bench, Outcome::Done), Outcome::Done);
    assert_eq!(limit(&bench), Some(RunLimit::Iterations { count: 2 }));
    assert_eq!(
        bench.state.hold(),
        &Hold::Standing {
            cause: HoldCause::Limit { reached: RunLimit::Iterations { count: 2 } },
            since: Timestamp(bench.now),
        }
    );
    bench = bench.with([release()]);
    bench = iterate(iterate(bench, Outcome::Done), Outcome::Done);
    assert_eq!(limit(&bench), Some(RunLimit::Iterations { count: 4 }));
    assert_eq!(limit(&bench).expect("a limit").to_string(), "4 iterations");
    let ended = bench.with([Input::Interrupt { turn: None, by: ann() }]);
    assert_eq!(
        (iteration(&ended), ended.state.hold()),
        (None, &Hold::Off),
        "an interrupt ends the run"
    );
}

#[test]
fn m_d5_tokens_and_time_are_limits_and_held_time_does_not_count() {
    let begin = |limits| {
        let request =
            RunRequest { tasks: vec!["one".to_owned()], limits, ..RunRequest::new("a goal") };
        open().with([Input::Run { request, by: ann() }])
    };
    let none = RunLimits { iterations: None, tokens: None, time_ms: None };
    let bench = iterate(begin(RunLimits { tokens: NonZeroU64::new(20), ..none }), Outcome::Done);
    assert_eq!(limit(&bench), None, "11 of 20");
    assert_eq!(limit(&iterate(bench, Outcome::Done)), Some(RunLimit::Tokens { count: 20 }));

    let mut bench = begin(RunLimits { time_ms: NonZeroU64::new(60_000), ..none });
    bench.now += 30_000;
    bench = iterate(bench.with([Input::Hold { by: ann() }]), Outcome::Done);
    bench.now += 3_600_000;
    bench = iterate(bench.with([release()]), Outcome::Done);
    assert_eq!(limit(&bench), None, "a held hour does not count");
    bench.now += 30_000;
    assert_eq!(limit(&iterate(bench, Outcome::Done)), Some(RunLimit::Time { ms: 60_000 }));
}

#[test]
fn m_d5_failures_back_off_and_three_in_a_row_are_a_hold() {
    let mut bench = open().with([run(50)]);
    for wait in [5_000, 10_000] {
        let turn = bench.state.turn().expect("a turn").id.0;
        bench = bench.with([gate(turn, Gate::Step)]);
        let decision = bench.take(report(turn, finished(Outcome::Failed))).expect("not refused");
        assert_eq!(decision.effects, [Effect::Wait { turn: TurnId(turn), wait_ms: wait }]);
        assert_eq!(bench.state.status(), SessionStatus::Running, "the run continues by itself");
        bench = bench.with([Input::WaitOver { turn: TurnId(turn) }]);
    }
    bench = iterate(bench, Outcome::Panicked);
    assert_eq!(limit(&bench), Some(RunLimit::Failures { count: 3 }));
    bench = iterate(bench.with([release()]), Outcome::Failed);
    assert_eq!(limit(&bench), None, "a release resets the count of failures");
}

/// The run's time and usage end with the crash, and not when a client returns.
#[test]
fn m_d5_m_b7_a_run_interrupted_before_a_restart_ends_with_its_time_and_usage() {
    let mut bench = open().with([run(9), gate(1, Gate::Step)]);
    bench.now += 1_000;
    bench = bench.with([
        report(1, Report::Answered(answer(1, 0))),
        Input::Interrupt { turn: None, by: ann() },
    ]);
    bench.now += 86_400_000;
    bench = bench.with([restored(RestoreCause::Restart)]);
    let last = bench.state.snapshot(0, 0, None).last_run.expect("a finished run");
    assert_eq!(last.end, RunEnd::Interrupted);
    assert!((1_000..2_000).contains(&last.progress.worked_ms), "{:?}", last.progress);
    assert!(last.progress.tokens > 0, "the open step is estimated: {:?}", last.progress);
    assert_eq!(last.progress.working_since, None);
}

#[test]
fn m_d5_the_backoff_timer_of_an_earlier_run_does_not_end_the_next_backoff() {
    let failing = |bench: Bench| iterate(bench.with([run(9)]), Outcome::Failed);
    let interrupt = || Input::Interrupt { turn: None, by: ann() };
    let mut bench = failing(failing(open()).with([interrupt()]));
    let waiting = bench.state.run().and_then(|run| run.waits_until);
    assert!(waiting.is_some());
    // The timer of the first run: its iteration had the same number.
    bench = bench.with([Input::WaitOver { turn: TurnId(1) }]);
    assert_eq!(bench.state.run().and_then(|run| run.waits_until), waiting);
    bench = bench.with([Input::WaitOver { turn: TurnId(2) }]);
    assert_eq!(iteration(&bench), Some(2));
}

#[test]
fn m_d5_a_prompt_after_a_run_is_not_delivered_to_the_run() {
    let mut bench = open().with([run(9)]);
    bench = bench.with([Input::Interrupt { turn: None, by: ann() }]);
    let turn = bench.state.turn().expect("an open turn").id.0;
    bench = bench.with([report(turn, finished(Outcome::Interrupted)), prompt("hello")]);
    let sent = sent(&bench);
    let text = user(sent.last().expect("a message"));
    assert!(text.ends_with("hello") && !text.contains("New message from"), "{text}");
}

/// The messages that the model would get now.
fn sent(bench: &Bench) -> Vec<Message> {
    history::messages(bench.state.history().events())
}

fn user(message: &Message) -> &str {
    match message {
        Message::User(text) => text,
        Message::Assistant(_) | Message::Tool(_) => panic!("not a user message: {message:?}"),
    }
}

#[test]
fn m_d5_each_iteration_begins_afresh_from_goal_tasks_and_notes() {
    let bench = open().with([
        prompt("something else"),
        report(1, Report::Answered(answer(1, 0))),
        report(1, finished(Outcome::Done)),
        run(9),
        gate(2, Gate::Step),
        report(2, Report::Answered(answer(2, 1))),
        gate(2, allow(3)),
        tasks(2, 3, add_task("second\nline")),
        tasks(2, 3, next_task(TaskState::Doing)),
        tasks(2, 3, TaskRequest::Note { text: "port 80 is taken".to_owned(), task: None }),
        report(2, tool_finished(3)),
        prompt("mind the port"),
        report(2, finished(Outcome::Done)),
    ]);
    assert!(bench.state.snapshot(0, 0, None).queue.is_empty(), "delivered at the boundary");
    let messages = sent(&bench);
    assert_eq!(messages.len(), 1, "{messages:?}");
    let opening = user(&messages[0]);
    for part in [
        "iteration 2",
        "a goal",
        "[>] 1. first",
        "[ ] 2. second line",
        "- port 80 is taken",
        "mind the port",
    ] {
        assert!(opening.contains(part), "`{part}` is not in\n{opening}");
    }
    assert!(!opening.contains("something else") && !opening.contains("block"), "{opening}");
}

#[test]
fn m_d5_the_state_of_a_long_run_is_bounded() {
    let mut bench = open().with([run(100)]);
    for n in 0..60_u64 {
        let turn = bench.state.turn().expect("a turn").id.0;
        let first = bench.state.next_item().0;
        bench =
            bench.with([gate(turn, Gate::Step), report(turn, Report::Answered(answer(first, 1)))]);
        bench = bench.with([
            gate(turn, allow(first + 1)),
            tasks(turn, first + 1, TaskRequest::Note { text: format!("note {n}."), task: None }),
            tasks(
                turn,
                first + 1,
                TaskRequest::Move {
                    task: Some(holdpoint_common::TaskId(1)),
                    to: if n.is_multiple_of(2) { TaskState::Doing } else { TaskState::Todo },
                },
            ),
            report(turn, tool_finished(first + 1)),
            report(turn, finished(Outcome::Done)),
        ]);
    }
    let history = bench.state.history();
    assert!(history.events().len() < 30, "{} facts are kept", history.events().len());
    let opening = sent(&bench);
    let opening = user(&opening[0]);
    assert!(
        opening.contains("- note 59.")
            && opening.contains("- note 40.")
            && !opening.contains("note 39.")
    );
    assert_eq!(bench.state.snapshot(0, 0, None).notes.len(), 20);
}

#[test]
fn m_b7_a_killed_run_resumes_its_iteration_and_the_model_learns_of_it() {
    let bench = open().with([
        run(1),
        gate(1, Gate::Step),
        report(1, Report::Answered(answer(1, 1))),
        gate(1, allow(2)),
        restored(RestoreCause::Restart),
    ]);
    assert!(matches!(bench.state.hold(), Hold::Standing { cause: HoldCause::Restored, .. }));
    assert_eq!(iteration(&bench), Some(1));
    let bench = bench.with([release()]);
    assert_eq!(iteration(&bench), Some(1), "the cut iteration repeats, also at the limit");
    let messages = sent(&bench);
    let [Message::User(first), Message::Assistant(_), Message::Tool(result), Message::User(again)] =
        &messages[..]
    else {
        panic!("{messages:#?}");
    };
    assert!(
        first.contains("a goal") && again.contains("a goal"),
        "the newest message alone is always sent"
    );
    assert!(again.contains("restarted in the middle"), "{again}");
    assert!(result.result.contains("before this call returned"), "{}", result.result);
    // This was the last granted iteration.
    assert_eq!(limit(&iterate(bench, Outcome::Done)), Some(RunLimit::Iterations { count: 1 }));
}
