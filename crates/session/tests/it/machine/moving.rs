//! Moves to another folder, and the restore that follows.

use holdpoint_common::{
    Answer, AskRequest, AsksMode, Hold, HoldState, Outcome, PauseKind, RestoreCause, SessionStatus,
    TurnId,
};
use holdpoint_session::state::{
    Clearance, Confirm, Effect, Gate, GateReply, Handover, Phase, Report,
};

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
fn t_a_running_session_is_held_until_it_can_move_and_is_then_released() {
    let waiting = || {
        let mut bench = started();
        let first = bench.take(moving()).unwrap();
        assert_eq!((first.reply, first.effects), (Reply::Handover(Handover::Waits), vec![]));
        let again = bench.take(moving()).unwrap();
        assert_eq!((again.reply, again.facts), (Reply::Handover(Handover::Waits), vec![]));
        assert_eq!(bench.state.hold().shown(), HoldState::Requested);
        bench
    };
    let at_the_boundary = |bench: Bench| {
        let boundary = [report(1, tool_finished(CALL)), report(1, step_finished())];
        let mut bench = bench.with(boundary).with([gate(1, Gate::Step), prompt("two")]);
        move_now(&mut bench);
        let decision = bench.take(restored(RestoreCause::Unloaded)).unwrap();
        assert_eq!(decision.effects, [Effect::Start { turn: TurnId(1) }]);
        bench.state.hold().shown()
    };
    assert_eq!(at_the_boundary(waiting()), HoldState::Off);
    // A hold of a user replaces that of the move, and stays.
    assert_eq!(at_the_boundary(waiting().with([hold()])), HoldState::Standing);
}

/// A Confirm for the call, with this message.
fn asks_about(message: &str) -> Input {
    let Gate::Tool { call, clearance: Clearance::Ask(confirm) } = confirm(CALL, Some("true"))
    else {
        unreachable!()
    };
    let clearance = Clearance::Ask(Confirm { message: message.to_owned(), ..confirm });
    gate(1, Gate::Tool { call, clearance })
}

#[test]
fn t_a_policy_confirm_is_asked_again_where_it_has_another_effect_and_other_calls_end() {
    let asked = || {
        Bench::open(AsksMode::Wait, 3).with([
            prompt("one"),
            gate(1, Gate::Step),
            report(1, Report::Answered(answer(1, 2))),
            asks_about("here"),
        ])
    };
    let moved = || {
        let mut bench = asked();
        assert_eq!(bench.state.turn().unwrap().calls.len(), 2);
        move_now(&mut bench);
        bench.with([restored(RestoreCause::Unloaded)])
    };
    let approve = |ask| Input::Answer { ask, answer: Answer::Approve { always: false }, by: ann() };
    let mut same = moved();
    assert_eq!(same.state.turn().unwrap().calls.len(), 1);
    assert_eq!(*same.state.hold(), Hold::Off);
    let open = same.last_ask().unwrap();
    assert_eq!(same.take(asks_about("here")).unwrap().reply, Reply::Gate(GateReply::Wait));
    let mut same = same.with([approve(open)]);
    assert_eq!(same.take(asks_about("here")).unwrap().reply, Reply::Gate(GateReply::Go));

    let mut other = moved();
    let open = other.last_ask().unwrap();
    let again = other.take(asks_about("there")).unwrap();
    assert_eq!(again.reply, Reply::Gate(GateReply::Wait));
    let new = other.last_ask().unwrap();
    assert_ne!(new, open);
    assert!(other.take(approve(open)).is_err());
    let mut other = other.with([approve(new)]);
    assert_eq!(other.take(asks_about("there")).unwrap().reply, Reply::Gate(GateReply::Go));

    // A tool that asks is a process of the old folder.
    let of_tool = AskRequest::Pause(pause(PauseKind::Confirm));
    let mut asking = started().with([ask(1, CALL, of_tool)]);
    assert_eq!(asking.take(moving()).unwrap().reply, Reply::Handover(Handover::Waits));
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
fn t_only_the_first_opening_of_a_moved_session_continues_its_turn() {
    let moved = || {
        let mut bench = held_between_steps();
        move_now(&mut bench);
        bench
    };
    let is_cut = |bench: Bench, cause| {
        let bench = bench.with([restored(cause)]);
        assert!(matches!(bench.state.phase(), Phase::Idle));
        assert_eq!(bench.state.hold().shown(), HoldState::Standing);
    };
    // An import, a crash or a panic: something else than the move may have ended the actor.
    is_cut(moved(), RestoreCause::Restart);
    is_cut(moved(), RestoreCause::Panic);
    let opened = || moved().with([restored(RestoreCause::Unloaded)]);
    is_cut(opened(), RestoreCause::Restart);
    is_cut(opened(), RestoreCause::Unloaded);
    is_cut(opened().with([Input::Release]), RestoreCause::Restart);
    is_cut(opened().with([Input::Release, gate(1, Gate::Step)]), RestoreCause::Restart);
}
