//! The whole program: the time to start and to leave, and the cost of a turn and of a flood.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use holdpoint_tests::model_server::{ModelServer, Reply};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use wait4::Wait4;

use crate::daemon::StateDir;
use crate::floors::Floor;
use crate::support::{MODEL, holdpoint, succeed};
use crate::table::{Amount, Samples, Table};

/// Runs the program that follows, and writes its usage to the file named first.
pub(crate) const USAGE_OF: &str = "--usage-of";

const DELTAS: usize = 200_000;

/// The longest time from TERM to the end of a program: the grace and three seconds.
const SIGNAL_LIMIT: Duration = Duration::from_millis(3_500);

/// Runs that a signal ends. Each leaves a session in the daemon, and the limit is ten.
const LEFT: usize = 5;

/// The resource usage of a program.
struct Usage {
    cpu: Duration,
    /// The peak memory in bytes.
    memory: u64,
    wall: Duration,
    /// The bytes of standard output.
    output: u64,
}

pub(crate) fn measure(table: &Table) {
    if table.wants("start", &["start to first model request"]) {
        let started = start();
        table.figure_beside(
            Floor::Spawn,
            "start to first model request",
            started.median(),
            Amount::ms(20),
        );
        table.note("   … p99", started.p99());
    }
    if table.wants("text turn", &["text turn, memory", "text turn, CPU"]) {
        let turns = usages(20, || Reply::text(["Hello, ", "world."]));
        table.figure("text turn, memory (peak)", memory(&turns), Amount::mib(25));
        table.figure("text turn, CPU", cpu(&turns), Amount::ms(30));
        table.note("   … wall", wall(&turns));
    }
    if table.wants("flood", &["200,000 deltas"]) {
        let floods = usages(5, || Reply::flood(DELTAS));
        // Every token appears twice: in a delta and in the message.
        let least = (2 * DELTAS * "tok ".len()) as u64;
        assert!(floods.iter().all(|usage| usage.output > least), "all of it was written");
        table.figure("200,000 deltas through run --json, CPU", cpu(&floods), Amount::ms(600));
        table.figure(
            "200,000 deltas through run --json, memory (peak)",
            memory(&floods),
            Amount::mib(40),
        );
        table.note("   … wall", wall(&floods));
    }
    if table.wants("signals", &["second Ctrl+C to run ended", "TERM to run ended, full pipe"]) {
        let ended = second_interrupt();
        table.figure_beside(
            Floor::Kill,
            "second Ctrl+C to run ended, slowest (m-B10)",
            ended.slowest(),
            Amount::ms(4_000),
        );
        let ended = full_pipe();
        table.figure(
            "TERM to run ended, full pipe, slowest (t-P12)",
            ended.slowest(),
            Amount::ms(6_000),
        );
        let beyond = ended.slowest().beyond(SIGNAL_LIMIT);
        table.note_beside(Floor::Kill, "   … beyond the program's limit of 3.5 s", beyond);
    }
}

/// The first Ctrl+C has cut the turn, and its tool uses its grace.
fn second_interrupt() -> Samples {
    let place = StateDir::new();
    place.configure("[limits]\ngrace_ms = 5000\n");
    Samples::of(LEFT, || {
        let (mut run, mut output) = follow(
            &place,
            "trap '' TERM INT HUP; echo U'P'; while true; do sleep 1000 & wait; done",
        );
        signal(&run, Signal::INT);
        read_until(&mut output, "turnCut");
        let since = Instant::now();
        signal(&run, Signal::INT);
        assert_eq!(run.wait().unwrap().code(), Some(130));
        since.elapsed()
    })
}

