//! A daemon that is gone or failing: the screen shows the last known state, and no guess.

use std::os::unix::fs::FileExt;
use std::time::Duration;

use crate::tty::Tty;
use crate::world::World;

/// The time on the status bar in seconds, if it shows one below an hour.
fn clock(text: &str) -> Option<u32> {
    let (_, time) = text.split_once(" 00:")?;
    let (minutes, seconds) = time.get(..5)?.split_once(':')?;
    Some(minutes.parse::<u32>().ok()? * 60 + seconds.parse::<u32>().ok()?)
}

#[test]
fn m_d6_the_clock_stops_while_the_daemon_is_gone() {
    let world = World::new();
    world.opens("one", &["--policy", "all"], "shell: sleep 1000");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_until("a running clock", |text| clock(text) > Some(0));
    // Another command holds the start lock for a long time.
    let turn = std::fs::File::create(world.path("data/holdpoint/start.lock")).unwrap();
    rustix::fs::flock(&turn, rustix::fs::FlockOperation::LockExclusive).unwrap();
    rustix::process::kill_process(world.daemon().unwrap(), rustix::process::Signal::KILL).unwrap();
    tty.wait_for("the daemon is gone");
    let now = clock(&tty.text());
    assert!(now.is_some(), "{}", tty.text());
    std::thread::sleep(Duration::from_millis(2_500));
    assert_eq!(clock(&tty.text()), now, "{}", tty.text());
    drop(turn);
    tty.wait_for("the daemon was restarted");
    tty.press("\x18d");
    tty.end(0);
}

/// A Confirm is open again, with a prompt queued behind its turn: the approved call runs, and the
/// turn is held at its boundary.
#[test]
fn m_b7_m_a11_a_call_approved_after_a_crash_runs_and_the_turn_is_held_at_its_boundary() {
    let world = World::new();
    world.opens("one", &[], "shell: touch first\n---\nshell: touch second");
    let ask = world.ask("one");
    world.run(&["prompt", "one", "say next"]).code(0);
    rustix::process::kill_process(world.daemon().unwrap(), rustix::process::Signal::KILL).unwrap();
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("the daemon was restarted");
    tty.wait_for("queued: say next");
    tty.wait_for("⏸ waiting for approval, then PAUSED: restored");
    world.run(&["approve", &ask]).code(0);
    tty.wait_for("⏸ PAUSED: restored");
    // The turn continued to its boundary under one hold.
    assert_eq!(tty.count("⏸ PAUSED (restored)"), 1, "{}", tty.text());
    assert!(world.work("first").exists() && !world.work("second").exists());
    let shown = world.run(&["show", "one"]).code(0).out;
    assert!(shown.contains("held (restored)") && shown.contains("⏸ PAUSED (restored)"), "{shown}");
    let log = world.run(&["logs", "one"]).code(0).out;
    let order =
        ["⏸ PAUSED (restored)\n", "→ approved from", "PAUSING... (restored)", "[exit code 0]"];
    let places: Vec<_> = order.iter().map(|line| log.find(line).unwrap_or(usize::MAX)).collect();
    assert!(
        places.is_sorted() && log.matches("⏸ PAUSED (restored)").count() == 2,
        "{places:?}\n{log}"
    );
    // After the release, it asks about the next call.
    tty.press("\x18p");
    tty.wait_for("│ touch second");
    assert_eq!(tty.count("▶ released"), 1, "{}", tty.text());
    tty.press("\x18d");
    tty.end(0);
}

/// The daemon runs but can't read its store.
#[test]
fn a_damaged_store_is_shown_with_the_daemons_error() {
    let world = World::new();
    world.opens("one", &[], "say Hello.");
    world.run(&["wait", "one"]).code(0);
    world.run(&["daemon", "stop"]).code(0);
    // Damages the first page of the table of sessions. The folder in its way prevents a salvage.
    let data = world.path("data/holdpoint");
    let database = std::fs::OpenOptions::new().write(true).open(data.join("sessions.db")).unwrap();
    database.write_all_at(&[0xa5; 4_096], 4_096).unwrap();
    std::fs::create_dir(data.join("sessions.salvage-tmp")).unwrap();
    let mut tty = Tty::run(&world, &[]);
    // Where lines break depends on the path.
    let is_reported = |text: &str| {
        let text = text.replace('\n', " ");
        text.contains("sessions.db is damaged, could") && text.contains("`holdpoint status`")
    };
    tty.wait_until("the fault, and what to do", is_reported);
    // The screen asks again and again, and the error stays.
    assert!(!tty.shows("the daemon is gone", Duration::from_secs(1)), "{}", tty.text());
    assert!(is_reported(&tty.text()), "{}", tty.text());
    tty.press("\x03\x03");
    tty.end(0);
    assert!(world.daemon().is_some());
}

/// A daemon that stops removes its sockets and does not wait for clients that do not read. The
/// missing sockets are all that such a client sees.
#[test]
fn m_b8_a_stopped_daemon_is_started_again_only_by_the_user() {
    let world = World::new();
    world.opens("one", &[], "say Hello.");
    let hub = Tty::run(&world, &[]);
    hub.wait_for("New session");
    let mut tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("done: 1 step");
    let sockets = [world.path("run/holdpoint"), world.path("data/holdpoint/run")]
        .map(|dir| dir.join("holdpoint.sock"));
    for screen in [&tty, &hub] {
        screen.signal("STOP");
    }
    let killed = world.daemon().unwrap();
    rustix::process::kill_process(killed, rustix::process::Signal::KILL).unwrap();
    for socket in &sockets {
        std::fs::remove_file(socket).unwrap();
    }
    for screen in [&tty, &hub] {
        screen.signal("CONT");
    }
    for screen in [&tty, &hub] {
        screen.wait_for("The daemon was stopped.");
    }
    // The killed one can hold its lock for a moment longer.
    assert!(world.daemon().is_none_or(|pid| pid == killed), "nothing restarts the daemon");
    tty.press_until("\r", "the daemon is back");
    hub.wait_for("the daemon is back");
    tty.press("say Again.\r");
    tty.wait_until("the second answer", |text| text.lines().any(|line| line == "Again."));
    for mut screen in [tty, hub] {
        screen.press("\x18d");
        screen.end(0);
    }
}

#[test]
fn a_session_deleted_while_the_hub_had_no_watch_leaves_the_list() {
    let world = World::new();
    for name in ["first", "second"] {
        world.opens(name, &[], "say Hello.");
        world.run(&["wait", name]).code(0);
    }
    let mut hub = Tty::run(&world, &[]);
    hub.wait_for("first");
    hub.signal("STOP");
    world.run(&["daemon", "stop"]).code(0);
    world.run(&["rm", "first"]).code(0);
    hub.signal("CONT");
    hub.wait_until("only the second session", |text| {
        text.contains("second") && !text.contains("first")
    });
    hub.press("\x03\x03");
    hub.end(0);
}
