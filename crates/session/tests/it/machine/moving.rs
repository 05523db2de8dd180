//! Moves to another folder, and the restore that follows.

use holdpoint_common::{
    Answer, AskRequest, AsksMode, Hold, HoldState, Outcome, PauseKind, RestoreCause, SessionStatus,
};
use holdpoint_session::state::{Effect, Gate, GateReply, Handover, Phase, Report};

use super::bench::{
    Bench, allow, ann, answer, ask, ben, confirm, finished, gate, job_started, pause, prompt,
    report, restored, step_finished, tool_finished,
};
use super::input::{Input, Reply};

const CALL: u64 = 2;

fn moving() -> Input {
    Input::Move { workspace: "/elsewhere".to_owned(), by: ben() }
}

fn hold() -> Input {
    Input::Hold { by: ann() }
}

/// A turn whose call has started.
fn started() -> Bench {
    Bench::open(AsksMode::Wait, 3).with([
        prompt("one"),
        gate(1, Gate::Step),
        report(1, Report::Answered(answer(1, 1))),
        gate(1, allow(CALL)),
    ])
}

/// A turn that is held between two steps, with a queue.
fn held_between_steps() -> Bench {
    started().with([
        hold(),
        report(1, tool_finished(CALL)),
        report(1, step_finished()),
        gate(1, Gate::Step),
        prompt("two"),
    ])
}

/// Moves the session, which has to be possible.
fn move_now(bench: &mut Bench) -> Vec<Effect> {
    let decision = bench.take(moving()).unwrap();
    assert_eq!(decision.reply, Reply::Handover(Handover::Done), "{decision:?}");
    assert_eq!(bench.state.settings().workspace, "/elsewhere");
    decision.effects
}

#[test]
fn t_a_turn_that_is_held_between_steps_continues_in_the_new_folder() {
    let mut bench = held_between_steps();
    assert_eq!(move_now(&mut bench), [Effect::Abandon, Effect::Stop]);
    let before = bench.state.clone();
    let decision = bench.take(restored(RestoreCause::Unloaded)).unwrap();
    let turn = before.turn().unwrap().id;
    assert_eq!(decision.effects, [Effect::Start { turn }]);
    // It is as it was, also held.
    let state = &bench.state;
    assert_eq!((state.turn(), state.hold()), (before.turn(), before.hold()));
    assert_eq!(bench.take(gate(1, Gate::Step)).unwrap().reply, Reply::Gate(GateReply::Wait));
    bench.take(Input::Release).unwrap();
    assert_eq!(bench.take(gate(1, Gate::Step)).unwrap().reply, Reply::Gate(GateReply::Go));
}

#[test]
fn t_a_running_session_is_held_until_it_can_move() {
    let mut bench = started();
    let mut waits = |holds| {
        let decision = bench.take(moving()).unwrap();
        assert_eq!(decision.reply, Reply::Handover(Handover::Waits { holds }));
        assert_eq!(decision.effects, []);
    };
    waits(true);
    waits(false);
    assert_eq!(bench.state.hold().shown(), HoldState::Requested);
    let mut bench = bench.with([
        report(1, tool_finished(CALL)),
        report(1, step_finished()),
        gate(1, Gate::Step),
    ]);
    move_now(&mut bench);
}

#[test]
fn t_a_policy_confirm_moves_with_the_calls_behind_it_and_a_started_call_does_not() {
    let bench = Bench::open(AsksMode::Wait, 3).with([
        prompt("one"),
        gate(1, Gate::Step),
        report(1, Report::Answered(answer(1, 2))),
    ]);
    let mut asked = bench.with([gate(1, confirm(CALL, Some("true")))]);
    let (calls, open) = (asked.state.turn().unwrap().calls.clone(), asked.last_ask().unwrap());
    assert_eq!(calls.len(), 2);
    move_now(&mut asked);
    asked.take(restored(RestoreCause::Unloaded)).unwrap();
    assert_eq!(asked.state.turn().unwrap().calls, calls);
    assert_eq!(*asked.state.hold(), Hold::Off);
    let approve = Input::Answer { ask: open, answer: Answer::Approve { always: false }, by: ann() };
    let mut asked = asked.with([approve]);
    let go = asked.take(gate(1, confirm(CALL, Some("true")))).unwrap();
    assert_eq!(go.reply, Reply::Gate(GateReply::Go));
    // A tool that asks is a process of the old folder.
    let of_tool = AskRequest::Pause(pause(PauseKind::Confirm));
    let mut asking = started().with([ask(1, CALL, of_tool)]);
    let waits = asking.take(moving()).unwrap();
    assert_eq!(waits.reply, Reply::Handover(Handover::Waits { holds: true }));
}

#[test]
fn t_an_idle_session_moves_with_its_hold_and_its_queue_and_its_jobs_end() {
    let mut bench = Bench::open(AsksMode::Wait, 3).with([hold(), prompt("one")]);
    let held = bench.state.hold().clone();
    assert_eq!(move_now(&mut bench), [Effect::Stop]);
    bench.take(restored(RestoreCause::Unloaded)).unwrap();
    assert_eq!(*bench.state.hold(), held);
    assert_eq!(bench.state.snapshot(0, 0, None).queue.len(), 1);

    let mut bench = started().with([
        job_started(1, CALL),
        report(1, tool_finished(CALL)),
        report(1, finished(Outcome::Done)),
    ]);
    assert_eq!(bench.state.snapshot(0, 0, None).jobs.len(), 1);
    move_now(&mut bench);
    assert_eq!(bench.state.snapshot(0, 0, None).jobs.len(), 0);
    assert_eq!(bench.state.status(), SessionStatus::Idle);
}

#[test]
fn t_a_moved_session_that_has_begun_work_is_cut_by_a_restart_as_any_other() {
    let moved = || {
        let mut bench = held_between_steps();
        move_now(&mut bench);
        bench.with([restored(RestoreCause::Unloaded)])
    };
    // After a panic, its turn could panic again.
    let mut panicked = moved();
    panicked.take(restored(RestoreCause::Panic)).unwrap();
    assert!(matches!(panicked.state.phase(), Phase::Idle));
    // The crash follows the release, before anything has begun.
    let mut released = moved().with([Input::Release]);
    released.take(restored(RestoreCause::Restart)).unwrap();
    assert!(matches!(released.state.phase(), Phase::Idle));
    assert_eq!(released.state.hold().shown(), HoldState::Standing);
    let mut begun = moved().with([Input::Release, gate(1, Gate::Step)]);
    begun.take(restored(RestoreCause::Restart)).unwrap();
    assert!(matches!(begun.state.phase(), Phase::Idle));
}
