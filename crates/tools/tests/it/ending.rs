//! No process of a command outlives it: all end at a cut, at a timeout, at the command's own end,
//! and with their owner.
#![cfg(target_os = "linux")]

use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use holdpoint_common::EndedProcesses;
use holdpoint_tools::testing::{Bench, Census, again, in_own_process, part, patience, rounds};
use holdpoint_tools::{
    ProcessSpec, Processes, Read, SUPERVISOR_NAME, Shell, Supervisor, ToolError,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

const GRACE: Duration = Duration::from_millis(300);

/// Commands that leave processes running, and the least number of these processes.
const TREES: [(&str, &str, usize); 13] = [
    ("plain", "sleep 1000 & sleep 1000 &", 2),
    ("setsid", "setsid sleep 1000 & setsid --fork sleep 1000", 2),
    ("double fork", "( ( sleep 1000 & ) & )", 1),
    ("nohup", "nohup sleep 1000 >/dev/null 2>&1 &", 1),
    ("disown", "sleep 1000 & disown -a; set -m; sleep 1000 & disown -a", 2),
    (
        "daemon",
        "(setsid bash -c 'cd /; exec <&- >/dev/null 2>&1; (setsid sleep 1000 &) & exit' &)",
        1,
    ),
    (
        "TERM-ignoring",
        "(trap '' TERM HUP INT; sleep 1000) & (trap '' TERM; setsid sleep 1000) &",
        2,
    ),
    ("stopped", "sleep 1000 & kill -STOP $!", 1),
    ("stopped and TERM-ignoring", "(trap '' TERM; exec sleep 1000) & sleep 0.01; kill -STOP $!", 1),
    ("pipeline", "sleep 1000 | cat | cat | cat | cat | cat | cat | cat | cat | cat &", 10),
    ("loop", "while :; do /bin/true; done &", 1),
    (
        "respawning",
        "(trap 'setsid sleep 1000 & setsid sleep 1000 & wait' TERM; while :; do sleep 0.01; done) &",
        1,
    ),
    (
        "without environment",
        "env -i $(type -p setsid) $(type -p sleep) 1000 $MARK_AS_ARGUMENT &",
        1,
    ),
];

fn bench(census: &Census) -> Bench {
    Bench::new().grace(GRACE).env("HOLDPOINT_TEST", census.mark())
}

/// The script of a tree. `sleep` refuses an argument that is not a number, so a mark there needs
/// another program.
fn script(tree: &str, census: &Census) -> String {
    let marked = format!("$(type -p bash) -c 'sleep 1000; :' {}", census.mark());
    tree.replace("$(type -p sleep) 1000 $MARK_AS_ARGUMENT", &marked)
}

#[test]
fn t_p2_nothing_is_left_after_a_cut() {
    for (name, tree, count) in TREES {
        let census = Census::new();
        let bench = bench(&census);
        let command = format!("{}\necho ready; sleep 1000", script(tree, &census));
        let calling = bench.start(Shell::new(), json!({ "command": command }));
        calling.wait_for("ready");
        // Also the supervisor, and the last sleep, which has replaced bash.
        census.wait_living(count + 2);
        calling.cut();
        let called = calling.wait();
        assert_eq!(census.living(), [], "{name}");
        assert!(
            matches!(called.result, Err(ToolError::Interrupted)),
            "{name}: {:?}",
            called.result
        );
        assert!(called.processes.not_ended.is_empty(), "{name}: {:?}", called.processes);
        assert!(called.processes.total() as usize >= count, "{name}: {:?}", called.processes);
    }
}

#[test]
fn t_p2_nothing_is_left_after_a_time_out() {
    for (name, tree, count) in TREES {
        let census = Census::new();
        let bench = bench(&census);
        let command = format!("{}\nsleep 1000", script(tree, &census));
        // A busy machine may need more time to start all processes.
        for timeout in [150, 1_500, 15_000, 150_000] {
            let called =
                bench.call(Shell::new(), json!({ "command": command, "timeout_ms": timeout }));
            assert_eq!(census.living(), [], "{name}");
            let outcome = called.result.unwrap();
            assert!(outcome.failed);
            assert!(
                outcome.output.starts_with(&format!("[timed out after {timeout} ms")),
                "{name}: {}",
                outcome.output
            );
            if called.processes.total() as usize > count {
                break;
            }
            assert!(timeout < 150_000, "{name}: {:?}", called.processes);
        }
    }
}

#[test]
fn t_p2_nothing_is_left_after_the_end_of_the_command() {
    for (name, tree, count) in TREES {
        let census = Census::new();
        let bench = bench(&census);
        let since = Instant::now();
        let called = bench
            .call(Shell::new(), json!({ "command": format!("{}\nexit 0", script(tree, &census)) }));
        // t-P4: a process that holds the output open would do so for 1,000 s.
        assert!(
            since.elapsed() < patience(),
            "{name}: the call waited for a process that holds its output open"
        );
        assert_eq!(census.living(), [], "{name}");
        assert!(!called.result.as_ref().unwrap().failed, "{name}: {:?}", called.result);
        assert!(called.processes.total() as usize >= count, "{name}: {:?}", called.processes);
    }
}

/// A program that ends its first thread while another one continues, with a child: it looks like a
/// zombie but is alive.
const FIRST_THREAD_ENDS: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static pthread_t first;

static void *other(void *unused) {
    pthread_join(first, NULL);
    puts("ready");
    fflush(stdout);
    for (;;) pause();
    return unused;
}

int main(int count, char **arguments) {
    pthread_t thread;
    if (count > 1) signal(SIGTERM, SIG_IGN);
    if (fork() == 0) for (;;) pause();
    first = pthread_self();
    pthread_create(&thread, NULL, other, arguments);
    pthread_exit(NULL);
}
"#;

#[test]
fn m_c2_a_program_whose_first_thread_has_ended_is_ended_too() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("first_thread_ends");
    // Every machine that can build this test has `cc`.
    let mut cc = std::process::Command::new("cc");
    let mut cc = cc
        .args(["-pthread", "-x", "c", "-", "-o"])
        .arg(&program)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    cc.stdin.take().unwrap().write_all(FIRST_THREAD_ENDS.as_bytes()).unwrap();
    assert!(cc.wait().unwrap().success());
    for ignored in ["", "TERM"] {
        let census = Census::new();
        let bench = bench(&census);
        let command = format!("setsid {} {ignored} & wait", program.display());
        let calling = bench.start(Shell::new(), json!({ "command": command }));
        calling.wait_for("ready");
        // The supervisor, bash, the program and its child.
        census.wait_living(4);
        calling.cut();
        let called = calling.wait();
        assert_eq!(census.living(), [], "{ignored}");
        assert!(called.processes.not_ended.is_empty(), "{ignored}: {:?}", called.processes);
        assert_eq!(called.processes.total(), 3, "{ignored}: {:?}", called.processes);
    }
}

