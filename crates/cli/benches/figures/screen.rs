//! The screen: the time of a start, of a key and of leaving, and the load of an idle one.

use std::fs::File;
use std::time::{Duration, Instant};

use portable_pty::CommandBuilder;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};

use crate::daemon::{StateDir, busy};
use crate::floors::Floor;
use crate::stored::make;
use crate::table::{Amount, Samples, Table};
use crate::tty::Tty;

/// Facts of 10,000 messages: five for each prompt and its answer.
const FACTS: u64 = 25_000;
/// Bytes of each answer.
const BYTES: usize = 400;
/// How long an idle screen is watched.
const IDLE: Duration = Duration::from_secs(10);

/// Bytes of the large paste.
const PASTED: usize = 10 * 1024 * 1024;

pub(crate) fn measure(table: &Table) {
    if table.wants(
        "screen",
        &["first paint", "10,000 messages on the screen", "echo", "interrupted on the screen"],
    ) {
        shown(table);
    }
    if table
        .wants("terminal", &["fg to screen drawn", "10 MiB pasted", "detach while a daemon starts"])
    {
        let place = StateDir::new();
        place.succeed(&["new", "--model", "rehearsal", "--name", "short", "say Hello."]);
        let drawn = resumed(&place);
        table.figure_beside(
            Floor::RoundTrip,
            "fg to screen drawn again, slowest (t-Y3)",
            drawn.slowest(),
            Amount::ms(200),
        );
        let pasted = Samples::of(3, || pasted(&place));
        table.figure("10 MiB pasted to shown, slowest (t-Y6)", pasted.slowest(), Amount::ms(2_000));
        table.note(
            "   … 10 MiB through a terminal to `head`",
            Samples::of(3, through_terminal).median(),
        );
        let left = Samples::of(5, || left(&place));
        table.figure_beside(
            Floor::RoundTrip,
            "detach while a daemon starts to program ended, slowest",
            left.slowest(),
            Amount::ms(8_000),
        );
    }
}

fn shown(table: &Table) {
    let place = StateDir::new();
    // The screen gets every piece of an answer.
    place.configure("[limits]\ntext_interval_ms = 0\n");
    make(&place.data(), "long", FACTS, BYTES);
    place.succeed(&["daemon", "start"]);

    let paint = Samples::of(20, || timed(&place, &[], "New session").0);
    table.figure_beside(
        Floor::Spawn,
        "hub: first paint, daemon up",
        paint.median(),
        Amount::ms(50),
    );
    let cold = timed(&place, &["attach", "long"], "done: 1 step").0;
    table.note("10,000 messages, not live yet: opened to the last line", Amount::Time(cold));
    let mut memory = 0;
    let long = Samples::of(20, || {
        let (took, tty) = timed(&place, &["attach", "long"], "done: 1 step");
        memory = memory.max(peak(&tty));
        took
    });
    table.figure("10,000 messages on the screen: to the last line", long.median(), Amount::ms(80));
    table.figure("   … memory (peak)", Amount::Bytes(memory), Amount::mib(50));

    let (_, idle) = timed(&place, &["attach", "long"], "done: 1 step");
    let before = busy(idle.pid().into());
    std::thread::sleep(IDLE);
    let used = busy(idle.pid().into()) - before;
    table.figure("idle session on the screen, CPU in 10 s", Amount::Time(used), Amount::ms(20));
    drop(idle);
    let (_, hub) = timed(&place, &[], "New session");
    let before = busy(hub.pid().into());
    std::thread::sleep(IDLE);
    let used = busy(hub.pid().into()) - before;
    table.figure("idle hub, CPU in 10 s", Amount::Time(used), Amount::ms(20));
    drop(hub);

    // As long as one argument may be.
    let words = "word ".repeat(20_000);
    place.succeed(&[
        "new",
        "--model",
        "rehearsal",
        "--name",
        "talks",
        &format!("say@1000 {words}"),
    ]);
    let (_, mut tty) = timed(&place, &["attach", "talks"], "Esc interrupt");
    let before = (busy(tty.pid().into()), Instant::now());
    let mut typed = String::from("› ");
    let echo = Samples::of(100, || {
        typed.push('q');
        let since = Instant::now();
        tty.press("q");
        tty.wait_for(&typed);
        let took = since.elapsed();
        if typed.len() > 60 {
            tty.press("\x15");
            typed.truncate("› ".len());
            tty.wait_for("Type a prompt");
        }
        // The pace of a typist.
        std::thread::sleep(Duration::from_millis(30));
        took
    });
    let (used, wall) = (busy(tty.pid().into()) - before.0, before.1.elapsed());
    table.figure_beside(
        Floor::RoundTrip,
        "a key to its echo at 1,000 deltas a second",
        echo.median(),
        Amount::ms(10),
    );
    table.note("   … p99", echo.p99());
    table.note("   … CPU in each second then", Amount::Time(used.div_f64(wall.as_secs_f64())));
    let since = Instant::now();
    tty.press("\x1b");
    tty.wait_for("Agent interrupted");
    let first = since.elapsed();
    drop(tty);
    // A lone escape could begin a sequence for 5 ms. Kitty's protocol reports the key as a whole sequence.
    let [byte, sequence] = ["\x1b", "\x1b[27u"].map(|escape| cuts(&place, escape));
    table.figure_beside(
        Floor::RoundTrip,
        "Esc to `Agent interrupted` on the screen",
        byte.median(),
        Amount::ms(8),
    );
    table.figure_beside(
        Floor::RoundTrip,
        "   … as kitty's protocol reports the key",
        sequence.median(),
        Amount::ms(4),
    );
    table.note("   … while it streams", Amount::Time(first));
}

