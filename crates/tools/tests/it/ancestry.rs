//! The supervisors above a process, however the process was started.

use std::io::{BufRead, BufReader, ErrorKind};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use holdpoint_tools::testing::{patience, rounds};
use holdpoint_tools::{Ancestry, ProcessSpec, Processes, Read, SUPERVISOR_NAME, Supervisor};
use rustix::process::{Pid, Signal, kill_process};

const GRACE: Duration = Duration::from_millis(300);

/// Starts a script below a labelled supervisor and returns the `count` process ids that it prints.
fn start(script: &str, count: usize) -> (Processes, Vec<u32>) {
    let processes = Processes::labelled(Supervisor::ThisProgram, GRACE, "the-label");
    let spec = ProcessSpec {
        program: "bash".into(),
        args: vec!["-c".into(), script.into()],
        cwd: "/".into(),
        env: vec![("PATH".to_owned(), std::env::var("PATH").unwrap())],
    };
    let mut process = processes.spawn(spec).unwrap();
    let (mut text, mut buffer) = (String::new(), [0; 256]);
    while text.lines().count() < count || !text.ends_with('\n') {
        match process.read_by(&mut buffer, Some(Instant::now() + patience())).unwrap() {
            Read::Bytes(read) => text.push_str(str::from_utf8(&buffer[..read]).unwrap()),
            other => panic!("{other:?} after {text}"),
        }
    }
    (processes, text.lines().map(|pid| pid.parse().unwrap()).collect())
}

/// The supervisors above this process, which are there if a tool runs the tests.
fn own() -> Ancestry {
    Ancestry::of_this_process().unwrap()
}

#[test]
fn m_g1_a_process_is_below_its_supervisor_whatever_it_does() {
    for (script, program) in [
        ("echo $$; exec sleep 1000", "sleep"),
        ("setsid bash -c 'echo $$; exec sleep 1000'", "sleep"),
        ("env -i setsid bash -c 'echo $$; exec -a x sleep 1000'", "sleep"),
        // Its parent ends before it prints.
        (
            "(p=$BASHPID; setsid bash -c \"while kill -0 $p 2> /dev/null; do :; done
              echo \\$\\$; exec sleep 1000\" &); sleep 1000",
            "sleep",
        ),
        // It gives itself the name of a supervisor.
        (
            "echo $$; printf tool-supervisor > /proc/$$/comm; read < <(sleep 1000)",
            "tool-supervisor",
        ),
    ] {
        let (processes, pids) = start(script, 1);
        let by = Instant::now() + patience();
        let ancestry = loop {
            let ancestry = Ancestry::of(pids[0]).unwrap();
            if ancestry.program == program {
                break ancestry;
            }
            assert!(Instant::now() < by, "{script}: {ancestry:?}");
        };
        let own = own();
        let above: Vec<_> = ancestry.supervisors_not_above(&own).collect();
        assert_eq!(above.len(), 1, "{script}: {ancestry:?}");
        assert_eq!(above[0].parent, std::process::id(), "{script}");
        assert_eq!(above[0].label().as_deref(), Some("the-label"), "{script}");
        assert_eq!(own.supervisors_not_above(&ancestry).count(), 0, "{script}");
        processes.end();
    }
}

#[test]
fn m_g1_a_process_without_a_supervisor_has_none_above_it() {
    // The name of its command line is not the name of the process.
    let mut child = Command::new("bash")
        .args(["-c", &format!("exec -a {SUPERVISOR_NAME} bash -c 'sleep 1000 & echo $!; wait'")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let pid: u32 = line.trim().parse().unwrap();
    let own = own();
    assert_eq!(Ancestry::of(pid).unwrap().supervisors_not_above(&own).count(), 0);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(Ancestry::of(child.id()).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(Ancestry::of(0).unwrap_err().kind(), ErrorKind::InvalidInput);
    kill_process(self::pid(pid), Signal::KILL).unwrap();
}

/// The parents of these processes end while their ancestors are read.
#[test]
fn m_g1_a_process_is_below_its_supervisor_while_its_parents_end() {
    let own = own();
    for _ in 0..rounds(20, 500) {
        let chain = "(echo $BASHPID; (echo $BASHPID; setsid bash -c 'echo $$; exec sleep 1000' & wait) & wait) &";
        // Bash reports killed jobs, but its output has no reader by then.
        let (processes, pids) = start(&format!("exec 2> /dev/null; {chain} wait; sleep 1000"), 3);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                while Ancestry::of(pids[0]).is_ok() || Ancestry::of(pids[1]).is_ok() {
                    let above = Ancestry::of(pids[2]).unwrap();
                    assert_eq!(above.supervisors_not_above(&own).count(), 1, "{above:?}");
                }
            });
            for parent in &pids[..2] {
                kill_process(pid(*parent), Signal::KILL).unwrap();
            }
            reader.join().unwrap();
        });
        let above = Ancestry::of(pids[2]).unwrap();
        assert_eq!(above.supervisors_not_above(&own).count(), 1, "{above:?}");
        processes.end();
    }
}

/// A command can lower the limits of its supervisor, but the supervisor does not end by that, and
/// the command ends with its call.
#[test]
fn m_g1_a_supervisor_without_descriptors_stays_above_its_processes() {
    for files in [0, 3, 6, 10] {
        let script = "echo $$; setsid bash -c 'echo $$; exec sleep 1000' & sleep 1000";
        let (processes, pids) = start(script, 2);
        let (below, own) = (*pids.iter().max().unwrap(), own());
        let supervisor = Ancestry::of(below).unwrap().supervisors.remove(0);
        let limit = [format!("--nofile={files}"), "--pid".to_owned(), supervisor.pid.to_string()];
        assert!(Command::new("prlimit").args(limit).status().unwrap().success());
        // The supervisor is woken.
        kill_process(pid(*pids.iter().min().unwrap()), Signal::KILL).unwrap();
        for _ in 0..100 {
            let Ok(above) = Ancestry::of(below) else { break };
            assert_eq!(above.supervisors_not_above(&own).next(), Some(&supervisor), "{files}");
            std::thread::sleep(Duration::from_millis(1));
        }
        processes.end();
        let state = || std::fs::read_to_string(format!("/proc/{below}/stat")).unwrap_or_default();
        let by = Instant::now() + patience();
        while !state().is_empty() && !state().contains(") Z ") {
            assert!(Instant::now() < by, "it is alive: {}", state());
            std::thread::yield_now();
        }
    }
}

fn pid(id: u32) -> Pid {
    Pid::from_raw(id.try_into().unwrap()).unwrap()
}