#[test]
fn t_p2_processes_that_end_by_themselves_are_not_killed() {
    let bench = Bench::new();
    // The command ends just before the process it leaves, which then needs almost no time, even on
    // a busy machine.
    let command = "exec 3> >(touch up; exec cat > log); until [ -e up ]; do :; done; echo kept >&3";
    let called = bench.call(Shell::new(), json!({ "command": command }));
    assert_eq!(std::fs::read_to_string(bench.root().join("log")).unwrap(), "kept\n");
    assert_eq!(called.processes.total(), 0, "{:?}", called.processes);
    assert_eq!(called.result.unwrap().output, "[exit code 0]");
}

#[test]
fn t_p2_nothing_is_left_when_the_owner_is_killed() {
    if part().is_some() {
        return owned();
    }
    for (_, tree, count) in TREES {
        let census = Census::new();
        let command = format!("{}\nsleep 1000", script(tree, &census));
        let mut owner = owner(&census, &command);
        census.wait_living(count + 2);
        owner.kill().unwrap();
        owner.wait().unwrap();
        census.wait_none();
    }
}

#[test]
fn t_p2_nothing_is_left_when_the_owner_is_killed_at_any_moment() {
    if part().is_some() {
        return owned();
    }
    let rounds = rounds(15, 100);
    let all: Vec<_> = TREES.iter().map(|(_, tree, _)| *tree).collect();
    for round in 0..rounds {
        let census = Census::new();
        let mut owner =
            owner(&census, &format!("{}\nsleep 1000", script(&all.join("\n"), &census)));
        // Not a wait for an event: the moments are spread over the time that all processes take to
        // start.
        std::thread::sleep(Duration::from_micros((round * 7_919) % 60_000));
        owner.kill().unwrap();
        owner.wait().unwrap();
        census.wait_none();
    }
}