/// Interrupts turns on the screen with this form of Esc.
fn cuts(place: &StateDir, escape: &str) -> Samples {
    let mut turn = 0;
    Samples::of(20, || {
        turn += 1;
        let name = format!("cut {} {turn}", escape.len());
        place.succeed(&[
            "new",
            "--model",
            "rehearsal",
            "--name",
            &name,
            "say@1000 begins\\thang here\nhang",
        ]);
        let (_, mut tty) = timed(place, &["attach", &name], "begins    hang");
        tty.wait_for("Esc interrupt");
        let since = Instant::now();
        tty.press(escape);
        tty.wait_for("Agent interrupted");
        since.elapsed()
    })
}

/// The time from `fg` until the stopped program's screen is drawn again.
fn resumed(place: &StateDir) -> Samples {
    let mut shell = CommandBuilder::new("bash");
    shell.args(["--norc", "--noprofile", "-i"]);
    shell.env("TERM", "xterm-256color");
    shell.env("PS1", "$ ");
    shell.env("HISTFILE", "");
    let mut tty = Tty::spawn(shell);
    tty.press(format!(
        "{} --state-dir {} attach short\r",
        env!("CARGO_BIN_EXE_holdpoint"),
        place.folder().display()
    ));
    tty.wait_for("done: 1 step");
    Samples::of(20, || {
        tty.press("\x1a");
        tty.wait_for("Stopped");
        tty.press("clear; echo $((6 * 7))\r");
        tty.wait_for("42\n$");
        let since = Instant::now();
        tty.press("fg\r");
        tty.wait_for("done: 1 step");
        since.elapsed()
    })
}

fn pasted(place: &StateDir) -> Duration {
    let (_, mut tty) = timed(place, &["attach", "short"], "done: 1 step");
    let paste = format!("\x1b[200~{}\x1b[201~", "pasted\n".repeat(PASTED / 7));
    let since = Instant::now();
    tty.press(&paste);
    tty.wait_for("[paste 1: ");
    since.elapsed()
}

/// The terminal's own share of a paste.
fn through_terminal() -> Duration {
    let mut command = CommandBuilder::new("bash");
    command.args([
        "-c",
        &format!("stty raw -echo; echo begins; head -c {PASTED} > /dev/null; echo ends"),
    ]);
    let mut tty = Tty::spawn(command);
    tty.wait_for("begins");
    let paste = "x".repeat(PASTED);
    let since = Instant::now();
    tty.press(&paste);
    tty.wait_for("ends");
    since.elapsed()
}

/// The time to leave after the daemon was killed, while another command holds the lock for starting
/// the next one.
fn left(place: &StateDir) -> Duration {
    let (_, mut tty) = timed(place, &["attach", "short"], "done: 1 step");
    let turn = File::create(place.data().join("start.lock")).unwrap();
    flock(&turn, FlockOperation::LockExclusive).unwrap();
    kill_process(Pid::from_raw(place.pid().try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
    tty.wait_for("the daemon is gone");
    let since = Instant::now();
    tty.press("\x18d");
    tty.wait();
    since.elapsed()
}

/// The time from the program's start until `text` is on the screen.
fn timed(place: &StateDir, args: &[&str], text: &str) -> (Duration, Tty) {
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_holdpoint"));
    command.arg("--state-dir");
    command.arg(place.folder());
    command.args(args);
    command.env("TERM", "xterm-256color");
    let since = Instant::now();
    let tty = Tty::spawn(command);
    tty.wait_for(text);
    (since.elapsed(), tty)
}

/// The peak memory of the program in bytes.
fn peak(tty: &Tty) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", tty.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}
