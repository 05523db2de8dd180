//! Signals: whatever is running, the program leaves no process behind.

use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use holdpoint_common::{AskFact, Fact, Outcome, TurnFact};

use rustix::process::{Pid, Signal, kill_process};

use crate::world::{World, finished, killed, patience, rounds, timeout, wait, wait_full};

/// Commands that are hard to end. Each prints `up` when all of its processes run.
const STUBBORN: [&str; 5] = [
    "sleep 1000 & echo up; wait",
    "setsid sleep 1000 & sleep 1000 & (setsid setsid sleep 1000 &) ; echo up; wait",
    "trap '' TERM INT HUP; sleep 1000 & echo up; while true; do wait; done",
    "nohup setsid bash -c 'trap \"\" TERM HUP; sleep 1000 & wait' > /dev/null 2>&1 & echo up; wait",
    "bash -c 'kill -STOP $$' & echo up; wait",
];

const APPROVE: [&str; 2] = ["--asks", "approve"];
/// Like `APPROVE`, with the session inside the program itself.
const IN_PROCESS: [&str; 3] = ["--asks", "approve", "--in-process"];

#[test]
fn t_p12_m_b10_m_c2_a_signal_ends_everything_and_the_receipt_says_so() {
    // With a daemon, the program asks it to interrupt the session. HUP ends a session only in
    // process.
    let kinds = [
        ("TERM", 143, &APPROVE[..]),
        ("INT", 130, &APPROVE),
        ("HUP", 129, &IN_PROCESS),
        ("INT", 130, &IN_PROCESS),
    ];
    for (signal, code, how) in kinds {
        for command in STUBBORN {
            let world = World::new();
            let mut running = world.start(how, &format!("shell: {command}"));
            running.wait_output("up");
            running.signal(signal);
            let (status, events, err) = running.end();
            assert_eq!(status.code(), Some(code), "{command}\n{err}");
            assert_eq!(world.census.living(), [], "{command} after {signal}");
            let Fact::Turn(TurnFact::Finished {
                outcome: Outcome::Interrupted,
                receipt: Some(receipt),
                ..
            }) = finished(&events)
            else {
                panic!("{:#?}", finished(&events));
            };
            assert!(
                receipt.processes.total() >= 1 && receipt.processes.not_ended.is_empty(),
                "{receipt}"
            );
        }
    }
}

/// TERM sets the exit code, even after an earlier interrupt.
#[test]
fn t_p12_term_after_int_sets_the_exit_code() {
    let world = World::new();
    // The command ends by itself, even on a slow machine.
    world.config("[limits]\ngrace_ms = 60000\n");
    let mut running = world.start(
        &APPROVE,
        "shell: trap 'touch cut' TERM INT HUP; echo up; until test -e go; do sleep 0.01; done",
    );
    running.wait_output("up");
    running.signal("INT");
    while !world.work("cut").exists() {
        std::thread::yield_now();
    }
    running.signal("TERM");
    std::fs::write(world.work("go"), "").unwrap();
    let (status, _, err) = running.end();
    assert_eq!(status.code(), Some(143), "{err}");
}