/// Starts another process that runs `command` with the shell tool until it is killed.
fn owner(census: &Census, command: &str) -> Child {
    let mut owner = again("owner").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    // The mark is not in its environment, because the owner itself must not be counted.
    let order = json!({ "mark": census.mark(), "command": command });
    writeln!(owner.stdin.as_mut().unwrap(), "{order}").unwrap();
    owner
}

/// The owner process: calls the tool.
fn owned() {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).unwrap();
    let order: serde_json::Value = serde_json::from_str(&line).unwrap();
    let bench =
        Bench::within("/").grace(GRACE).env("HOLDPOINT_TEST", order["mark"].as_str().unwrap());
    bench.call(Shell::new(), json!({ "command": order["command"] }));
}

#[test]
fn t_p1_every_command_is_gone_after_a_cut() {
    let rounds = rounds(10, 100);
    let commands =
        ["sleep 1000", "while :; do :; done", "while :; do sleep 0.001; done", TREES[9].1];
    for _ in 0..rounds {
        for command in commands {
            let census = Census::new();
            let bench = bench(&census);
            let calling = bench
                .start(Shell::new(), json!({ "command": format!("echo ready; {command} wait") }));
            calling.wait_for("ready");
            calling.cut();
            let called = calling.wait();
            assert_eq!(census.living(), []);
            assert!(called.processes.not_ended.is_empty());
        }
    }
}

#[test]
fn t_p3_a_command_has_the_grace_to_end_by_itself() {
    let bench = Bench::new().grace(patience());
    let command = "trap 'echo told; sleep 0.1; echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
    let calling = bench.start(Shell::new(), json!({ "command": command }));
    calling.wait_for("ready");
    calling.processes.end();
    let called = calling.wait();
    // The command that bash runs at that moment also receives TERM, even inside the trap; bash may
    // report this.
    let own: Vec<_> = called.output.lines().filter(|line| *line != "Terminated").collect();
    assert_eq!(own, ["ready", "told", "bye"]);
    assert_eq!(called.processes.killed, 0);
    assert!(called.processes.terminated >= 1);
}

#[test]
fn t_p3_a_stopped_command_gets_term_too() {
    let bench = Bench::new().grace(patience());
    let calling = bench.start(
        Shell::new(),
        json!({"command": "trap 'echo told; exit 0' TERM; echo ready; kill -STOP $$"}),
    );
    calling.wait_for("ready");
    let stopped = || {
        let stat = calling
            .processes
            .so_far()
            .not_ended
            .first()
            .map(|pid| std::fs::read_to_string(format!("/proc/{pid}/stat")));
        stat.is_some_and(|stat| stat.is_ok_and(|stat| stat.contains(") T ")))
    };
    while !stopped() {
        std::thread::yield_now();
    }
    calling.processes.end();
    let called = calling.wait();
    // If it were still stopped, it would have been killed at the end of its grace.
    assert!(called.output.ends_with("told\n"), "{}", called.output);
    assert_eq!(called.processes.killed, 0, "{:?}", called.processes);
}

#[test]
fn t_p3_after_the_grace_it_is_killed() {
    let command = "trap 'echo told' TERM; echo ready; while :; do sleep 0.01; done";
    // A busy machine may need more time to run the trap.
    for grace in [GRACE, 10 * GRACE, 100 * GRACE] {
        let census = Census::new();
        let bench = bench(&census).grace(grace);
        let calling = bench.start(Shell::new(), json!({ "command": command }));
        calling.wait_for("ready");
        let since = Instant::now();
        calling.processes.end();
        let called = calling.wait();
        assert!(since.elapsed() >= grace, "{:?}", since.elapsed());
        assert!(called.processes.killed >= 1, "{:?}", called.processes);
        assert_eq!(census.living(), []);
        if called.output.contains("told") {
            return;
        }
    }
    panic!("TERM was not sent before KILL");
}

