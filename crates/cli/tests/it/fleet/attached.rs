//! Clients on one machine that follow a session while it is taken over by another.

use holdpoint_common::Event;
use rustix::process::Signal;

use super::{database, end_lease, move_to, reachable};
use crate::daemon::harness::DaemonWorld;
use crate::world::rounds;

#[test]
fn m_i8_a_client_sees_each_fact_once_through_takeovers() {
    let (server, url) = database();
    let owners = ["m1", "m2"].map(|name| (name, DaemonWorld(reachable(&url, name))));
    let client = reachable(&url, "m3");
    owners[1].1.start();
    owners[0].1.run(&["new", "--name", "shared", "--policy", "all"]).code(0);
    let mut seen: Vec<Event> = Vec::new();
    for round in 0..rounds(2, 100) {
        let ((name, old), (_, new)) = (&owners[round % 2], &owners[(round + 1) % 2]);
        let after = |seen: &[Event]| seen.last().map_or(0, |event| event.seq);
        let mut attached = client.follow_after("shared", after(&seen));
        // The number of the last event that the client sees is not that of a fact.
        old.run(&["prompt", "shared", &format!("shell: echo begun {round}; sleep 1000")]).code(0);
        attached.wait_output(&format!("begun {round}"));
        old.signal(Signal::KILL);
        old.wait_gone();
        end_lease(&server, name);
        move_to(&new.0, "shared");
        new.run(&["prompt", "shared", &format!("say done {round}")]).code(0);
        new.run(&["wait", "shared"]).code(0);
        // The client ends with an error if it tries to attach again before the move.
        let is_last = |event: &Event| format!("{event:?}").contains(&format!("done {round}\""));
        while !attached.reaches(|event| event.fact().is_some() && is_last(event)) {
            seen.append(&mut attached.seen);
            attached = client.follow_after("shared", after(&seen));
        }
        seen.append(&mut attached.seen);
        attached.signal("INT");
        seen.extend(attached.end().1);
        old.start();
    }
    assert!(seen.is_sorted_by(|left, right| left.seq < right.seq));
    let facts = |events: Vec<Event>| -> Vec<Event> {
        events.into_iter().filter(|event| event.fact().is_some()).collect()
    };
    let logged = facts(client.run(&["logs", "shared", "--json"]).code(0).events());
    let seen = facts(seen);
    // The end of the last turn may follow its answer.
    assert_eq!(seen, logged[..seen.len()]);
}
