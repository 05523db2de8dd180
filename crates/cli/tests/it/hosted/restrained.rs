//! The start of agents that the sandbox does not restrain, and the policy `readonly`.

use std::fs;

use rustix::process::{Signal, kill_process};

use super::calls::open_asks;
use super::{log_of, plain, prompt, scripted};
use crate::world::World;

/// Waits for an ask of the session `one`, and returns its id.
fn asked(world: &World) -> String {
    world.run(&["wait", "one"]).code(0);
    open_asks(world).remove(0)
}

#[test]
fn m_h3_the_start_of_an_agent_without_a_sandbox_is_asked_about_once_per_session() {
    let world = World::new();
    let agent = scripted(&world, "no-load");
    world.config("");
    world.run(&["new", "--name", "one", "--agent", &agent, "announce touch made"]).code(0);
    let ask = asked(&world);
    let shown = world.run(&["inbox", "--json"]).code(0).out;
    assert!(shown.contains("Start the agent python without a sandbox?"), "{shown}");
    assert!(shown.contains("it has your permissions"), "{shown}");
    assert!(shown.contains("agent.py no-load"), "{shown}");
    world.run(&["deny", &ask]).code(0);
    world.run(&["wait", "one"]).code(0);
    let log = log_of(&world);
    assert!(log.contains("its start was not approved"), "{log}");
    assert!(!world.work("made").exists());

    world.run(&["prompt", "one", "pid"]).code(0);
    world.run(&["approve", &asked(&world)]).code(0);
    world.run(&["wait", "one"]).code(0);
    // Neither the next turn asks again, nor the first one after a restart.
    prompt(&world, "say Second.");
    kill_process(world.daemon().unwrap(), Signal::KILL).unwrap();
    let log = prompt(&world, "repeat everything");
    assert!(log.contains("pid=") && log.contains("Second."), "{log}");
    assert_eq!(log.matches("Start the agent python without a sandbox?").count(), 2, "{log}");
    // It gets the conversation as text, without the calls that asked.
    let heard = log.split("heard: ").nth(1).expect("the agent repeats its prompt");
    assert!(heard.contains("User: say Second."), "{log}");
    assert!(!heard.contains("start python") && !heard.contains("Result"), "{log}");
}

#[test]
fn m_h3_a_policy_answers_the_start_of_an_agent() {
    let world = World::new();
    let agent = plain(&world);
    world.config("");
    let run = |args: &[&str]| {
        let base = ["run", "--agent", &agent, "--asks", "deny"];
        world.run(&[&base[..], args, &["say Started."]].concat())
    };
    let ran = run(&[]);
    assert!(ran.code != Some(0) && ran.err.contains("rule `agent(python3)`"), "{ran:#?}");
    for args in [&["--policy", "all"][..], &["--allow", "agent(python*)"]] {
        let ran = run(args).code(0);
        assert!(ran.out.contains("Started.") && !ran.err.contains("Start the agent"), "{ran:#?}");
    }
    // A rule for the calls of agents does not allow the start.
    for args in [&["--allow", "agent"][..], &["--policy", "all", "--deny", "agent(python3)"]] {
        let ran = run(args);
        assert!(ran.code != Some(0) && !ran.out.contains("Started."), "{ran:#?}");
    }
    run(&["--allow", "agent(*)"]).code(2);
}

#[test]
fn m_h3_readonly_is_refused_for_an_agent_without_a_sandbox() {
    let world = World::new();
    let agent = scripted(&world, "");
    let ran = world.run(&["run", "--policy", "readonly", "--agent", &agent, "say A."]);
    assert!(ran.code != Some(0) && ran.err.contains("hint: use another policy"), "{ran:#?}");
    world.run(&["new", "--name", "one", "--agent", &agent, "say One."]).code(0);
    world.run(&["wait", "one"]).code(0);
    world.run(&["policy", "set", "one", "readonly"]).code(0);
    world.run(&["prompt", "one", "say Two."]).code(0);
    world.run(&["wait", "one"]).code(0);
    let log = log_of(&world);
    assert!(log.contains("can't keep an agent from changing files"), "{log}");
    assert!(!log.contains("Two.\n  "), "{log}");
    world.run(&["policy", "set", "one", "ask"]).code(0);
    assert!(prompt(&world, "say Three.").contains("Three."));
}

