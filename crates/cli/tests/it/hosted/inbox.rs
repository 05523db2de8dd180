//! Sessions with agents, and sessions with models and tools of their own, in one inbox.

use std::time::Instant;

use holdpoint_common::api::{Inbox, InboxAsk};

use super::others::{gemini_server, run};
use super::scripted;
use crate::world::{World, patience};

/// The open asks: the name of the session, and the id.
fn asks(world: &World) -> Vec<(String, String)> {
    let inbox = world.run(&["inbox", "--json"]).code(0);
    let inbox: Inbox = serde_json::from_str(&inbox.out).unwrap();
    let ask = |asked: &InboxAsk| (asked.name.clone(), asked.ask.id.to_string());
    inbox.asks.iter().map(ask).collect()
}

#[test]
fn m_h3_agents_and_models_share_one_inbox() {
    let world = World::new();
    let agent = scripted(&world, "");
    let open = |name: &str, with: [&str; 2], script: &str| {
        world.run(&[&["new", "--name", name], &with[..], &[script]].concat()).code(0);
    };
    open("agent-1", ["--agent", &agent], "run touch agent-1\nsay Done.");
    open("model-1", ["--model", "rehearsal"], "shell: touch model-1\n---\nsay Done.");
    open("agent-2", ["--agent", &agent], "run touch agent-2\nsay Done.");
    open("model-2", ["--model", "rehearsal"], "shell: touch model-2\n---\nsay Done.");
    let by = Instant::now() + patience();
    while asks(&world).len() < 4 {
        assert!(Instant::now() < by, "all four are asked: {:?}", asks(&world));
    }
    // Each answer reaches its own session, in any order.
    for (name, answer) in
        [("model-2", "deny"), ("agent-1", "approve"), ("agent-2", "deny"), ("model-1", "approve")]
    {
        let (_, ask) = asks(&world).into_iter().find(|(asked, _)| asked == name).unwrap();
        world.run(&[answer, &ask]).code(0);
        world.run(&["wait", name, "--for", "idle"]).code(0);
        assert_eq!(world.work(name).exists(), answer == "approve", "{name}");
    }
    assert_eq!(asks(&world), []);
}

#[test]
fn m_h3_a_third_party_agent_and_others_share_one_inbox() {
    let (world, server) = (World::new(), gemini_server());
    let agent = scripted(&world, "");
    world.config("[rules]\nallow = [\"agent(gemini)\", \"agent(python)\"]\n");
    let open = |name: &str, with: &[&str], script: &str| {
        run(&world, &server, &[&["new", "--name", name], with, &[script]].concat()).code(0);
    };
    let gemini = ["--agent", "gemini", "--model", "gemini-2.5-pro"];
    open("gemini", &gemini, "run: touch gemini");
    open("agent", &["--agent", &agent], "run touch agent");
    open("model-1", &["--model", "rehearsal"], "shell: touch model-1");
    open("model-2", &["--model", "rehearsal"], "shell: touch model-2");
    let by = Instant::now() + patience();
    while asks(&world).len() < 4 {
        assert!(Instant::now() < by, "all four are asked: {:?}", asks(&world));
    }
    for (name, answer) in
        [("model-2", "deny"), ("gemini", "approve"), ("agent", "deny"), ("model-1", "approve")]
    {
        let (_, ask) = asks(&world).into_iter().find(|(asked, _)| asked == name).unwrap();
        world.run(&[answer, &ask]).code(0);
        world.run(&["wait", name, "--for", "idle"]).code(0);
        assert_eq!(world.work(name).exists(), answer == "approve", "{name}");
    }
    assert_eq!(asks(&world), []);
}

#[test]
fn m_h3_the_inbox_shows_the_title_of_a_call_once() {
    let world = World::new();
    let agent = scripted(&world, "");
    world.run(&["new", "--name", "one", "--agent", &agent, "ask other Lookup"]).code(0);
    world.run(&["wait", "one", "--for", "ask"]).code(0);
    let inbox = world.run(&["inbox"]).code(0);
    assert_eq!(inbox.out.matches("Lookup").count(), 1, "{inbox:#?}");
}
