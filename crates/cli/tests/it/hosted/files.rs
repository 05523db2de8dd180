//! The requests of an agent for files, which are calls of the session's own tools.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::calls::open_asks;
use super::{log_of, plain, prompt};
use crate::world::{Ran, World};

/// The step that makes a request.
pub(super) fn request(method: &str, params: &Value) -> String {
    format!("request {}\n", json!({ "method": method, "params": params }))
}

pub(super) fn read(path: &str) -> String {
    request("fs/read_text_file", &json!({ "path": path }))
}

pub(super) fn write(path: &str, content: &str) -> String {
    request("fs/write_text_file", &json!({ "path": path, "content": content }))
}

/// The workspace, as agents know it.
pub(super) fn root(world: &World) -> PathBuf {
    world.path("work").canonicalize().unwrap()
}

/// The path of a file in the workspace.
pub(super) fn file(world: &World, name: &str) -> String {
    root(world).join(name).display().to_string()
}

/// Runs one turn of the agent.
pub(super) fn run(world: &World, args: &[&str], script: &str) -> Ran {
    let agent = plain(world);
    world.run(&[&["run", "--agent", &agent], args, &[script]].concat())
}

/// The replies of the requests, in their order.
pub(super) fn replies(out: &str) -> Vec<Value> {
    let replies = out.lines().filter_map(|line| line.trim().strip_prefix("reply"));
    let json = |reply: &str| serde_json::from_str(reply.split_once(": ").unwrap().1).unwrap();
    replies.map(json).collect()
}

#[test]
fn m_h3_an_agent_reads_a_file_exactly_as_it_is() {
    let world = World::new();
    let text = "one\r\ntwo \u{e4}\n\tthree\n\nfive, without an end";
    fs::write(world.work("a.txt"), text).unwrap();
    fs::write(world.work("bom.txt"), "\u{feff}text\n").unwrap();
    fs::write(world.work("binary"), b"\0\x01").unwrap();
    fs::write(world.work("latin"), b"caf\xe9\n").unwrap();
    fs::write(world.work("large"), "line of a file\n".repeat(400_000)).unwrap();
    let path = |name: &str| file(&world, name);
    let lines = |line: u32, limit: u32| {
        let params = json!({ "path": path("a.txt"), "line": line, "limit": limit });
        request("fs/read_text_file", &params)
    };
    let some = json!({ "path": path("large"), "line": 399_999, "limit": 10 });
    let script = [
        read(&path("a.txt")),
        lines(2, 2),
        lines(5, 9),
        lines(6, 1),
        read(&path("bom.txt")),
        request("fs/read_text_file", &some),
        read(&path("missing")),
        read(&path("binary")),
        read(&path("latin")),
        read(&path("large")),
        read("a.txt"),
        lines(0, 1),
    ];
    let ran = run(&world, &[], &script.concat()).code(0);
    let replies = replies(&ran.out);
    let texts: Vec<_> = replies.iter().filter_map(|reply| reply["content"].as_str()).collect();
    let two = "line of a file\nline of a file\n";
    assert_eq!(
        texts,
        [text, "two \u{e4}\n\tthree\n", "five, without an end", "", "text\n", two],
        "{ran:#?}"
    );
    let errors: Vec<_> = replies[6..].iter().map(|reply| (reply["code"].as_i64(), reply)).collect();
    for ((code, reply), (expected, why)) in errors.into_iter().zip([
        (-32002, "Resource not found: missing"),
        (-32603, "binary"),
        (-32603, "not valid"),
        (-32603, "more than 4194304 bytes (hint: read fewer lines at once)"),
        (-32602, "`path` is not absolute: a.txt (hint: "),
        (-32603, "at least 1"),
    ]) {
        assert_eq!(code, Some(expected), "{reply}");
        assert!(reply["message"].as_str().unwrap().contains(why), "{reply}");
    }
    // They are calls of the tool, and the transcript has their results.
    assert!(
        ran.err.contains("read_file") && ran.err.contains("five, without an end"),
        "{}",
        ran.err
    );
}

#[test]
fn m_h3_a_write_of_an_agent_is_a_call_that_asks_with_its_diff() {
    let world = World::new();
    let agent = plain(&world);
    fs::write(world.work("a.txt"), "old\n").unwrap();
    let script = write(&file(&world, "a.txt"), "new\n");
    world.run(&["new", "--name", "one", "--agent", &agent, &script]).code(0);
    world.run(&["wait", "one", "--for", "ask"]).code(0);
    let inbox = world.run(&["inbox", "--json"]).code(0).out;
    for part in ["write_file", "Replace this file?", "-old", "+new"] {
        assert!(inbox.contains(part), "{part}: {inbox}");
    }
    assert_eq!(fs::read_to_string(world.work("a.txt")).unwrap(), "old\n");
    world.run(&["approve", &open_asks(&world)[0]]).code(0);
    world.run(&["wait", "one"]).code(0);
    assert_eq!(fs::read_to_string(world.work("a.txt")).unwrap(), "new\n");
    assert!(log_of(&world).contains("reply: {}"), "{}", log_of(&world));

    // A file is created with its folder.
    world.run(&["prompt", "one", &write(&file(&world, "folder/b.txt"), "text")]).code(0);
    world.run(&["wait", "one"]).code(0);
    world.run(&["approve", &open_asks(&world)[0]]).code(0);
    world.run(&["wait", "one"]).code(0);
    assert_eq!(fs::read_to_string(world.work("folder/b.txt")).unwrap(), "text");

    world.run(&["prompt", "one", &write(&file(&world, "c.txt"), "text")]).code(0);
    world.run(&["wait", "one"]).code(0);
    world.run(&["deny", &open_asks(&world)[0], "--reason", "keep it small"]).code(0);
    world.run(&["wait", "one"]).code(0);
    let log = log_of(&world);
    let reply = replies(&log).pop().unwrap();
    assert!(reply["message"].as_str().unwrap().contains("keep it small"), "{log}");
    assert!(!world.work("c.txt").exists());
}

