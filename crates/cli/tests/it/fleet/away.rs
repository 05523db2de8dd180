//! Sessions of a machine that does not respond.

use rustix::process::{Signal, kill_process};
use serde_json::Value;

use super::forwarding::first_ask;
use super::{database, json, listed, member, reachable, wait_until_gone, wait_until_saved};
use crate::world::World;

/// Ends the daemon of a machine as a crash does, and waits until the other sees that.
fn kill(machine: &World, name: &str, other: &World) {
    kill_process(machine.daemon().unwrap(), Signal::KILL).unwrap();
    wait_until_gone(other, name);
}

/// The lines that the calls of a session have written.
fn written(world: &World) -> String {
    std::fs::read_to_string(world.work("written")).unwrap_or_default()
}

#[test]
fn m_i13_an_ask_of_a_machine_that_is_gone_is_answered_on_another_one() {
    let (_server, url) = database();
    let (one, two) = (member(&url, "m1"), member(&url, "m2"));
    let answered = |name: &str, answer: &[&str]| {
        one.run(&["new", "--name", name]).code(0);
        let script = "shell: echo once >> written\n---\nsay Finished.";
        one.run(&["prompt", name, script]).code(0);
        let ask = first_ask(&one, name);
        kill(&one, "m1", &two);
        let inbox = json(&two.run(&["inbox", "--json"]));
        assert_eq!(inbox["asks"][0]["ask"]["id"], *ask, "{inbox}");

        let answered = json(&two.run(&[answer, &[&ask, "--json"]].concat()).code(0));
        assert_eq!((&answered["home"], &answered["saved"]), (&"m1".into(), &true.into()));
        let late = two.run(&["deny", &ask]).code(1);
        assert!(late.err.contains("already"), "{}", late.err);
        let session = listed(&two, name);
        assert_eq!((&session["machine"], &session["live"]), (&"m1".into(), &false.into()));
        let inbox = json(&two.run(&["inbox", "--json"]));
        assert_eq!(inbox["asks"], Value::Array(vec![]));
    };
    // Opened for another prompt, it continues with the answered call.
    let continues = |name: &str| {
        one.run(&["prompt", name, "say Next."]).code(0);
        one.run(&["wait", name]).code(0);
        let log = one.run(&["logs", name]).out;
        assert!(log.contains("\nFinished.\n") && log.contains("\nNext.\n"), "{log}");
    };
    answered("approved", &["approve", "--yes"]);
    // Nothing runs by itself.
    one.run(&["daemon", "start"]).code(0);
    assert_eq!(
        (listed(&one, "approved")["live"].clone(), written(&one)),
        (false.into(), String::new())
    );
    continues("approved");
    assert_eq!(written(&one), "once\n");
    one.run(&["close", "approved"]).code(0);

    answered("denied", &["deny", "--reason", "not now"]);
    continues("denied");
    assert_eq!(written(&one), "once\n");
    assert!(one.run(&["logs", "denied"]).out.contains("not now"));
}

#[test]
fn an_answer_opens_a_saved_session_on_its_machine_if_that_responds() {
    let (_server, url) = database();
    let (one, two) = (reachable(&url, "m1"), reachable(&url, "m2"));
    one.run(&["new", "--name", "shared"]).code(0);
    one.run(&["prompt", "shared", "shell: echo once >> written\n---\nsay Finished."]).code(0);
    let ask = first_ask(&one, "shared");
    // It stays saved, with its ask.
    one.run(&["daemon", "stop"]).code(0);
    one.run(&["daemon", "start"]).code(0);
    wait_until_saved(&two, "shared");
    let answered = json(&two.run(&["approve", &ask, "--yes", "--json"]).code(0));
    assert_eq!(answered["home"], Value::Null);
    two.run(&["wait", "shared"]).code(0);
    assert_eq!(written(&one), "once\n");
    assert_eq!(listed(&two, "shared")["live"], true);
}
