//! A machine that is stopped for longer than its lease, and continues after another one has taken its
//! session.

use std::time::Instant;

use rustix::process::{Signal, kill_process};

use super::{database, end_in_order, listed, move_to, print_times, reachable, wait_until_gone};
use crate::world::{Running, World, patience, rounds};

/// Waits until no tool of a machine runs `sleep`.
pub(super) fn wait_until_ended(world: &World) {
    let by = Instant::now() + patience();
    let sleeps = |world: &World| {
        let living = world.census.living();
        living.into_iter().filter(|(_, arguments)| arguments.starts_with("sleep")).count()
    };
    while sleeps(world) > 0 {
        assert!(Instant::now() < by, "the tool still runs");
    }
}

/// Its lease of 10 s has to end.
#[test]
fn m_i3_a_machine_that_continues_after_a_takeover_ends_its_work_and_writes_nothing() {
    let (_server, url) = database();
    let (one, two) = (reachable(&url, "m1"), reachable(&url, "m2"));
    two.run(&["daemon", "start"]).code(0);
    let mut times = Vec::new();
    for round in 0..rounds(1, 20) {
        let (session, idle) = (format!("shared {round}"), format!("idle {round}"));
        for name in [&session, &idle] {
            one.run(&["new", "--name", name, "--policy", "all"]).code(0);
        }
        let mut clients = [one.follow(&session), two.follow(&session)];
        let command = "shell: sleep 1000 & setsid sleep 1000 & echo begun; wait";
        one.run(&["prompt", &session, command]).code(0);
        clients.iter_mut().for_each(|client| client.wait_output("begun"));
        let mut watching = one.follow(&idle);
        watching.wait_for("the opening", |event| event.seq == 1);
        let daemon = one.daemon().unwrap();
        kill_process(daemon, Signal::STOP).unwrap();
        wait_until_gone(&two, "m1");
        move_to(&two, &session);
        move_to(&two, &idle);
        two.run(&["prompt", &session, "say changed"]).code(0);
        two.run(&["wait", &session]).code(0);
        two.run(&["prompt", &idle, "say elsewhere"]).code(0);
        let before = two.run(&["logs", &session, "--json"]).code(0).out;

        kill_process(daemon, Signal::CONT).unwrap();
        let continued = Instant::now();
        wait_until_ended(&one);
        times.push(continued.elapsed());
        // The session without work ends here too, although it writes nothing, and the client follows it.
        watching.wait_for("the prompt", |event| format!("{event:?}").contains("elsewhere"));
        one.run(&["prompt", &idle, "say back"]).code(0);
        assert!(two.run(&["logs", &idle]).code(0).out.contains("say back"));
        two.run(&["prompt", &session, "say the end"]).code(0);
        two.run(&["wait", &session]).code(0);
        assert_eq!(listed(&one, &session)["machine"], "m2");
        let [here, there] =
            [&one, &two].map(|world| world.run(&["logs", &session, "--json"]).code(0).out);
        assert!(here == there && here.starts_with(&before), "{here}");
        two.run(&["close", &session]).code(0);
        two.run(&["close", &idle]).code(0);
        let [of_one, of_two]: [Running; 2] = clients;
        end_in_order(of_one);
        end_in_order(watching);
        // This one may have ended when the lease did.
        let (_, seen, _) = of_two.end();
        assert!(seen.is_sorted_by(|left, right| left.seq < right.seq));
    }
    print_times("from the signal to the end of the tool", times);
}
