//! `loop` in the foreground: lines for iterations and events, the progress line, and the exit code.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc;

use holdpoint_common::api::{Inbox, SessionList};
use holdpoint_common::{Event, Fact, RunFact, SessionFact, TurnFact};
use rustix::process::{Pid, Signal, kill_process};

use super::looping::plays;
use super::pty::{ASKED, Terminal};
use crate::world::{World, patience, wait};

/// A run in the foreground and the lines of its standard error.
struct Followed {
    child: Child,
    lines: mpsc::Receiver<String>,
    /// The session's id.
    session: String,
}

impl Followed {
    fn begin(world: &World, args: &[&str], script: &str) -> Self {
        let mut command = world.command(&[&["loop", "--goal", &plays(script)], args].concat());
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let (err, (sender, lines)) = (child.stderr.take().unwrap(), mpsc::channel());
        std::thread::spawn(move || {
            BufReader::new(err).lines().try_for_each(|line| sender.send(line.unwrap()))
        });
        let mut followed = Self { child, lines, session: String::new() };
        let first = followed.until("session: ");
        followed.session = first.rsplit_once('(').unwrap().1.trim_end_matches(')').to_owned();
        followed
    }

    /// Waits for the next line that contains `text`.
    #[track_caller]
    fn until(&mut self, text: &str) -> String {
        let mut before = Vec::new();
        loop {
            match self.lines.recv_timeout(patience()) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => before.push(line),
                Err(why) => panic!("no {text:?} ({why}): {before:#?}"),
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    #[track_caller]
    fn end(mut self, code: i32) {
        assert_eq!(wait(&mut self.child).code(), Some(code));
    }
}

/// Kills the program when a test fails: it must not outlive its world and start another daemon.
impl Drop for Followed {
    fn drop(&mut self) {
        // The program may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn m_d5_each_event_that_concerns_the_user_is_printed_at_once() {
    let world = World::new();
    world.config("[limits]\nrun_retry_ms = 1\n");
    let mut run = Followed::begin(
        &world,
        &["--max-iterations", "70", "--max-tokens", "1000000"],
        "fail out of order",
    );
    let first = run.until("#1 ");
    assert!(
        // There are no tasks, so no count is shown.
        first.starts_with("#1 failed (")
            && first.contains("out of order): ")
            && !first.contains('✓'),
        "{first}"
    );
    // The delay is 1 s, or 0 s if the line is late.
    let next = run.until("begins");
    assert!(next.starts_with("the next iteration begins in ") && next.ends_with(" s"), "{next}");
    run.until("#3 failed (");
    assert_eq!(run.until("PAUSED"), "⏸ PAUSED: 3 failures in a row");
    world.run(&["prompt", &run.session, "mind the port"]).code(0);
    run.until("queued, prompt 1: mind the port");
    world.run(&["release", &run.session]).code(0);
    assert_eq!(run.until("▶"), "▶ released");
    assert_eq!(run.until("limits"), "new limits: 70 iterations, 1000000 tokens");
    run.until("prompt 1 is delivered to iteration 4");
    run.until("#4 failed (");
    world.run(&["interrupt", &run.session]).code(0);
    run.until("run interrupted: ");
    run.end(130);
}

#[test]
fn m_a6_asks_of_a_run_wait_for_an_answer_from_any_client() {
    let world = World::new();
    let mut run = Followed::begin(&world, &[], "shell: touch made");
    run.until("asks: wait (any client can answer: see `holdpoint inbox`)");
    run.until("⏸ shell: ");
    let inbox: Inbox = serde_json::from_str(&world.run(&["inbox", "--json"]).code(0).out).unwrap();
    world.run(&["approve", &inbox.asks[0].ask.id.to_string()]).code(0);
    run.until("approved");
    run.until("#1 done: ");
    run.end(0);
    assert!(world.work("made").exists());
}

#[test]
fn m_a6_a_run_whose_asks_were_denied_exits_with_3() {
    let world = World::new();
    let mut run = Followed::begin(&world, &["--asks", "deny"], "shell: touch made");
    run.until("#1 done: ");
    run.end(3);
    assert!(!world.work("made").exists());
}

#[test]
fn m_c6_a_follower_sees_the_receipt_of_an_interrupt() {
    let world = World::new();
    let mut run = Followed::begin(&world, &["--policy", "all"], "shell: sleep 1000");
    run.until("asks: ");
    while !world.census.living().iter().any(|(_, what)| what.starts_with("sleep")) {
        std::thread::yield_now();
    }
    world.run(&["prompt", &run.session, "mind the port"]).code(0);
    run.signal(Signal::INT);
    let mut output = String::new();
    while !output.contains("run interrupted") {
        output = output + &run.until("") + "\n";
    }
    for line in [
        "Agent interrupted\n",
        "  1 tool stopped, ",
        "handed back, prompt 1: mind the port\n",
        "#1 interrupted",
    ] {
        assert!(output.contains(line), "no {line:?}: {output}");
    }
    run.end(130);
}

#[test]
fn m_b10_a_closed_run_exits_with_130() {
    let world = World::new();
    let mut run = Followed::begin(&world, &["--policy", "all"], "shell: touch begun; sleep 1000");
    while !world.work("begun").exists() {
        std::thread::yield_now();
    }
    world.run(&["close", &run.session]).code(0);
    run.until("#1 interrupted (session closed from the command line (pid ");
    run.end(130);
}

#[test]
fn m_b10_term_interrupts_and_a_terminal_that_is_gone_leaves_the_run_alone() {
    for (signal, code, goes_on) in [(Signal::TERM, 143, false), (Signal::HUP, 129, true)] {
        let world = World::new();
        let run = Followed::begin(&world, &["--policy", "all"], "shell: touch begun; sleep 1000");
        let session = run.session.clone();
        while !world.work("begun").exists() {
            std::thread::yield_now();
        }
        run.signal(signal);
        run.end(code);
        let listed: SessionList =
            serde_json::from_str(&world.run(&["list", "--json"]).code(0).out).unwrap();
        let listed = listed.sessions.iter().find(|listed| listed.id.as_str() == session).unwrap();
        assert_eq!(listed.run.is_some(), goes_on, "{signal:?}");
    }
}

#[test]
fn m_d5_on_a_terminal_the_last_line_shows_progress_and_a_running_clock() {
    let world = World::new();
    std::fs::write(world.work("tasks.md"), "- first\n- second\n").unwrap();
    let goal =
        plays("call tasks {\"action\": \"start\"}\n---\ncall tasks {\"action\": \"finish\"}\nhang");
    let mut terminal = Terminal::run(&world, &["loop", "--goal", &goal, "--tasks", "tasks.md"]);
    let bar = "[██████████░░░░░░░░░░]  ✓1 ●0 ○1  Iteration #1  ";
    terminal.wait_for(bar);
    // The model is silent, so only the clock changes.
    let clock = |text: &str| {
        text.split_once(bar).map(|(_, clock)| clock.chars().take(8).collect::<String>())
    };
    for _ in 0..3 {
        let was = clock(&terminal.text());
        terminal.wait_until("a later time", |text| clock(text) > was);
    }
    let session =
        serde_json::from_str::<SessionList>(&world.run(&["list", "--json"]).code(0).out).unwrap();
    world.run(&["hold", session.sessions[0].id.as_str()]).code(0);
    terminal.wait_for("tokens  PAUSING...");
    assert_eq!(
        terminal.text().matches("Iteration #1").count(),
        1,
        "one line of it: {}",
        terminal.text()
    );
    terminal.press("\u{3}");
    terminal.wait_for("run interrupted: 1 iteration, ");
    terminal.end(130);
    assert!(!terminal.text().contains("░"), "the line was not replaced: {}", terminal.text());
}

#[test]
fn m_d5_without_a_terminal_each_iteration_is_one_line() {
    let world = World::new();
    let ran = world.run(&["loop", "--policy", "all", "--goal", &plays("say Well.")]).code(0);
    let lines: Vec<_> = ran.err.lines().filter(|line| !line.contains(": ")).collect();
    assert!(lines.is_empty() && !ran.err.contains('\u{1b}') && !ran.err.contains("░"), "{ran:#?}");
    assert_eq!(ran.err.lines().filter(|line| line.starts_with("#1 done: ")).count(), 1, "{ran:#?}");
}

#[test]
fn m_b10_an_interrupt_ends_the_run_and_exits_with_130() {
    let world = World::new();
    let goal = plays("hang");
    let mut child = world.command(&["loop", "--json", "--goal", &goal]).spawn().unwrap();
    let mut events = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    let mut facts =
        || events.find_map(|line| serde_json::from_str::<Event>(&line).unwrap().fact().cloned());
    while !matches!(facts(), Some(Fact::Turn(TurnFact::StepStarted))) {}
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    while !matches!(facts(), Some(Fact::Run(RunFact::Finished { .. }))) {}
    assert_eq!(wait(&mut child).code(), Some(130));
}

/// Apart from deltas, the output has exactly the facts of the log, in order.
#[test]
fn m_d5_as_json_every_event_of_a_run_is_a_line() {
    let world = World::new();
    std::fs::write(world.work("tasks.md"), "- one\n- two\n").unwrap();
    let goal = plays(
        "call tasks {\"action\": \"start\"}\n---\ncall tasks {\"action\": \"finish\"}\nsay Well.",
    );
    let ran = world.run(&["loop", "--json", "--goal", &goal, "--tasks", "tasks.md"]).code(0);
    let events = ran.events();
    assert!(events.is_sorted_by(|one, next| one.seq < next.seq), "in order, each once");
    assert!(events.iter().any(|event| event.delta().is_some()), "text comes as it is said");
    let session = ran.err.lines().next().unwrap().rsplit_once('(').unwrap().1.trim_end_matches(')');
    let logged = world.run(&["logs", "--json", session]).code(0).events();
    let facts = |events: &[Event]| {
        events.iter().filter(|event| event.fact().is_some()).cloned().collect::<Vec<_>>()
    };
    assert_eq!(facts(&events), facts(&logged));
    let facts: Vec<_> = events.iter().filter_map(Event::fact).collect();
    assert!(
        matches!(facts[0], Fact::Session(SessionFact::Opened { .. }))
            && matches!(facts.last(), Some(Fact::Session(SessionFact::Closed { .. })))
    );
    assert_eq!(
        facts
            .iter()
            .filter(|fact| matches!(fact, Fact::Run(RunFact::IterationStarted { .. })))
            .count(),
        2
    );
}

/// With `--json`, no key answers and nothing is shown between the lines. Other commands answer the
/// asks.
#[test]
fn m_d5_with_json_asks_are_lines_even_on_a_terminal() {
    let world = World::new();
    let mut terminal =
        Terminal::run(&world, &["loop", "--json", "--goal", &plays("shell: touch made")]);
    terminal.wait_for("\"askRaised\"");
    terminal.press("y");
    let inbox: Inbox = serde_json::from_str(&world.run(&["inbox", "--json"]).code(0).out).unwrap();
    world.run(&["deny", &inbox.asks[0].ask.id.to_string()]).code(0);
    terminal.end(0);
    assert!(
        !terminal.text().contains("[Y]") && !terminal.text().contains("Iteration #"),
        "{}",
        terminal.text()
    );
    assert!(!world.work("made").exists());
    let both = world.run(&["loop", "--json", "--detach", "--goal", "x"]).code(2);
    assert!(both.err.contains("--detach"), "{}", both.err);
}

#[test]
fn m_d5_on_a_terminal_a_hold_is_printed_and_stays_visible() {
    let world = World::new();
    let goal = plays("call tasks {\"action\": \"add\", \"titles\": [\"more\"]}");
    for key in ["\u{3}", "\u{1b}"] {
        let mut terminal =
            Terminal::run(&world, &["loop", "--goal", &goal, "--max-iterations", "1"]);
        terminal.wait_for("\n⏸ PAUSED: 1 iteration\n");
        terminal.wait_for("tokens  ⏸ PAUSED");
        // No turn is open between two iterations.
        terminal.press(key);
        terminal.wait_for("run interrupted: 1 iteration, ");
        terminal.end(130);
    }
}

#[test]
fn m_a10_on_a_terminal_keys_answer_the_asks_of_a_run() {
    let world = World::new();
    let mut terminal = Terminal::run(&world, &["loop", "--goal", &plays("shell: touch made")]);
    terminal.wait_for(ASKED);
    let text = terminal.text();
    assert!(
        text.matches("⏸ shell: ").count() == 1 && !text.contains("Iteration #1"),
        "shown once, and alone: {text}"
    );
    terminal.press_until("y", "run done: 1 iteration, ");
    terminal.end(0);
    assert!(world.work("made").exists());
}

#[test]
fn m_a10_esc_ends_the_run() {
    let world = World::new();
    let goal = plays("shell: echo up; sleep 1000");
    let mut terminal = Terminal::run(&world, &["loop", "--policy", "all", "--goal", &goal]);
    terminal.wait_for("Iteration #1");
    terminal.press("\x1b");
    terminal.wait_for("run interrupted: ");
    terminal.end(130);
    world.census.wait_none();
}

/// The run is over when its output breaks, and the open turn belongs to another client.
#[test]
fn m_b2_a_loop_without_a_reader_cuts_no_turn_of_others() {
    let world = World::new();
    let goal = plays("shell: touch up; until test -e go; do sleep 0.01; done");
    let mut child =
        world.command(&["loop", "--json", "--policy", "all", "--goal", &goal]).spawn().unwrap();
    while !world.work("up").exists() {
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
    std::fs::write(world.work("go"), "").unwrap();
    let listed =
        serde_json::from_str::<SessionList>(&world.run(&["list", "--json"]).code(0).out).unwrap();
    let session = listed.sessions[0].id.to_string();
    world.run(&["wait", &session, "--for", "idle", "--timeout", "30s"]).code(0);
    world.run(&["prompt", &session, "hang"]).code(0);
    drop(child.stdout.take());
    kill_process(Pid::from_child(&child), Signal::CONT).unwrap();
    assert_eq!(wait(&mut child).code(), Some(141));
    assert_eq!(world.json(&["show", &session, "--json"])["status"], "running");
    world.run(&["interrupt", &session]).code(0);
}