#[test]
fn t_p10_another_call_of_the_same_program_is_untouched() {
    let other = Census::new();
    let untouched = bench(&other);
    let untouched = untouched
        .start(Shell::new(), json!({"command": "setsid sleep 1000.5 & echo ready; sleep 1000.5"}));
    untouched.wait_for("ready");
    other.wait_living(3);
    let before = pids(&other);
    for _ in 0..rounds(20, 100) {
        let census = Census::new();
        let bench = bench(&census);
        let calling = bench.start(
            Shell::new(),
            json!({"command": "setsid sleep 1000.5 & echo ready; sleep 1000.5"}),
        );
        calling.wait_for("ready");
        calling.cut();
        drop(calling.wait());
        assert_eq!(census.living(), []);
        assert_eq!(pids(&other), before);
    }
    untouched.cut();
    drop(untouched.wait());
    assert_eq!(other.living(), []);
}

#[test]
fn the_owner_ends_the_tree_of_a_killed_supervisor() {
    let census = Census::new();
    let bench = bench(&census);
    let command = "set -m; sleep 1000 & sleep 1000 & sleep 0.1; kill -KILL $PPID; sleep 1000";
    let called = bench.call(Shell::new(), json!({ "command": command }));
    census.wait_none();
    let outcome = called.result.unwrap();
    assert!(
        outcome.failed && outcome.output.contains("its supervisor was killed"),
        "{}",
        outcome.output
    );
    assert!(called.processes.killed >= 2, "{:?}", called.processes);
}

#[test]
fn the_owner_ends_the_tree_of_a_supervisor_killed_at_start() {
    for _ in 0..20 {
        let census = Census::new();
        let called =
            bench(&census).call(Shell::new(), json!({"command": "kill -KILL $PPID; sleep 1000"}));
        census.wait_none();
        assert!(called.result.is_err() || called.result.unwrap().failed);
    }
}

/// Ending the daemon by a part of its name must not end the supervisors, which then end its
/// processes.
#[test]
fn m_c2_a_supervisor_has_its_own_process_name() {
    let census = Census::new();
    let bench = bench(&census);
    let calling = bench.start(Shell::new(), json!({ "command": "echo ready; sleep 1000" }));
    calling.wait_for("ready");
    let (_, called) = &census.living()[0];
    assert_eq!(called.trim_end(), SUPERVISOR_NAME);
    assert!(!called.contains("holdpoint"), "{called}");
    calling.cut();
    drop(calling.wait());
}

#[test]
fn m_c2_a_stopped_supervisor_does_not_keep_its_program_alive() {
    let stopped = "setsid sleep 1000 & echo ready; until [ -e up ]; do :; done; kill -STOP $PPID;";
    for (name, command, count) in [
        ("once", format!("{stopped} sleep 1000"), 2),
        // The program ignores TERM and leaves its supervisor no time to work.
        ("ever again", format!("trap '' TERM; {stopped} while :; do kill -STOP $PPID; done"), 2),
    ] {
        let census = Census::new();
        let bench = bench(&census);
        let calling = bench.start(Shell::new(), json!({ "command": command }));
        // Output arrives only after the program was started.
        calling.wait_for("ready");
        std::fs::write(bench.root().join("up"), "").unwrap();
        wait_stopped(census.living()[0].0);
        census.wait_living(count + 1);
        calling.cut();
        let called = calling.wait();
        assert_eq!(census.living(), [], "{name}");
        assert!(called.processes.not_ended.is_empty(), "{name}: {:?}", called.processes);
        assert_eq!(called.processes.total() as usize, count, "{name}: {:?}", called.processes);
    }
}

#[test]
fn m_c2_a_supervisor_stopped_at_start_is_woken() {
    for _ in 0..20 {
        let census = Census::new();
        let bench = bench(&census);
        let command = "kill -STOP $PPID; echo ready; setsid sleep 1000 & sleep 1000";
        let calling = bench.start(Shell::new(), json!({ "command": command }));
        calling.wait_for("ready");
        calling.cut();
        assert!(calling.wait().processes.not_ended.is_empty());
        assert_eq!(census.living(), []);
    }
}

