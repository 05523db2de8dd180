//! Sessions that move between machines, or that one machine opens on another.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::forwarding::first_ask;
use super::{database, end_in_order, listed, member, reachable, wait_until_gone};
use crate::world::{Ran, World};

/// A new folder of a machine.
fn folder(world: &World, name: &str) -> (PathBuf, String) {
    let folder = world.path(name);
    std::fs::create_dir(&folder).unwrap();
    let path = folder.canonicalize().unwrap().to_str().unwrap().to_owned();
    (folder, path)
}

#[test]
fn a_turn_continues_on_the_machine_that_its_session_moves_to() {
    let (_server, url) = database();
    let (one, two) = (reachable(&url, "m1"), reachable(&url, "m2"));
    let (inside, path) = folder(&two, "there");
    two.run(&["daemon", "start"]).code(0);
    one.run(&["new", "--name", "shared", "--policy", "all"]).code(0);
    assert!(Command::new("mkfifo").arg(one.work("go")).status().unwrap().success());
    let mut attached = one.follow("shared");
    let script = "shell: echo begun; cat go\n---\nshell: pwd > here; echo written";
    one.run(&["prompt", "shared", script]).code(0);
    attached.wait_output("begun");

    // Asked for on either machine, it waits for the end of the call.
    let moving = one.command(&["move", "shared", "--to", "m2", "--cwd", &path]).spawn().unwrap();
    attached.wait_for("the hold", |event| format!("{event:?}").contains("HoldChanged"));
    assert_eq!(listed(&two, "shared")["machine"], "m1");
    std::fs::write(one.work("go"), "").unwrap();
    let moved = moving.wait_with_output().unwrap();
    assert!(moved.status.success(), "{moved:?}");
    // The stream of the client continues with the events of the other machine.
    attached.wait_output("written");
    one.run(&["wait", "shared"]).code(0);
    assert_eq!(std::fs::read_to_string(inside.join("here")).unwrap().trim(), path);
    assert_eq!(
        (listed(&one, "shared")["machine"].clone(), listed(&two, "shared")["machine"].clone()),
        ("m2".into(), Value::Null)
    );
    let log = one.run(&["logs", "shared"]).code(0).out;
    assert!(log.contains(&format!("moved to m2:{path}")), "{log}");

    // And back, from the machine that has it.
    let (_, back) = folder(&one, "back");
    let out = two.run(&["move", "shared", "--to", "m1", "--cwd", &back]).code(0).out;
    assert_eq!(out, format!("moved to m1:{back}\n"));
    assert_eq!(listed(&two, "shared")["machine"], "m1");
    one.run(&["close", "shared"]).code(0);
    end_in_order(attached);
}

#[test]
fn a_session_of_a_machine_that_is_gone_moves_to_another_one() {
    let (_server, url) = database();
    let (one, two) = (member(&url, "m1"), member(&url, "m2"));
    one.run(&["new", "--name", "shared"]).code(0);
    one.run(&["prompt", "shared", "say Hello."]).code(0);
    one.run(&["wait", "shared"]).code(0);
    let (_, path) = folder(&two, "there");
    // While its machine can't be reached from here, it stays there.
    let refused = two.run(&["move", "shared", "--cwd", &path]).code(1);
    assert!(refused.err.contains("the machine `m1` can't be reached"), "{}", refused.err);
    one.run(&["daemon", "stop"]).code(0);
    wait_until_gone(&two, "m1");
    let away = two.run(&["prompt", "shared", "say No."]).code(1);
    assert!(away.err.contains("`holdpoint move`"), "{}", away.err);

    let missing = two.run(&["move", "shared", "--cwd", "/nowhere"]).code(2);
    assert!(missing.err.contains("/nowhere"), "{}", missing.err);
    two.run(&["move", "shared", "--cwd", &path]).code(0);
    two.run(&["prompt", "shared", "shell: pwd", "--json"]).code(0);
    two.run(&["approve", &first_ask(&two, "shared"), "--yes"]).code(0);
    two.run(&["wait", "shared"]).code(0);
    let log = two.run(&["logs", "shared"]).code(0).out;
    assert!(log.contains("Hello.") && log.contains(&path), "{log}");
    // Its first machine lists it there.
    assert_eq!(listed(&one, "shared")["machine"], "m2");
}

#[test]
fn a_session_is_opened_on_its_machine_from_another_one() {
    let (_server, url) = database();
    let (one, two) = (reachable(&url, "m1"), reachable(&url, "m2"));
    let (_, path) = folder(&two, "there");
    let relative = one.run(&["new", "--on", "m2", "--cwd", "there"]).code(2);
    assert!(relative.err.contains("has to be absolute"), "{}", relative.err);
    let unknown = one.run(&["new", "--on", "m3", "--cwd", &path]).code(1);
    assert!(unknown.err.contains("there is no machine `m3`"), "{}", unknown.err);
    two.run(&["daemon", "start"]).code(0);
    let missing = one.run(&["new", "--on", "m2", "--cwd", "/nowhere"]).code(2);
    assert!(missing.err.contains("/nowhere"), "{}", missing.err);
    // The keys of the client stay here.
    let mut with_key = one.command(&["new", "--on", "m2", "--cwd", &path, "--model", "openai/x"]);
    with_key.env("OPENAI_API_KEY", "secret of m1");
    let refused = Ran::of(with_key).code(2);
    assert!(refused.err.contains("OPENAI_API_KEY"), "{}", refused.err);

    let new = ["new", "--on", "m2", "--cwd", &path, "--name", "far", "--policy", "all"];
    one.run(&[&new[..], &["shell: pwd > here"]].concat()).code(0);
    one.run(&["wait", "far"]).code(0);
    assert_eq!(std::fs::read_to_string(two.path("there/here")).unwrap().trim(), path);
    assert_eq!(listed(&one, "far")["machine"], "m2");
    // Saved, it is opened there again.
    one.run(&["close", "far"]).code(0);
    assert_eq!(listed(&one, "far")["live"], false);
    one.run(&["prompt", "far", "say Again."]).code(0);
    one.run(&["wait", "far"]).code(0);
    let far = listed(&one, "far");
    assert_eq!((&far["machine"], &far["live"]), (&"m2".into(), &true.into()));
    assert!(two.run(&["logs", "far"]).code(0).out.contains("Again."));
    let ran = one.run(&["run", "--on", "m2", "--cwd", &path, "--policy", "all", "shell: pwd"]);
    assert!(ran.code == Some(0) && ran.err.contains(&path), "{ran:?}");
}
