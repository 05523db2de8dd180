//! A session with an agent, like any other: several clients, exports, and limits.

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout};

use holdpoint_common::{Event, Fact, Outcome, TurnFact};

use super::calls::open_asks;
use super::{log_of, prompt, scripted};
use crate::world::{World, wait};

/// A client that is attached to the session `one`.
struct Client {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// The events so far.
    events: Vec<Event>,
}

impl Client {
    fn attach(world: &World, args: &[&str]) -> Self {
        let attach = [&["attach", "--json", "one"][..], args].concat();
        let mut child = world.command(&attach).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, events: Vec::new() }
    }

    /// Reads events until one contains this text.
    #[track_caller]
    fn wait_for(&mut self, text: &str) {
        loop {
            let line = self.lines.next().unwrap_or_else(|| panic!("no {text}: {:?}", self.events));
            let line = line.unwrap();
            self.events.push(serde_json::from_str(&line).unwrap());
            if line.contains(text) {
                return;
            }
        }
    }

    /// The facts that it has received, with their numbers.
    fn facts(&self) -> Vec<(u64, Fact)> {
        let fact = |event: &Event| Some((event.seq, event.fact()?.clone()));
        self.events.iter().filter_map(fact).collect()
    }
}

#[test]
fn m_h3_clients_attach_to_an_agent_at_work_and_answer_for_it() {
    let world = World::new();
    let agent = scripted(&world, "");
    let script = "say Begun.\nannounce echo first; until [ -e go ]; do sleep 0.02; done; echo second\n\
                  run touch made\nsay End.";
    world.run(&["new", "--name", "one", "--agent", &agent, script]).code(0);
    let mut early = Client::attach(&world, &[]);
    early.wait_for("\"type\":\"output\"");
    let mut late = Client::attach(&world, &[]);
    late.wait_for("\"type\":\"toolStarted\"");
    fs::write(world.work("go"), "").unwrap();
    for client in [&mut early, &mut late] {
        client.wait_for("\"type\":\"askRaised\"");
    }
    let [ask] = &open_asks(&world)[..] else { panic!("{}", log_of(&world)) };
    assert!(!world.work("made").exists());
    world.run(&["approve", ask]).code(0);
    for client in [&mut early, &mut late] {
        client.wait_for("\"type\":\"turnFinished\"");
    }
    assert!(world.work("made").exists());
    let facts = early.facts();
    assert_eq!(facts, late.facts());
    // A client that returns gets the rest.
    let half = facts.len() / 2;
    let mut returned = Client::attach(&world, &["--after", &facts[half - 1].0.to_string()]);
    returned.wait_for("\"type\":\"turnFinished\"");
    assert_eq!(returned.facts(), facts[half..]);
    world.run(&["close", "one"]).code(0);
    for mut client in [early, late, returned] {
        wait(&mut client.child);
    }
}

/// The command of the agent comes from the file.
#[test]
fn m_h3_a_session_of_an_agent_is_exported_and_its_import_starts_no_agent() {
    let (here, there) = (World::new(), World::new());
    let agent = scripted(&here, "");
    let script = "think Hm.\nannounce echo to-see\nrun touch made\nsay End.";
    here.run(&["new", "--name", "one", "--policy", "all", "--agent", &agent, script]).code(0);
    here.run(&["wait", "one", "--for", "idle"]).code(0);
    let log = log_of(&here);
    assert!(log.contains("to-see") && log.contains("End."), "{log}");
    let file = there.work("one.jsonl");
    here.run(&["export", "one", "-o", file.to_str().unwrap()]).code(0);
    scripted(&there, "");
    there.run(&["import", "one.jsonl"]).code(0);
    assert_eq!(log_of(&there), log, "the transcript is the same");
    let log = prompt(&there, "say Again.");
    assert!(log.contains("failed: "), "{log}");
    assert_eq!(there.agents(), 0, "{log}");
}

/// The outcome of each turn of the session `one`, with its error.
fn ends(world: &World) -> Vec<(Outcome, String)> {
    let events = world.run(&["logs", "--json", "one"]).code(0).events();
    let end = |event: &Event| match event.fact() {
        Some(Fact::Turn(TurnFact::Finished { outcome, error, .. })) => {
            Some((*outcome, error.as_deref().unwrap_or_default().to_owned()))
        }
        _ => None,
    };
    events.iter().filter_map(end).collect()
}

#[test]
fn m_h3_the_limits_of_turns_hold_for_an_agent() {
    let rules = "[rules]\nallow = [\"agent(python)\"]\n";
    for (limit, script, outcome, why) in [
        (
            "max_steps = 2\n",
            "announce touch one\nannounce touch two\nannounce touch three; sleep 1000",
            Outcome::Limit,
            "the limit of 2 steps is reached",
        ),
        // The agent reports its tokens at the end of its turn.
        ("max_turn_tokens = 1\n", "announce touch one\nannounce touch two", Outcome::Done, ""),
        ("[limits]\nmodel_silence_s = 2\n", "say Begun.\nhang", Outcome::Failed, "2 s"),
        ("[limits]\nmax_answer_bytes = 65536\n", "huge 100000", Outcome::Failed, "65536"),
    ] {
        let world = World::new();
        let agent = scripted(&world, "");
        world.config(&format!("{limit}{rules}"));
        world.run(&["new", "--name", "one", "--agent", &agent, script]).code(0);
        world.run(&["wait", "one", "--for", "idle"]).code(0);
        let [(ended, error)] = &ends(&world)[..] else { panic!("{}", log_of(&world)) };
        assert!(*ended == outcome && error.contains(why), "{limit}: {ended:?} {error}");
        assert_eq!(world.agents(), usize::from(outcome == Outcome::Done), "{limit}: it was ended");
        // The next turn starts it again.
        let log = prompt(&world, "say Again.");
        assert!(log.contains("Again."), "{limit}: {log}");
    }
}
