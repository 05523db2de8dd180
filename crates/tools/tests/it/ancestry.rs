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
        let ancestry = loop {
            let ancestry = Ancestry::of(pids[0]).unwrap();
            if ancestry.program == program {
                break ancestry;
            }
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
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
}

/// The parents of these processes end while their ancestors are read.
#[test]
fn m_g1_a_process_is_below_its_supervisor_while_its_parents_end() {
    let own = own();
    for _ in 0..rounds(20, 500) {
        // Ten chains of three processes; the first two of each end at once.
        let chain = "((setsid bash -c 'echo $$; exec sleep 1000' &) &)";
        let (processes, pids) =
            start(&format!("for i in 0 1 2 3 4 5 6 7 8 9; do {chain}; done; sleep 1000"), 10);
        for pid in pids {
            for _ in 0..20 {
                let above = Ancestry::of(pid).unwrap();
                assert_eq!(above.supervisors_not_above(&own).count(), 1, "{above:?}");
            }
        }
        processes.end();
    }
}