#[test]
fn m_c2_a_stopped_supervisor_ends_all_when_the_owner_is_killed() {
    if part().is_some() {
        return owned();
    }
    let census = Census::new();
    let mut owner = owner(&census, "setsid sleep 1000 & sleep 1000");
    census.wait_living(3);
    let supervisor = census.living()[0].0;
    let pid = rustix::process::Pid::from_raw(i32::try_from(supervisor).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    wait_stopped(supervisor);
    owner.kill().unwrap();
    owner.wait().unwrap();
    census.wait_none();
}

fn wait_stopped(pid: u32) {
    while !std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") T ") {
        std::thread::yield_now();
    }
}

#[test]
fn a_supervisor_that_is_asked_to_end_ends_all() {
    for signal in ["TERM", "INT", "HUP", "QUIT"] {
        let census = Census::new();
        let command = format!("setsid sleep 1000 & kill -{signal} $PPID; sleep 1000");
        let called =
            bench(&census).grace(patience()).call(Shell::new(), json!({ "command": command }));
        assert_eq!(census.living(), [], "{signal}");
        assert!(called.result.unwrap().failed, "{signal}");
        let EndedProcesses { terminated, killed, .. } = called.processes;
        assert_eq!((terminated, killed), (2, 0), "{signal}: each gets TERM first");
    }
}

#[test]
fn m_c2_a_program_that_is_starting_at_the_cut_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // A slow supervisor: it has received only a part of its order, or none.
    let supervisor = slow_supervisor(path, "touch begun; until [ -e up ]; do :; done");
    let processes = Processes::new(Supervisor::Program(supervisor), GRACE);
    let env = vec![("PATH".to_owned(), std::env::var("PATH").unwrap())];
    let spec = ProcessSpec {
        program: "touch".into(),
        args: vec!["ran".into()],
        cwd: path.to_owned(),
        env,
    };
    let starting = std::thread::spawn({
        let processes = processes.clone();
        move || processes.spawn(spec)
    });
    while !path.join("begun").exists() {
        std::thread::yield_now();
    }
    processes.end();
    std::fs::write(path.join("up"), "").unwrap();
    let error = starting.join().unwrap().unwrap_err();
    assert!(error.to_string().contains("the call has ended"), "{error}");
    assert_eq!(processes.finish(), EndedProcesses::default());
    assert!(!path.join("ran").exists());
}

/// A start that has begun needs no further descriptor, so that a lack of them can't leave it half
/// done.
#[test]
fn m_c2_a_program_that_has_been_ordered_starts_without_another_descriptor() {
    if !in_own_process() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // A slow supervisor: as much of its order has been sent as there is room for.
    let script = "until read -t 0; do :; done; mkdir begun; until [ -e up ]; do :; done";
    let processes = Processes::new(Supervisor::Program(slow_supervisor(path, script)), GRACE);
    // More than there is room for.
    let more = std::iter::repeat_n("x".repeat(100_000).into(), 5);
    let args = ["-c", "sleep 5", "bash"].into_iter().map(OsString::from).chain(more).collect();
    let env = vec![("PATH".to_owned(), std::env::var("PATH").unwrap())];
    let spec = ProcessSpec { program: "bash".into(), args, cwd: path.to_owned(), env };
    let starting = std::thread::spawn({
        let processes = processes.clone();
        move || processes.spawn(spec)
    });
    while !path.join("begun").exists() {
        std::thread::yield_now();
    }
    limit(100);
    // All descriptors but one.
    let mut taken: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
    taken.pop();
    std::fs::create_dir(path.join("up")).unwrap();
    let started = starting.join().unwrap();
    assert!(started.is_ok(), "{started:?}");
    drop(taken);
    assert_eq!(processes.finish().not_ended, [] as [u32; 0]);
    assert_no_child();
}

