//! What starting and ending processes costs: `cargo bench -p holdpoint-tools --bench processes`.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::expect_used, clippy::panic, reason = "a benchmark")]

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{BufRead, BufReader};
    use std::os::fd::OwnedFd;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use holdpoint_tools::{Exit, Process, ProcessSpec, Processes, Supervisor, supervise_if_asked};
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    const GRACE: Duration = Duration::from_millis(500);
    /// Each says its processes and waits.
    const PLAIN: &str = "sleep 1000 & a=$!; sleep 1000 & b=$!; sleep 1000 & echo $$ $a $b $!; wait";
    const SETSID: &str =
        "setsid sleep 1000 & a=$!; setsid sleep 1000 & b=$!; setsid sleep 1000 & sleep 0.02; echo $$ $a $b $!; wait";
    const IGNORING: &str =
        "trap '' TERM; sleep 1000 & a=$!; setsid sleep 1000 & b=$!; sleep 1000 & echo $$ $a $b $!; wait; wait; wait";

    pub(super) fn main() {
        supervise_if_asked();
        if let Some(command) = std::env::args().skip_while(|arg| arg != "--own").nth(1) {
            let processes = Processes::new(Supervisor::ThisProgram, GRACE);
            let mut process = start(&processes, &command);
            println!("{}", line(&mut process));
            let _ = process.wait_by(None);
            return;
        }
        for (name, supervisor) in [("supervised", Supervisor::ThisProgram), ("group only", Supervisor::None)] {
            report(&format!("{name}: bash -c true, start to finished"), 300, || {
                let since = Instant::now();
                let processes = Processes::new(supervisor.clone(), GRACE);
                let process = start(&processes, "true");
                assert!(process.wait_by(None).is_some_and(Exit::is_success));
                let _ = processes.finish();
                since.elapsed()
            });
        }
        report("bare: bash -c true by Command", 300, || {
            let since = Instant::now();
            let _ = Command::new("bash").args(["-c", "true"]).output().unwrap();
            since.elapsed()
        });
        for (name, command, rounds) in [
            ("plain tree", PLAIN, 200),
            ("setsid tree", SETSID, 100),
            ("TERM-ignoring tree, less the grace", IGNORING, 10),
        ] {
            let less = if command == IGNORING { GRACE } else { Duration::ZERO };
            let mut told = Vec::new();
            report(&format!("end: {name}, to the last process's end"), rounds, || {
                let processes = Processes::new(Supervisor::ThisProgram, GRACE);
                let mut process = start(&processes, command);
                let watched = watch(&line(&mut process));
                let since = Instant::now();
                processes.end();
                wait_all(&watched);
                let gone = since.elapsed();
                assert!(processes.finish().left.is_empty());
                told.push(since.elapsed() - less);
                gone - less
            });
            show("     … and finish() has returned", &mut told);
        }
        for (name, command, rounds) in
            [("plain", PLAIN, 50), ("setsid", SETSID, 50), ("TERM-ignoring, less the grace", IGNORING, 10)]
        {
            let less = if command == IGNORING { GRACE } else { Duration::ZERO };
            report(&format!("owner SIGKILLed: {name}, to the last process's end"), rounds, || {
                let mut owner = Command::new(std::env::current_exe().unwrap())
                    .args(["--own", command])
                    .stdout(Stdio::piped())
                    .spawn()
                    .unwrap();
                let mut pids = String::new();
                BufReader::new(owner.stdout.take().unwrap()).read_line(&mut pids).unwrap();
                let watched = watch(&pids);
                let since = Instant::now();
                owner.kill().unwrap();
                wait_all(&watched);
                let gone = since.elapsed();
                owner.wait().unwrap();
                gone - less
            });
        }
    }

    fn start(processes: &Processes, command: &str) -> Process {
        let env = holdpoint_tools::environment::allowed(std::env::vars());
        let args = vec!["-c".into(), command.into()];
        processes.spawn(ProcessSpec { program: "bash".into(), args, cwd: "/".into(), env }).unwrap()
    }

    fn line(process: &mut Process) -> String {
        let mut line = String::new();
        BufReader::with_capacity(1, process).read_line(&mut line).unwrap();
        line
    }

    fn watch(pids: &str) -> Vec<OwnedFd> {
        let pids = pids.split_whitespace().map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap());
        let watched: Vec<_> = pids.map(|pid| pidfd_open(pid, PidfdFlags::empty()).unwrap()).collect();
        assert_eq!(watched.len(), 4);
        watched
    }

    fn wait_all(watched: &[OwnedFd]) {
        for one in watched {
            poll(&mut [PollFd::new(one, PollFlags::IN)], None).unwrap();
        }
    }

    fn report(name: &str, rounds: usize, mut round: impl FnMut() -> Duration) {
        round();
        let mut took: Vec<_> = (0..rounds).map(|_| round()).collect();
        show(name, &mut took);
    }

    fn show(name: &str, took: &mut [Duration]) {
        took.sort();
        let at = |part: usize| took[(took.len() - 1) * part / 100];
        println!("{name:<58} median {:>9.3?}  p99 {:>9.3?}  ({} rounds)", at(50), at(99), took.len());
    }
}
