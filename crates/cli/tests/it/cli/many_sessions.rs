//! Commands on several sessions: an error on one does not stop the others.

use crate::world::World;

#[test]
fn m_c5_interrupt_ends_the_other_sessions_when_one_is_unknown() {
    let world = World::new();
    for name in ["one", "two"] {
        world.open(&["--name", name, "--policy", "all"], "shell: sleep 1000");
        while world.json(&["show", name, "--json"])["status"] != "running" {
            std::thread::yield_now();
        }
    }
    let ran = world.run(&["interrupt", "one", "nosuch", "two"]).code(1);
    let interrupted: Vec<_> =
        ran.out.lines().map(|line| line.split_once("Agent interrupted").unwrap().0).collect();
    assert_eq!(interrupted, ["one: ", "two: "], "{ran:#?}");
    assert_eq!(
        ran.err,
        "error: there is no session `nosuch`\nhint: `holdpoint list` lists every session\n"
    );
    assert!(world.census.living().is_empty(), "nothing is left running");
}

#[test]
fn m_b9_an_unknown_session_does_not_stop_the_others() {
    let world = World::new();
    for name in ["one", "two"] {
        world.idle(&world.open(&["--name", name], "say Hi."));
    }
    for (command, became) in [
        (&["hold"][..], "⏸ PAUSED ("),
        (&["release"], "released"),
        (&["interrupt"], "nothing was running"),
        (&["close"], "closed"),
        (&["rm"], "deleted"),
    ] {
        let ran = world.run(&[command, &["one", "nosuch", "two"]].concat()).code(1);
        let lines: Vec<_> = ran.out.lines().collect();
        let [one, two] = lines[..] else { panic!("{command:?}: {ran:#?}") };
        assert!(
            one.starts_with(&format!("one: {became}"))
                && two.starts_with(&format!("two: {became}")),
            "{ran:#?}"
        );
        assert!(ran.err.starts_with("error: there is no session `nosuch`\nhint: "), "{ran:#?}");
        assert!(!ran.err.contains("one") && !ran.err.contains("two"), "{ran:#?}");
    }
}

#[test]
fn a_failed_delete_does_not_stop_the_others() {
    let world = World::new();
    for name in ["one", "live", "two"] {
        let id = world.open(&["--name", name], "say Hi.");
        world.idle(&id);
    }
    world.run(&["close", "one", "two"]).code(0);
    let ran = world.run(&["rm", "one", "live", "two"]).code(1);
    assert_eq!(ran.out, "one: deleted\ntwo: deleted\n", "{ran:#?}");
    assert!(
        ran.err.contains("live: ") && ran.err.contains("hint: `holdpoint close` closes it"),
        "{ran:#?}"
    );
}

#[test]
fn m_b9_a_saved_session_is_not_opened_to_be_held_or_interrupted() {
    let world = World::new();
    world.config("[limits]\nmax_sessions = 1\n");
    for name in ["saved", "live"] {
        world.idle(&world.open(&["--name", name], "say Hi."));
    }
    for command in ["hold", "interrupt"] {
        let ran = world.run(&[command, "saved", "live"]).code(1);
        assert!(
            ran.err
                .contains(" is not live\nhint: `holdpoint attach` or `holdpoint prompt` opens it"),
            "{ran:#?}"
        );
        assert!(ran.out.starts_with("live: ") && ran.out.lines().count() == 1, "{ran:#?}");
        assert_eq!(
            world.json(&["list", "--json"])["sessions"][0]["name"],
            "live",
            "the session was not unloaded to make room"
        );
    }
    // A held session is never unloaded to make room.
    world.run(&["release", "live"]).code(0);
    let ran = world.run(&["release", "saved"]).code(0);
    assert!(ran.out.starts_with("saved: "), "{ran:#?}");
    assert_eq!(
        world.json(&["list", "--json"])["sessions"][0]["name"],
        "saved",
        "release opens the session"
    );
}
