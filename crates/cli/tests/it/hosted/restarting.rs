//! A hosted agent after the end of its process: it continues its own session, or gets the
//! conversation as text.

use std::time::Instant;

use holdpoint_common::{AgentStart, Event, Fact, TurnFact};
use rustix::process::{Signal, kill_process};

use super::{prompt, scripted};
use crate::world::{World, patience};

/// How the agent was started, each time.
pub(super) fn starts(world: &World) -> Vec<(String, AgentStart)> {
    let events = world.run(&["logs", "--json", "one"]).code(0).events();
    let start = |event: &Event| match event.fact() {
        Some(Fact::Turn(TurnFact::AgentStarted { session, how })) => Some((session.clone(), *how)),
        _ => None,
    };
    events.iter().filter_map(start).collect()
}

#[test]
fn m_h3_an_agent_continues_its_session_after_an_interrupt_and_a_killed_daemon() {
    let world = World::new();
    let agent = scripted(&world, "");
    world.run(&["new", "--agent", &agent, "--name", "one", "say One."]).code(0);
    world.run(&["wait", "one"]).code(0);
    prompt(&world, "say Two.");
    assert_eq!(starts(&world).len(), 1, "it keeps running between turns");
    world.run(&["prompt", "one", "run touch made"]).code(0);
    world.run(&["wait", "one", "--for", "ask"]).code(0);
    world.run(&["interrupt", "one"]).code(0);
    let log = prompt(&world, "session");
    let [(own, AgentStart::New), (loaded, AgentStart::Loaded)] = &starts(&world)[..] else {
        panic!("{log}");
    };
    assert!(own == loaded && log.contains(&format!("session={own}")), "{log}");
    assert!(log.contains("started again, and continues its session"), "{log}");
    // The conversation that the agent sends again is not shown again.
    assert!(!log.contains("an old answer"), "{log}");
    world.run(&["prompt", "one", "run touch made"]).code(0);
    world.run(&["wait", "one", "--for", "ask"]).code(0);
    kill_process(world.daemon().unwrap(), Signal::KILL).unwrap();
    world.run(&["wait", "one"]).code(0);
    world.run(&["release", "one"]);
    let log = prompt(&world, "session");
    assert_eq!(starts(&world).len(), 3, "{log}");
    assert_eq!(log.matches(&format!("session={own}")).count(), 2, "{log}");
    assert!(!world.work("made").exists());
}

#[test]
fn m_h3_an_agent_that_cannot_continue_gets_the_conversation_as_text() {
    let world = World::new();
    let agent = scripted(&world, "no-load");
    let open = ["new", "--agent", &agent, "--name", "one", "say The first answer."];
    world.run(&open).code(0);
    world.run(&["wait", "one"]).code(0);
    kill_process(world.daemon().unwrap(), Signal::KILL).unwrap();
    let log = prompt(&world, "repeat everything");
    let heard = log.split("heard: ").nth(1).expect("the agent repeats its prompt");
    for part in ["User: say The first answer.", "You: The first answer.", "repeat everything"] {
        assert!(heard.contains(part), "{part}: {log}");
    }
    assert!(log.contains("it got the conversation so far as text"), "{log}");
    let hows: Vec<_> = starts(&world).into_iter().map(|(_, how)| how).collect();
    assert_eq!(hows, [AgentStart::New, AgentStart::Replayed]);
}

/// The request for the next turn then has both prompts as one, and nothing before it.
#[test]
fn m_h3_an_agent_that_lost_its_session_before_its_first_answer_is_said_to_have_another() {
    let world = World::new();
    let agent = scripted(&world, "no-load");
    world.run(&["new", "--agent", &agent, "--name", "one", "until answered"]).code(0);
    let by = Instant::now() + patience();
    while starts(&world).is_empty() {
        assert!(Instant::now() < by, "the agent starts");
    }
    kill_process(world.daemon().unwrap(), Signal::KILL).unwrap();
    std::fs::write(world.work("answered"), "").unwrap();
    world.run(&["wait", "one", "--for", "idle"]).code(0);
    let log = prompt(&world, "repeat everything");
    let heard = log.split("heard: ").nth(1).expect("the agent repeats its prompt");
    assert!(heard.contains("until answered") && heard.contains("repeat everything"), "{log}");
    assert!(log.contains("it got the conversation so far as text"), "{log}");
    let hows: Vec<_> = starts(&world).into_iter().map(|(_, how)| how).collect();
    assert_eq!(hows, [AgentStart::New, AgentStart::Replayed]);
}

#[test]
fn m_h3_each_iteration_of_a_run_is_a_new_session_of_the_agent() {
    let world = World::new();
    let agent = scripted(&world, "");
    let tasks = world.path("tasks");
    std::fs::write(&tasks, "one\ntwo\n").unwrap();
    let run = ["loop", "--agent", &agent, "--name", "one", "--max-iterations", "2"];
    let run = [&run[..], &["--goal", "go", "--tasks", tasks.to_str().unwrap()]].concat();
    let mut child = world.command(&run).spawn().unwrap();
    // The session may not be open yet.
    let by = Instant::now() + patience();
    while world.run(&["wait", "one", "--for", "hold"]).code != Some(0) {
        assert!(Instant::now() < by, "the run is held after two iterations");
    }
    let starts = starts(&world);
    let [(first, AgentStart::New), (second, AgentStart::New)] = &starts[..] else {
        panic!("{starts:?}");
    };
    assert_ne!(first, second);
    world.run(&["close", "one"]).code(0);
    child.wait().unwrap();
}