#[test]
fn m_h3_rules_and_modes_judge_the_requests_of_an_agent() {
    let world = World::new();
    fs::create_dir_all(world.work(".git/hooks")).unwrap();
    let outside = world.path("outside.txt");
    fs::write(&outside, "secret").unwrap();
    let outside = outside.canonicalize().unwrap().display().to_string();
    let path = |name: &str| file(&world, name);
    let one = |args: &[&str], script: &str| {
        let ran = run(&world, &[&["--asks", "deny"], args].concat(), script);
        replies(&ran.out).pop().unwrap_or_else(|| panic!("{ran:#?}"))
    };
    let is_denied = |reply: &Value| reply["code"].as_i64() == Some(-32603);
    let edits = ["--policy", "edits"];
    assert_eq!(one(&edits, &write(&path("a.txt"), "x")), json!({}));
    for (args, script) in [
        (&edits[..], write(&path(".git/hooks/pre-commit"), "x")),
        (&edits, write(&outside, "x")),
        (&edits, read(&outside)),
        (&["--policy", "edits", "--deny", "write_file(b.txt)"], write(&path("b.txt"), "x")),
        (&["--policy", "all", "--deny", "write_file(b.txt)"], write(&path("b.txt"), "x")),
        (&["--policy", "all", "--deny", "read_file(a.txt)"], read(&path("a.txt"))),
        (&edits, request("terminal/create", &json!({ "command": "touch c.txt" }))),
        (
            &["--policy", "all", "--deny", "shell(touch *)"],
            request("terminal/create", &json!({ "command": "touch", "args": ["c.txt"] })),
        ),
    ] {
        let reply = one(args, &script);
        assert!(is_denied(&reply), "{args:?} {script}: {reply}");
        assert!(!world.work("b.txt").exists() && !world.work("c.txt").exists(), "{script}");
    }
    assert!(!world.work(".git/hooks/pre-commit").exists());
    assert_eq!(fs::read_to_string(&outside).unwrap(), "secret");
    assert_eq!(one(&["--policy", "all"], &read(&outside)), json!({ "content": "secret" }));
    let allow = ["--allow", "write_file(b.txt)"];
    assert_eq!(one(&allow, &write(&path("b.txt"), "x")), json!({}));
}

#[test]
fn m_h3_readonly_denies_all_requests_that_change_something() {
    let world = World::new();
    let agent = plain(&world);
    world.config("[sandbox]\nlevel = \"landlock\"\n");
    fs::write(world.work("a.txt"), "text").unwrap();
    let script = [
        read(&file(&world, "a.txt")),
        write(&file(&world, "a.txt"), "x"),
        request("terminal/create", &json!({ "command": "touch made" })),
    ];
    let args = ["run", "--policy", "readonly", "--agent", &agent, &script.concat()];
    let ran = world.run(&args).code(0);
    let replies = replies(&ran.out);
    assert_eq!(replies[0], json!({ "content": "text" }), "{ran:#?}");
    for reply in &replies[1..] {
        assert!(reply["message"].as_str().unwrap().starts_with("denied: "), "{ran:#?}");
    }
    assert_eq!(fs::read_to_string(world.work("a.txt")).unwrap(), "text");
    assert!(!world.work("made").exists());
}

/// The agent chooses the diff of its own request for permission, and can put a link in the place of the
/// file afterwards.
#[test]
fn m_h3_a_change_of_a_file_is_asked_about_although_the_agent_has_asked_for_permission() {
    let world = World::new();
    let agent = plain(&world);
    let (path, other) = (file(&world, "a.txt"), world.path("home/other.txt"));
    fs::write(&other, "before\n").unwrap();
    let diff = json!([{ "type": "diff", "path": path, "oldText": null, "newText": "text\n" }]);
    let call = json!({ "toolCallId": "a", "title": "Write", "kind": "edit", "content": diff });
    world.run(&["new", "--name", "one", "--agent", &agent, "say Hello."]).code(0);
    world.run(&["wait", "one"]).code(0);
    prompt(&world, &format!("ask {call}\nanswered\n{}", write(&path, "text\n")));
    std::os::unix::fs::symlink(&other, &path).unwrap();
    world.run(&["approve", &open_asks(&world)[0]]).code(0);
    world.run(&["wait", "one"]).code(0);
    let inbox = world.run(&["inbox", "--json"]).code(0).out;
    assert!(inbox.contains("other.txt"), "{inbox}");
    world.run(&["deny", &open_asks(&world)[0]]).code(0);
    world.run(&["wait", "one"]).code(0);
    assert_eq!(fs::read_to_string(&other).unwrap(), "before\n");
}