#[test]
fn m_h3_readonly_makes_the_workspace_read_only_for_an_agent() {
    for level in ["bwrap", "landlock"] {
        let world = World::new();
        let agent = plain(&world);
        world.config(&format!("[sandbox]\nlevel = \"{level}\"\n"));
        fs::write(world.work("read"), "").unwrap();
        let open = ["new", "--name", "one", "--policy", "readonly", "--agent", &agent];
        world.run(&[&open[..], &["write first x\nlist ."]].concat()).code(0);
        world.run(&["wait", "one"]).code(0);
        let log = log_of(&world);
        assert!(log.contains("error: ") && !world.work("first").exists(), "{level}: {log}");
        assert!(log.contains("plain.py read"), "{level}: {log}");
        // A change of the mode starts the agent again, in another sandbox.
        world.run(&["policy", "set", "one", "ask"]).code(0);
        let log = prompt(&world, "write second x");
        assert!(log.contains("wrote second") && world.work("second").exists(), "{level}: {log}");
        world.run(&["policy", "set", "one", "readonly"]).code(0);
        let log = prompt(&world, "write third x");
        assert!(!world.work("third").exists(), "{level}: {log}");
        // Its start needs no approval: the sandbox restrains it.
        assert!(!log.contains("Start the agent"), "{level}: {log}");
        let deny = ["run", "--deny", "agent(python3)", "--agent", &agent, "list ."];
        let ran = world.run(&deny).code(1);
        assert!(ran.err.contains("denied by the rule"), "{level}: {ran:#?}");
    }
}

#[test]
fn m_h3_a_confirm_shows_the_whole_input_of_a_command() {
    let world = World::new();
    let agent = plain(&world);
    let allow = ["--allow", "shell(touch made)", "--asks", "deny"];
    let run = |input: &str| {
        let script = format!("run {input}");
        let ran = world.run(&[&["run", "--agent", &agent], &allow[..], &[&script]].concat());
        (ran.out.contains("chosen: yes"), ran.err)
    };
    let root = world.path("work").canonicalize().unwrap();
    let inside = format!(r#"{{"command":"touch made","cwd":"{}"}}"#, root.display());
    for input in [r#"{"command":"touch made","description":"Build"}"#, &inside] {
        let (allowed, shown) = run(input);
        assert!(allowed, "{input}: {shown}");
    }
    // A rule for the command says nothing about its folder, its variables or other input.
    for (input, more) in [
        (r#"{"command":"touch made","cwd":"/elsewhere"}"#, "/elsewhere"),
        (r#"{"command":"touch made","env":{"PATH":"/bad"}}"#, "/bad"),
        (r#"{"command":["touch","made"],"description":{"a":"hidden"}}"#, "hidden"),
    ] {
        let (allowed, shown) = run(input);
        assert!(!allowed && shown.contains(more), "{input}: {shown}");
        assert!(!shown.contains(&format!("in {}\n", root.display())), "{input}: {shown}");
    }
}

#[test]
fn m_h3_an_agent_that_ends_between_turns_is_started_again() {
    let world = World::new();
    let agent = plain(&world);
    world.run(&["new", "--name", "one", "--agent", &agent, "say One.\npid\ngone"]).code(0);
    world.run(&["wait", "one"]).code(0);
    let pid = || {
        let log = log_of(&world);
        let pid = log.lines().rev().find_map(|line| line.trim().strip_prefix("pid="));
        pid.unwrap_or_else(|| panic!("{log}")).to_owned()
    };
    let first = pid();
    let by = std::time::Instant::now() + crate::world::patience();
    while world.census.living().iter().any(|(_, line)| line.contains("plain.py")) {
        assert!(std::time::Instant::now() < by, "the agent ends");
    }
    let log = prompt(&world, "say Two.\npid");
    assert!(log.contains("Two.") && !log.contains("the agent failed"), "{log}");
    assert_ne!(first, pid());
}

#[test]
fn m_h3_messages_of_other_sessions_are_ignored_and_ids_can_be_texts() {
    let world = World::new();
    let agent = plain(&world);
    let run = |script: &str| world.run(&["run", "--agent", &agent, script]);
    let ran = run("say Ours.\nother Theirs.\nsay End.").code(0);
    assert_eq!(ran.out, "Ours.\nEnd.\n");
    let request = r#"raw {"id":1,"method":"session/request_permission","params":{"sessionId":"x","toolCall":{"toolCallId":"a"},"options":[]}}"#;
    let ran = run(&format!("{request}\nsay End.")).code(0);
    assert_eq!(ran.out, "End.\n");
    let ran = run("say Begun.\nfail no more tokens").code(1);
    assert!(ran.err.contains("it reported: no more tokens"), "{}", ran.err);
}