/// A command floods, and the program's standard output has no reader.
fn full_pipe() -> Samples {
    let place = StateDir::new();
    Samples::of(LEFT, || {
        let (mut run, output) = follow(&place, "echo U'P'; while true; do seq 1000; done");
        // A pipe holds 64 KiB in pages that are not all full.
        while rustix::io::ioctl_fionread(output.get_ref()).unwrap() < 40 * 1024 {
            std::thread::yield_now();
        }
        let since = Instant::now();
        signal(&run, Signal::TERM);
        assert_eq!(run.wait().unwrap().code(), Some(143));
        since.elapsed()
    })
}

/// Starts a run in this place's daemon and waits until its command has written `UP`.
fn follow(place: &StateDir, command: &str) -> (Child, BufReader<ChildStdout>) {
    let prompt = format!("shell: {command}");
    let mut run =
        place.command(&["run", "--json", "--policy", "all", "--model", "rehearsal", &prompt]);
    let mut run = run.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(run.stdout.take().unwrap());
    read_until(&mut output, "UP");
    (run, output)
}

fn read_until(output: &mut BufReader<ChildStdout>, mark: &str) {
    let mut line = String::new();
    while !line.contains(mark) {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "the program ended before {mark}");
    }
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// The time from spawn until the server has read the request.
fn start() -> Samples {
    Samples::of(50, || {
        let server = ModelServer::start();
        let folder = TempDir::new().unwrap();
        server.reply(Reply::text(["Hello, ", "world."]));
        let mut program = holdpoint(&folder, MODEL, "go");
        program.env("OPENAI_BASE_URL", server.base_url());
        let since = Instant::now();
        let program = program.spawn().unwrap();
        let request = server.request(0);
        succeed(program);
        request.at - since
    })
}

fn usages(rounds: usize, reply: impl Fn() -> Reply) -> Vec<Usage> {
    let run = || {
        let server = ModelServer::start();
        let folder = TempDir::new().unwrap();
        server.reply(reply());
        let report = folder.path().join("usage");
        let program = holdpoint(&folder, MODEL, "go");
        // A spawned process inherits its parent's peak, so the parent must be small.
        let mut parent = Command::new(std::env::current_exe().unwrap());
        parent.arg(USAGE_OF).arg(&report).arg(program.get_program()).args(program.get_args());
        parent.env("OPENAI_BASE_URL", server.base_url()).stdin(Stdio::null()).stderr(Stdio::null());
        let since = Instant::now();
        let mut parent = parent.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = parent.stdout.take().unwrap();
        let (mut buffer, mut bytes) = (vec![0; 64 * 1024], 0);
        loop {
            match output.read(&mut buffer).unwrap() {
                0 => break,
                more => bytes += more as u64,
            }
        }
        let wall = since.elapsed();
        succeed(parent);
        let report = fs::read_to_string(report).unwrap();
        let mut numbers = report.split(' ').map(|number| number.parse().unwrap());
        let cpu = Duration::from_micros(numbers.next().unwrap());
        Usage { cpu, memory: numbers.next().unwrap(), wall, output: bytes }
    };
    run();
    (0..rounds).map(|_| run()).collect()
}

/// The parent of the measured program, in a process of its own.
pub(crate) fn usage_of(args: &[String]) {
    let child = Command::new(&args[1]).args(&args[2..]).spawn().unwrap();
    let used = child.wait4().unwrap();
    let cpu = used.rusage.utime + used.rusage.stime;
    fs::write(&args[0], format!("{} {}", cpu.as_micros(), used.rusage.maxrss)).unwrap();
    std::process::exit(used.status.code().unwrap_or(1));
}

fn cpu(usages: &[Usage]) -> Amount {
    Samples::new(usages.iter().map(|usage| usage.cpu).collect()).median()
}

fn wall(usages: &[Usage]) -> Amount {
    Samples::new(usages.iter().map(|usage| usage.wall).collect()).median()
}

fn memory(usages: &[Usage]) -> Amount {
    let mut all: Vec<_> = usages.iter().map(|usage| usage.memory).collect();
    all.sort_unstable();
    Amount::Bytes(all[all.len() / 2])
}
