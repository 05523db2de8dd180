//! Programs that are talked to over their standard input and output.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use holdpoint_common::SandboxLevel;
use holdpoint_tools::testing::{Census, patience};
use holdpoint_tools::{
    Domains, Duplex, Exit, MAX_KEPT_ERRORS, ProcessSpec, Processes, Supervisor, Widening,
};

use crate::sandbox::World;

const GRACE: Duration = Duration::from_millis(300);

fn spec(script: &str) -> ProcessSpec {
    let path = std::env::var("PATH").unwrap();
    ProcessSpec {
        program: "bash".into(),
        args: vec!["-c".into(), script.into()],
        cwd: "/".into(),
        env: vec![("PATH".to_owned(), path)],
    }
}

fn start(script: &str) -> (Processes, Duplex) {
    let processes = Processes::new(Supervisor::ThisProgram, GRACE);
    let duplex = processes.spawn_duplex(spec(script)).unwrap();
    (processes, duplex)
}

fn deadline() -> Option<Instant> {
    Some(Instant::now() + patience())
}

/// Writes a line, and returns the line that the program writes then.
fn exchange(duplex: &mut Duplex, line: &str) -> String {
    writeln!(duplex.input, "{line}").unwrap();
    let mut answer = String::new();
    BufReader::new(&mut duplex.output).read_line(&mut answer).unwrap();
    answer
}

#[test]
fn m_h2_a_program_is_talked_to_over_its_standard_streams() {
    for supervisor in [Supervisor::ThisProgram, Supervisor::None] {
        let processes = Processes::new(supervisor, GRACE);
        let script =
            "echo to the user >&2; while read -r line; do echo \"got $line\"; done; exit 3";
        let mut duplex = processes.spawn_duplex(spec(script)).unwrap();
        for line in ["one", "two", "three"] {
            assert_eq!(exchange(&mut duplex, line), format!("got {line}\n"));
        }
        let Duplex { process, input, mut output } = duplex;
        drop(input);
        assert_eq!(process.wait_by(deadline()), Some(Exit::Code(3)));
        assert_eq!(output.read(&mut [0]).unwrap(), 0, "the output has ended");
        let (exit, ended, errors) = process.finish();
        assert_eq!((exit, ended.total()), (Exit::Code(3), 0));
        assert_eq!(errors, "to the user\n");
    }
}

#[test]
fn m_h2_much_data_passes_in_both_directions_at_once() {
    let (_processes, Duplex { process, mut input, mut output }) = start("exec cat");
    let sent: Vec<u8> = (0..8_000_000_u32).map(|n| (n % 251) as u8).collect();
    let expected = sent.clone();
    let writing = std::thread::spawn(move || input.write_all(&sent));
    let mut received = Vec::new();
    output.read_to_end(&mut received).unwrap();
    writing.join().unwrap().unwrap();
    assert!(received == expected, "{} bytes", received.len());
    assert!(process.finish().0.is_success());
}

/// The supervisor must not keep an end of a pipe open.
#[test]
fn m_h2_a_stream_that_the_program_closes_is_closed() {
    let (_processes, mut duplex) = start("exec <&-; echo closed; exec >&-; sleep 1000");
    let mut output = String::new();
    duplex.output.read_to_string(&mut output).unwrap();
    assert_eq!(output, "closed\n");
    assert_eq!(duplex.input.write_all(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert_eq!(duplex.process.wait_by(Some(Instant::now())), None, "it still runs");
    let (exit, ended, _) = duplex.process.finish();
    assert_eq!((exit, ended.terminated), (Exit::Signal(15), 1));
}

#[test]
fn m_h2_a_flood_of_errors_neither_blocks_nor_fills_memory() {
    let script = "yes a long line of errors | head -c 50000000 >&2; echo done; echo last >&2; read";
    let (_processes, mut duplex) = start(script);
    let mut line = String::new();
    BufReader::new(&mut duplex.output).read_line(&mut line).unwrap();
    assert_eq!(line, "done\n");
    drop(duplex.input);
    let (_, _, errors) = duplex.process.finish();
    assert!(errors.len() <= MAX_KEPT_ERRORS && errors.starts_with("a long line"), "{errors}");
    assert!(errors.ends_with("last\n"), "{errors}");
}

#[test]
fn m_h2_a_program_that_ignores_the_end_of_its_input_is_ended_with_its_tree() {
    let census = Census::new();
    let mark = ("HOLDPOINT_TEST".to_owned(), census.mark().to_owned());
    let processes = Processes::new(Supervisor::ThisProgram, GRACE);
    let mut marked =
        spec("trap '' TERM; setsid sleep 1000 & (trap '' TERM; sleep 1000) & echo up; sleep 1000");
    marked.env.push(mark);
    let Duplex { process, input, output } = processes.spawn_duplex(marked).unwrap();
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).unwrap();
    drop(input);
    let (_, ended, _) = process.finish();
    // The supervisor ends a moment later.
    census.wait_none();
    assert!(ended.total() >= 3 && ended.killed >= 1, "{ended:?}");
    assert!(ended.not_ended.is_empty(), "{ended:?}");
    assert!(processes.spawn_duplex(spec("true")).is_ok(), "only the program was ended");
    processes.end();
    assert!(processes.spawn_duplex(spec("true")).is_err());
}

#[test]
fn m_h2_dropping_the_processes_ends_a_program_that_is_talked_to() {
    let (processes, mut duplex) = start("while read -r line; do echo \"$line\"; done");
    assert_eq!(exchange(&mut duplex, "here"), "here\n");
    drop(processes);
    let mut rest = String::new();
    duplex.output.read_to_string(&mut rest).unwrap();
    assert!(matches!(duplex.process.finish().0, Exit::Signal(15)));
}

#[test]
fn m_h2_a_program_that_does_not_exist_is_an_error() {
    for supervisor in [Supervisor::ThisProgram, Supervisor::None] {
        let processes = Processes::new(supervisor, GRACE);
        let missing = ProcessSpec { program: "no-such-program".into(), ..spec("") };
        let error = processes.spawn_duplex(missing).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}

#[test]
fn m_h2_the_streams_pass_into_every_sandbox() {
    let world = World::new();
    let script = "read -r line; echo \"got $line\"; echo secret > $BASE/outside/new; echo end >&2";
    let spec = || ProcessSpec { env: world.env(), cwd: world.path("work"), ..spec(script) };
    let mut sandboxes: Vec<_> = world
        .sandboxes()
        .into_iter()
        .map(|level| (level, world.sandbox(level, world.profile())))
        .collect();
    // With the program in front, which makes a listener for the proxy.
    let domains = Widening::Domains(Domains::parse(&["example.com".to_owned()]).unwrap());
    let bwrap = sandboxes.iter().find(|(level, _)| *level == SandboxLevel::Bwrap);
    if let Some((level, Some(sandbox))) = bwrap {
        sandboxes.push((*level, sandbox.widened(&[domains])));
    }
    assert!(!sandboxes.is_empty());
    for (level, sandbox) in sandboxes {
        let processes = Processes::new(Supervisor::ThisProgram, GRACE).sandboxed(sandbox);
        let mut duplex = processes.spawn_duplex(spec()).unwrap();
        assert_eq!(exchange(&mut duplex, "a line"), "got a line\n", "{level}");
        assert!(duplex.process.wait_by(deadline()).is_some());
        let (_, _, errors) = duplex.process.finish();
        assert!(errors.ends_with("end\n"), "{level}: {errors}");
        assert!(!world.path("outside/new").exists(), "{level}");
    }
}
