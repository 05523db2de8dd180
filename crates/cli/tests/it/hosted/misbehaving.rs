//! Agents that misbehave cost their own turn, and nothing else.

use super::scripted;
use crate::world::World;

#[test]
fn m_h3_an_agent_that_misbehaves_costs_only_its_turn() {
    for (script, why) in [
        ("die 3", "it exited with code 3; it wrote: dying as told"),
        ("say One.\ndie 0", "it exited with code 0"),
        ("garbage 2000", "that are not messages"),
        ("garbage 20\nsay Fine.", ""),
        ("huge 1000000\nsay Fine.", ""),
        ("huge 17000000", "it sent a message of more than 16777216 bytes"),
        ("requests 65", "more than 64 open permission requests"),
        ("leave One Two\nsay Fine.", ""),
        ("flood", "the model's answer is over"),
        ("stop refusal", "it refused to continue"),
        ("stop max_tokens", "limit"),
        ("stop nonsense", "python: "),
    ] {
        let world = World::new();
        let agent = scripted(&world, "");
        let code = if why.is_empty() { 0 } else { 1 };
        let args = ["run", "--name", "one", "--asks", "wait", "--agent", &agent, script];
        let ran = world.run(&args);
        assert_eq!(ran.code, Some(code), "{script}: {}", ran.err);
        assert!(ran.err.contains(why), "{script}: {}", ran.err);
        world.run(&["prompt", "one", "say Again."]).code(0);
        world.run(&["wait", "one"]).code(0);
        let log = world.run(&["logs", "one"]).code(0);
        assert!(log.out.contains("Again."), "{script}: {log:#?}");
    }
}

#[test]
fn m_h3_a_request_about_more_files_than_can_be_shown_is_rejected() {
    let world = World::new();
    let agent = scripted(&world, "");
    let run = |script| {
        let args = ["run", "--policy", "edits", "--asks", "deny", "--agent", &agent, script];
        world.run(&args).code(0).out
    };
    assert!(run("paths 64").contains("files: yes None"));
    let out = run("paths 65");
    assert!(out.contains("files: no the call names too many files"), "{out}");
}

#[test]
fn m_h3_a_program_that_is_no_agent_is_reported() {
    let world = World::new();
    world.config("[rules]\nallow = [\"agent(program)\", \"agent(true)\", \"agent(sh)\"]\n");
    for (agent, why) in [
        ("/no/such/program acp", "the program `/no/such/program` is not found"),
        ("true", "true: it exited with code 0"),
        ("sh -c 'echo no configuration >&2; exit 4'", "it exited with code 4; it wrote: no conf"),
    ] {
        let ran = world.run(&["run", "--agent", agent, "say A."]).code(1);
        assert!(ran.err.contains("the agent failed: ") && ran.err.contains(why), "{}", ran.err);
    }
    for (agent, why) in [("", "is empty"), ("'a", "a quote has no end")] {
        let ran = world.run(&["run", "--agent", agent, "say A."]).code(2);
        assert!(ran.err.contains(why) && ran.err.contains("hint: "), "{}", ran.err);
    }
}
