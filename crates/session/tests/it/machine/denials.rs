//! Denials that the session remembers.

use holdpoint_common::{Answer, AsksMode, Outcome, PolicyMode, RestoreCause};
use holdpoint_session::state::{Gate, GateReply, Report, State};

use super::bench::{
    Bench, allow_key, ann, answer, ben, confirm, finished, gate, prompt, report, restored,
};
use super::input::{Input, Reply};

/// An idle session that has denied the key `true` with *always*.
fn denied() -> Bench {
    let bench = Bench::open(AsksMode::Wait, 1).with([
        prompt("one"),
        gate(1, Gate::Step),
        report(1, Report::Answered(answer(1, 1))),
        gate(1, confirm(2, Some("true"))),
    ]);
    let ask = bench.last_ask().expect("an ask");
    let answer = Answer::Deny { reason: Some("too risky".to_owned()), always: true };
    bench.with([Input::Answer { ask, answer, by: ann() }, report(1, finished(Outcome::Done))])
}

/// The reply to a call that `make` makes in the next turn.
fn next_call(bench: Bench, make: impl Fn(u64) -> Gate) -> GateReply {
    let next = bench.state.next_item().0;
    let mut bench = bench.with([
        prompt("two"),
        gate(2, Gate::Step),
        report(2, Report::Answered(answer(next, 1))),
    ]);
    match bench.take(gate(2, make(next + 1))).expect("not refused").reply {
        Reply::Gate(reply) => reply,
        reply => panic!("{reply:?}"),
    }
}

fn same(call: u64) -> Gate {
    confirm(call, Some("true"))
}

fn for_session() -> GateReply {
    let reason = "the user denied this for the whole session: too risky".to_owned();
    GateReply::Denied { reason }
}

#[test]
fn m_a2_a_remembered_denial_is_for_its_key_alone() {
    assert_eq!(next_call(denied(), same), for_session());
    assert_eq!(next_call(denied(), |call| confirm(call, Some("false"))), GateReply::Wait);
    assert_eq!(next_call(denied(), |call| confirm(call, None)), GateReply::Wait);
}

#[test]
fn m_a2_a_remembered_denial_takes_precedence_over_rules_and_settings_that_allow() {
    assert_eq!(next_call(denied(), |call| allow_key(call, Some("true"))), for_session());
    let approves = Input::Asks { asks: AsksMode::Approve, by: ben() };
    assert_eq!(next_call(denied().with([approves]), same), for_session());
}

#[test]
fn m_a3_a_remembered_denial_outlives_a_restore_and_a_saved_state() {
    for cause in [RestoreCause::Restart, RestoreCause::Panic, RestoreCause::Unloaded] {
        assert_eq!(next_call(denied().with([restored(cause)]), same), for_session(), "{cause:?}");
    }
    let mut bench = denied();
    let saved = bench.state.to_saved().expect("the conversation was read");
    bench.state = State::from_saved(&saved).expect("a saved state");
    let unread = bench.state.unread(u64::MAX).expect("the conversation is not empty");
    bench.state.read(&unread, &bench.log);
    assert_eq!(next_call(bench, same), for_session());
}

#[test]
fn m_a3_a_change_of_the_policy_or_a_close_forgets_denials() {
    let policy = Input::Policy { policy: PolicyMode::Edits, by: ben() };
    assert_eq!(next_call(denied().with([policy]), same), GateReply::Wait);
    let close = Input::Close { unused_since: None, by: ben() };
    let closed = denied().with([close, restored(RestoreCause::Unloaded)]);
    assert_eq!(next_call(closed, same), GateReply::Wait);
}
