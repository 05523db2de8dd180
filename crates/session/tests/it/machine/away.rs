//! Answers to the asks of a session whose machine does not respond, and the restore that follows.

use std::sync::Arc;

use holdpoint_common::{
    Answer, AsksMode, Body, Delta, Event, HoldState, RestoreCause, SessionStatus, Timestamp, TurnId,
};
use holdpoint_session::state::{Effect, Gate, GateReply, Handover, Phase, Report};

use super::bench::{Bench, ann, answer, ben, confirm, gate, prompt, report, restored};
use super::input::{Input, Reply};

const CALL: u64 = 2;

/// A turn with a Confirm for each of its calls, which a crash has cut.
fn cut_with_confirms(calls: u64) -> Bench {
    let mut bench = Bench::open(AsksMode::Wait, 3).with([
        prompt("one"),
        gate(1, Gate::Step),
        report(1, Report::Answered(answer(1, calls))),
    ]);
    for call in CALL..CALL + calls {
        bench = bench.with([gate(1, confirm(call, None))]);
    }
    bench.with([restored(RestoreCause::Restart)])
}

/// Answers the first open ask.
fn answered_away(bench: Bench, answer: Answer) -> Bench {
    let ask = bench.state.asks()[0].id.clone();
    bench.with([Input::AnswerAway { ask, answer, by: ben() }])
}

fn approved_away(bench: Bench) -> Bench {
    answered_away(bench, Answer::Approve { always: false })
}

fn reply_of_gate(bench: &mut Bench, call: u64) -> GateReply {
    match bench.take(gate(1, confirm(call, None))).unwrap().reply {
        Reply::Gate(reply) => reply,
        other => panic!("{other:?}"),
    }
}

#[test]
fn t_an_answer_while_away_takes_effect_when_the_session_is_opened() {
    let opened = |answer| {
        let mut bench = answered_away(cut_with_confirms(1), answer);
        assert_eq!(bench.state.status(), SessionStatus::Paused);
        let decision = bench.take(restored(RestoreCause::Unloaded)).unwrap();
        assert_eq!(decision.effects, [Effect::Start { turn: TurnId(1) }]);
        assert_eq!(bench.state.status(), SessionStatus::Running);
        reply_of_gate(&mut bench, CALL)
    };
    assert_eq!(opened(Answer::Approve { always: false }), GateReply::Go);
    let denied = opened(Answer::Deny { reason: Some("no".to_owned()), always: false });
    assert_eq!(denied, GateReply::Denied { reason: "the user denied this: no".to_owned() });

    // The first answer wins.
    let bench = cut_with_confirms(1);
    let ask = bench.state.asks()[0].id.clone();
    let mut bench = approved_away(bench);
    let late = Answer::Deny { reason: None, always: false };
    assert!(bench.take(Input::AnswerAway { ask, answer: late, by: ann() }).is_err());
}

#[test]
fn t_one_of_two_confirms_is_answered_while_away_and_the_other_stays_open() {
    let mut bench = approved_away(cut_with_confirms(2)).with([restored(RestoreCause::Unloaded)]);
    assert_eq!(bench.state.asks().len(), 1);
    assert_eq!(reply_of_gate(&mut bench, CALL), GateReply::Go);
    assert_eq!(reply_of_gate(&mut bench, CALL + 1), GateReply::Wait);
}

#[test]
fn t_a_held_turn_that_was_answered_while_away_runs_to_its_boundary() {
    // The queue is held after a restart.
    let bench = cut_with_confirms(1).with([prompt("two"), restored(RestoreCause::Restart)]);
    assert_eq!(bench.state.hold().shown(), HoldState::Standing);
    let mut bench = approved_away(bench).with([restored(RestoreCause::Unloaded)]);
    assert_eq!(bench.state.hold().shown(), HoldState::Requested);
    assert_eq!(reply_of_gate(&mut bench, CALL), GateReply::Go);
}

#[test]
fn t_only_the_first_opening_continues_a_turn_that_was_answered_while_away() {
    let is_cut = |bench: Bench, cause| {
        let bench = bench.with([restored(cause)]);
        assert!(matches!(bench.state.phase(), Phase::Idle), "{:?}", bench.state.phase());
    };
    let away = || approved_away(cut_with_confirms(1));
    // An import, a crash or a panic: the call may have started.
    is_cut(away(), RestoreCause::Restart);
    is_cut(away(), RestoreCause::Panic);
    let opened = || away().with([restored(RestoreCause::Unloaded)]);
    is_cut(opened(), RestoreCause::Restart);
    is_cut(opened(), RestoreCause::Unloaded);
    // An actor has decided this answer.
    let bench = cut_with_confirms(1);
    let ask = bench.state.asks()[0].id.clone();
    let answer = Answer::Approve { always: false };
    is_cut(bench.with([Input::Answer { ask, answer, by: ann() }]), RestoreCause::Unloaded);
}

#[test]
fn t_a_call_that_was_approved_while_away_is_asked_about_again_in_another_folder() {
    let moved = |answer| {
        let mut bench = answered_away(cut_with_confirms(1), answer);
        let to = Input::Move { workspace: "/elsewhere".to_owned(), by: ben() };
        assert_eq!(bench.take(to).unwrap().reply, Reply::Handover(Handover::Done));
        bench.with([restored(RestoreCause::Unloaded)])
    };
    let mut bench = moved(Answer::Approve { always: false });
    // Its effect is shown in the same words.
    assert_eq!(reply_of_gate(&mut bench, CALL), GateReply::Wait);
    let ask = bench.state.asks()[0].id.clone();
    let answer = Answer::Approve { always: false };
    let mut bench = bench.with([Input::Answer { ask, answer, by: ann() }]);
    assert_eq!(reply_of_gate(&mut bench, CALL), GateReply::Go);
    let mut bench = moved(Answer::Deny { reason: None, always: false });
    assert!(matches!(reply_of_gate(&mut bench, CALL), GateReply::Denied { .. }));
}

#[test]
fn t_a_lost_fact_ends_a_turn_that_was_answered_while_away() {
    let mut bench = approved_away(cut_with_confirms(1));
    let gap = Delta::Gap { from: bench.next, to: bench.next + 1 };
    bench.state.apply(&Arc::new(Event {
        seq: bench.next,
        at: Timestamp(bench.now),
        turn: None,
        step: None,
        body: Body::Delta(gap),
    }));
    bench.next += 2;
    let bench = bench.with([restored(RestoreCause::Unloaded)]);
    assert!(matches!(bench.state.phase(), Phase::Idle), "{:?}", bench.state.phase());
}