#[test]
fn m_c6_a_signal_prints_the_receipt() {
    let world = World::new();
    let mut child =
        world.command(&["run", "--asks", "approve", "shell: sleep 1000"]).spawn().unwrap();
    while !world.census.living().iter().any(|(_, what)| what.starts_with("sleep")) {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(
        std::process::Command::new("kill")
            .args(["-s", "INT", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(wait(&mut child).code(), Some(130));
    let mut err = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut err).unwrap();
    assert!(err.contains("Agent interrupted\n"), "{err}");
    assert!(err.contains("1 tool stopped, ") && err.contains(" ended"), "{err}");
}

#[test]
fn m_b10_a_second_interrupt_leaves_at_once_says_what_stays_and_nothing_is_left() {
    let not_kept =
        "left before the turn had ended; its tools are ended now, and the session is not kept\n";
    for (how, says, end) in [
        (&APPROVE[..], "session work stays open; `holdpoint close ", "` closes it\n"),
        (&IN_PROCESS, not_kept, not_kept),
    ] {
        let world = World::new();
        world.config("[limits]\ngrace_ms = 5000\n");
        let mut running = world.start(how, &format!("shell: {}", STUBBORN[2]));
        running.wait_output("up");
        running.signal("INT");
        running.wait_for("the cut", |event| {
            matches!(event.fact(), Some(Fact::Turn(TurnFact::Cut { .. })))
        });
        running.signal("INT");
        let mut child = running.stop_reading();
        assert_eq!(wait(&mut child).code(), Some(130));
        let mut err = String::new();
        std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut err).unwrap();
        assert!(err.contains(says) && err.ends_with(end), "{err}");
        world.census.wait_none();
    }
}

/// The program's output is not read, so the program does not see its turn end. The turn that
/// another client has started meanwhile must not be cut.
#[test]
fn m_c5_a_signal_cuts_no_turn_of_another_client() {
    for signal in [Signal::INT, Signal::TERM] {
        let world = World::new();
        let script = "shell: touch up; until test -e go; do sleep 0.01; done\n---\nflood 4000 1024";
        let mut command =
            world.command(&["run", "--json", "--asks", "approve", "--name", "mine", script]);
        let mut run = command.env("HOLDPOINT_LOG", "holdpoint=debug").spawn().unwrap();
        let out = run.stdout.take().unwrap();
        let mut log = BufReader::new(run.stderr.take().unwrap()).lines().map(Result::unwrap);
        while !world.work("up").exists() {
            std::thread::yield_now();
        }
        let theirs = "shell: touch began; until test -e on; do sleep 0.01; done; touch made";
        world.run(&["prompt", "mine", theirs]).code(0);
        std::fs::write(world.work("go"), "").unwrap();
        wait_full(&out);
        while !world.work("began").exists() {
            std::thread::yield_now();
        }
        kill_process(Pid::from_child(&run), signal).unwrap();
        assert!(log.any(|line| line.contains("interrupted by a signal")));
        std::fs::write(world.work("on"), "").unwrap();
        world.run(&["wait", "mine", "--for", "idle", "--timeout", &timeout()]).code(0);
        assert!(world.work("made").exists(), "cut by {signal:?}");
        run.kill().unwrap();
        run.wait().unwrap();
    }
}

#[test]
fn a_signal_while_an_ask_waits_releases_it() {
    let world = World::new();
    let mut running = world.start(&["--asks", "wait"], "shell: touch made");
    running.wait_for("the ask", |event| {
        matches!(event.fact(), Some(Fact::Ask(AskFact::Raised { .. })))
    });
    running.signal("TERM");
    let (status, events, err) = running.end();
    assert_eq!(status.code(), Some(143), "{err}");
    assert!(err.contains("`holdpoint inbox`"), "{err}");
    let Fact::Turn(TurnFact::Finished { receipt: Some(receipt), .. }) = finished(&events) else {
        panic!()
    };
    assert_eq!(receipt.asks.len(), 1);
    assert!(!world.work("made").exists());
}

#[test]
fn m_b10_run_can_leave_a_hanging_daemon() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let world = World::new();
        world.config("[limits]\ngrace_ms = 10\n");
        let mut running = world.start(&APPROVE, "shell: echo up; sleep 1000");
        running.wait_output("up");
        kill_process(world.daemon().unwrap(), Signal::STOP).unwrap();
        let by = Instant::now() + patience();
        let status = loop {
            // A signal that arrives before the previous one was handled is lost.
            running.signal(signal);
            if let Some(status) = running.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < by, "the program does not exit after {signal}");
            std::thread::sleep(Duration::from_millis(20));
        };
        assert_eq!(status.code(), Some(code));
    }
}