/// With any number of descriptors, a program that is reported as not started has not run, and no
/// process of it is left.
#[test]
fn m_c2_a_start_without_free_descriptors_leaves_no_process() {
    if !in_own_process() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for supervisor in [Supervisor::ThisProgram, Supervisor::None] {
        let mut failed = 0;
        for most in 3.. {
            let processes = Processes::new(supervisor.clone(), GRACE);
            let spec = ProcessSpec {
                program: "/bin/mkdir".into(),
                args: vec!["ran".into()],
                cwd: path.to_owned(),
                env: Vec::new(),
            };
            let before = limit(most);
            let started = processes.spawn(spec);
            limit(before);
            let ran = || path.join("ran").exists();
            match started {
                Ok(process) => {
                    assert!(process.wait_by(None).is_some_and(|exit| exit.is_success()) && ran());
                    assert_eq!(processes.finish(), EndedProcesses::default());
                    assert_no_child();
                    break;
                }
                Err(error) => {
                    assert_eq!(processes.finish(), EndedProcesses::default(), "{most}: {error}");
                    assert!(!ran(), "{most}: {error}");
                    assert_no_child();
                    failed += 1;
                }
            }
        }
        assert!(failed > 3, "{failed}");
        std::fs::remove_dir(path.join("ran")).unwrap();
    }
}

/// Limits the number of descriptors. Returns the limit before.
fn limit(most: u64) -> u64 {
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..before }).unwrap();
    before.current.unwrap()
}

#[track_caller]
fn assert_no_child() {
    let child = rustix::process::wait(rustix::process::WaitOptions::NOHANG);
    assert_eq!(child.map(drop), Err(rustix::io::Errno::CHILD));
}

/// A supervisor that runs the commands `first` before it starts to work.
fn slow_supervisor(folder: &Path, first: &str) -> PathBuf {
    let (script, supervisor) = (folder.join("script"), folder.join("supervisor"));
    let this = std::env::current_exe().unwrap();
    let text = format!("#!/bin/bash\n{first}; exec -a {SUPERVISOR_NAME} {}", this.display());
    std::fs::write(&script, text).unwrap();
    // Copied by another program: a file that this process has open for writing can't be run.
    let mut install = std::process::Command::new("install");
    assert!(install.args(["-m", "700"]).arg(script).arg(&supervisor).status().unwrap().success());
    supervisor
}

/// The supervisor does not hold the output: a reader sees that the program has closed it.
#[test]
fn a_supervisor_keeps_nothing_open_that_its_program_has_closed() {
    let census = Census::new();
    let processes = Processes::new(Supervisor::ThisProgram, GRACE);
    let script = "exec >&- 2>&-; sleep 1000";
    let env = vec![
        ("PATH".to_owned(), std::env::var("PATH").unwrap()),
        ("HOLDPOINT_TEST".to_owned(), census.mark().to_owned()),
    ];
    let args = vec!["-c".into(), script.into()];
    let mut process = processes
        .spawn(ProcessSpec { program: "/bin/sh".into(), args, cwd: "/".into(), env })
        .unwrap();
    let read = process.read_by(&mut [0; 16], Some(Instant::now() + patience())).unwrap();
    assert!(matches!(read, Read::Ended), "the output is held open");
    assert!(!census.living().is_empty(), "the program is alive");
    processes.end();
    assert_eq!(processes.finish().not_ended, [] as [u32; 0]);
    assert_eq!(census.living(), []);
}

#[test]
fn without_a_supervisor_the_group_is_ended() {
    for (name, tree, count) in [TREES[0], TREES[6], TREES[7], TREES[9]] {
        let census = Census::new();
        let bench = bench(&census).supervisor(Supervisor::None);
        let tree = tree.replace("setsid", "");
        let command = format!("{tree}\necho ready; sleep 1000");
        let calling = bench.start(Shell::new(), json!({ "command": command }));
        calling.wait_for("ready");
        census.wait_living(count + 1);
        calling.cut();
        let called = calling.wait();
        assert_eq!(census.living(), [], "{name}");
        assert!(called.processes.total() as usize > count, "{name}: {:?}", called.processes);
    }
}

fn pids(census: &Census) -> Vec<u32> {
    census.living().into_iter().map(|(pid, _)| pid).collect()
}