#[test]
fn a_blocked_reader_does_not_keep_processes_alive() {
    let world = World::new();
    // Fills the pipe, then the program's own buffers, while a command runs.
    let script = "shell: setsid sleep 1000 & echo up; while true; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done";
    let mut running = world.start(&APPROVE, script);
    running.wait_output("up");
    running.wait_full();
    running.signal("TERM");
    // The pipe stays open and unread.
    let status = wait(&mut running.child);
    assert_eq!(status.code(), Some(143));
    world.census.wait_none();
}

/// Ctrl+C works in the middle of the log, whether more of it arrives or not.
#[test]
fn ctrl_c_ends_the_log_of_a_saved_session() {
    let world = World::new();
    let words = format!("say {}", "word ".repeat(20_000));
    world.run(&["new", "--name", "one", &words]).code(0);
    for _ in 0..8 {
        world.run(&["prompt", "one", &words]).code(0);
    }
    world.run(&["wait", "one", "--for", "idle", "--timeout", &timeout()]).code(0);
    world.run(&["close", "one"]).code(0);
    let mut child = world.command(&["logs", "one"]).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    wait_full(&out);
    // The rest of the log is still in the daemon.
    kill_process(world.daemon().unwrap(), Signal::STOP).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let reads = std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()).unwrap());
    assert_eq!(wait(&mut child).code(), Some(0));
    assert!(reads.join().unwrap() > 0);
}

#[test]
fn hup_stays_ignored_for_nohup() {
    let world = World::new();
    let mut command = std::process::Command::new("nohup");
    let args = [
        "run",
        "--json",
        "--asks",
        "approve",
        "shell: kill -s HUP $PPID $(ps -o ppid= -p $PPID); echo lived",
    ];
    command
        .arg(crate::world::program())
        .args(args)
        .current_dir(world.path("work"))
        .env_clear()
        .envs(world.env());
    let ran = crate::world::Ran::of(command).code(0);
    assert!(ran.out.contains("lived"), "{ran:#?}");
}

#[test]
fn m_c2_a_kill_at_any_moment_leaves_no_process() {
    let script = format!("shell: {}\nshell: {}\nshell: {}", STUBBORN[0], STUBBORN[1], STUBBORN[2]);
    let mut moments = fastrand::Rng::with_seed(7);
    for round in 0..rounds(20, 100) {
        let world = World::new();
        world.config("[limits]\ngrace_ms = 100\n");
        let running = world.start(&IN_PROCESS, &script);
        // A random moment is the point: from the first instruction to well after all processes run.
        std::thread::sleep(Duration::from_micros(moments.u64(0..80_000)));
        running.signal("KILL");
        let mut child = running.stop_reading();
        assert_eq!(killed(wait(&mut child)), Some(9), "round {round}");
        world.census.wait_none();
    }
}

/// A hang-up or the client's death ends nothing, because the daemon has the session.
#[test]
fn t_n7_m_b10_a_client_that_is_gone_leaves_the_session_running() {
    for signal in ["HUP", "KILL"] {
        let world = World::new();
        assert!(
            std::process::Command::new("mkfifo").arg(world.work("go")).status().unwrap().success()
        );
        let mut running =
            world.start(&APPROVE, "shell: echo up; read line < go; echo $line > made");
        running.wait_output("up");
        running.signal(signal);
        let mut child = running.stop_reading();
        let status = wait(&mut child);
        assert_eq!(status.code().or(killed(status)), Some(if signal == "HUP" { 129 } else { 9 }));
        // The command continues, and other clients can wait for its end.
        std::fs::write(world.work("go"), "lived\n").unwrap();
        world.run(&["wait", "work", "--for", "idle", "--timeout", &timeout()]).code(0);
        assert_eq!(
            std::fs::read_to_string(world.work("made")).unwrap(),
            "lived\n",
            "after {signal}"
        );
    }
}
