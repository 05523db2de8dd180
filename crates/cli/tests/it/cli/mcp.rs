//! The tools of MCP servers in sessions, from the configuration to the receipt.

use std::fs;

use holdpoint_common::{Fact, ToolFact, TurnFact};
use holdpoint_tests::model_server::{ModelServer, Reply, Wire};
use rustix::process::{Signal, kill_process};

use crate::world::World;

/// A server that misbehaves in ways that its argument names.
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tools/tests/mcp/bad.py");

fn configured(kind: &str) -> World {
    let world = World::new();
    configure(&world, kind, "");
    world
}

fn configure(world: &World, kind: &str, more: &str) {
    world.config(&format!(
        "{more}\n[mcp.s]\ncommand = \"python3\"\nargs = [\"{SERVER}\", \"{kind}\"]\n\
         env = {{ MARK = \"plain-mark-of-the-server\" }}\n"
    ));
}

const CALL: &str = "call mcp__s__work {\"path\": \"a\\u202eb\"}\n---\nsay Done.";

#[test]
fn m_h2_a_tool_of_a_server_is_called_after_a_confirm() {
    let world = configured("none");
    let ran = world.play(&["--asks", "approve"], CALL).code(0);
    for line in [
        "⏸ mcp__s__work: Call the tool `work` of the MCP server `s`?",
        "  │ server: s",
        "  │ tool: work",
        "  │   \"path\": \"a\\u{202e}b\"",
        "  → approved (asks = approve)",
    ] {
        assert!(ran.err.lines().any(|found| found == line), "{line}\n{}", ran.err);
    }
    assert!(ran.err.contains("  │ worked {\"path\": \"a\\u202eb\"} plain-mark"), "{}", ran.err);
    assert!(world.census.living().is_empty());
    let denied = world.play(&["--asks", "deny"], CALL).code(3);
    assert!(!denied.err.contains("worked"), "{denied:#?}");
    for allow in ["mcp(s work)", "mcp(s)", "mcp(* work)"] {
        let ran = world.play(&["--allow", allow], CALL);
        match allow {
            "mcp(* work)" => {
                ran.code(2);
            }
            _ => {
                let ran = ran.code(0);
                assert!(ran.err.contains("worked") && !ran.err.contains('⏸'), "{ran:#?}");
            }
        }
    }
    let ran = world.play(&["--policy", "all", "--deny", "mcp(s w*)"], CALL).code(0);
    assert!(ran.err.contains("denied by the rule `mcp(s w*)`"), "{ran:#?}");
}

#[test]
fn m_h2_an_image_of_a_server_reaches_a_model_that_takes_images() {
    let server = ModelServer::start();
    let world = World::new();
    for (settings, takes_images) in [("", true), ("images = false", false)] {
        let base_url = server.url(Wire::Anthropic);
        configure(
            &world,
            "image",
            &format!(
                "model = \"anthropic/m\"\n[providers.anthropic]\napi_key = \"k\"\nbase_url = \"{base_url}\"\n\
             [models.\"anthropic/m\"]\n{settings}\n"
            ),
        );
        server
            .reply(Reply::stream().call(0, "mcp__s__work", "{}").finish("tool_calls"))
            .reply(Reply::text(["done"]));
        let ran = world.run(&["run", "--policy", "all", "--model", "anthropic/m", "go"]).code(0);
        assert!(ran.err.contains("[image, image/png, 8 bytes]"), "{ran:#?}");
        let sent = server.requests().pop().unwrap().body["messages"][2].to_string();
        assert_eq!(sent.contains(r#""data":"iVBORw0KGgo=""#), takes_images, "{sent}");
        assert!(sent.contains("an image"), "{sent}");
        server.assert_no_violations();
    }
}

#[test]
fn m_h2_servers_of_a_file_are_added_and_replace_configured_ones() {
    let world = configured("no-start");
    let file = world.path("servers.json");
    let servers = format!(
        r#"{{"mcpServers": {{"s": {{"command": "python3", "args": ["{SERVER}", "none"]}}}}}}"#
    );
    fs::write(&file, servers).unwrap();
    let file = file.to_str().unwrap();
    let ran = world.play(&["--policy", "all", "--mcp", file], CALL).code(0);
    assert!(ran.err.contains("worked"), "{ran:#?}");
    fs::write(file, "{}").unwrap();
    let ran = world.play(&["--mcp", file], CALL).code(2);
    assert!(
        ran.err.contains("missing field `mcpServers`") && ran.err.contains("hint: "),
        "{ran:#?}"
    );
    world.play(&["--mcp", "/no/such/file"], CALL).code(2);
    // A hosted agent would not get them.
    let ran = world.run(&["new", "--agent", "program", "--mcp", file]).code(2);
    assert!(ran.err.contains("cannot be used with"), "{ran:#?}");
}

#[test]
fn m_h2_a_withdrawn_question_is_closed_and_can_not_be_answered() {
    let world = World::new();
    let [seen, end] = ["seen", "end"].map(|name| world.path(name));
    world.config(&format!(
        "[mcp.s]\ncommand = \"python3\"\nargs = [\"{SERVER}\", \"withdraws\", \"{}\", \"{}\"]\n",
        seen.display(),
        end.display()
    ));
    let id = world.open(&["--policy", "all"], CALL);
    let ask = world.ask(&id);
    fs::write(&seen, "").unwrap();
    while !world.run(&["logs", &id]).code(0).out.contains("it was withdrawn") {}
    let late = world.run(&["answer", &ask, "yes"]).code(1);
    assert!(late.err.contains("is closed: it was withdrawn"), "{late:#?}");
    // The call continues.
    fs::write(&end, "").unwrap();
    world.run(&["wait", &id]).code(0);
    let log = world.run(&["logs", &id]).code(0).out;
    assert!(log.contains("without an answer"), "{log}");
}

#[test]
fn m_h2_a_session_says_that_servers_of_a_file_are_gone() {
    let world = World::new();
    let file = world.path("servers.json");
    let servers = format!(
        r#"{{"mcpServers": {{"s": {{"command": "python3", "args": ["{SERVER}", "none"]}}}}}}"#
    );
    fs::write(&file, servers).unwrap();
    world.opens("one", &["--policy", "all", "--mcp", file.to_str().unwrap()], CALL);
    world.run(&["wait", "one"]).code(0);
    let gone = || {
        let log = world.run(&["logs", "one"]).code(0).out;
        let is_notice = |line: &&str| line.contains("MCP servers that it no longer has: `s`.");
        log.lines().filter(is_notice).count()
    };
    world.run(&["prompt", "one", "say Again."]).code(0);
    world.run(&["wait", "one"]).code(0);
    assert_eq!(gone(), 0);
    world.run(&["daemon", "stop"]).code(0);
    for prompt in ["say Once.", "say Twice."] {
        world.run(&["prompt", "one", prompt]).code(0);
        world.run(&["wait", "one"]).code(0);
        assert_eq!(gone(), 1, "{prompt}");
    }
    // With a server of this name, nothing is gone.
    world.run(&["daemon", "stop"]).code(0);
    configure(&world, "none", "");
    world.run(&["prompt", "one", "say Once more."]).code(0);
    world.run(&["wait", "one"]).code(0);
    assert_eq!(gone(), 1);
}

#[test]
fn m_h2_a_server_that_does_not_start_is_reported_and_the_turn_continues() {
    let world = configured("no-start");
    let ran = world.play(&[], "say Done.").code(0);
    let why = "MCP server `s`: it ended before it was ready: it exited with code 3; it wrote: \
               cannot start: no configuration";
    assert!(ran.err.lines().any(|line| line == why), "{ran:#?}");
    assert_eq!(ran.out, "Done.\n");
    world.opens("one", &[], "say Done.");
    world.run(&["wait", "one"]).code(0);
    world.run(&["prompt", "one", "say Again."]).code(0);
    world.run(&["wait", "one"]).code(0);
    let log = world.run(&["logs", "one"]).code(0);
    assert_eq!(log.out.lines().filter(|line| *line == why).count(), 1, "{log:#?}");
}

#[test]
fn m_h2_an_interrupt_ends_a_server_that_does_not_react_and_counts_its_processes() {
    let world = configured("stuck");
    let mut running = world.start(&["--policy", "all", "--name", "one"], CALL);
    running.wait_output("stuck now");
    world.run(&["interrupt", "one"]).code(0);
    let (_, events, _) = running.end();
    let receipt = events.iter().find_map(|event| match event.fact() {
        Some(Fact::Turn(TurnFact::Finished { receipt, .. })) => receipt.clone(),
        _ => None,
    });
    let receipt = receipt.expect("the turn was interrupted");
    assert_eq!(receipt.tools[0].name, "mcp__s__work");
    assert_eq!(receipt.processes.killed, 1, "{receipt:?}");
    assert!(receipt.processes.not_ended.is_empty(), "{receipt:?}");
    let results = events
        .iter()
        .filter(|event| matches!(event.fact(), Some(Fact::Tool(ToolFact::Finished(_)))));
    assert_eq!(results.count(), 1);
}

#[test]
fn m_h2_servers_start_with_the_first_turn_and_end_with_their_session() {
    let world = configured("ignores-eof");
    let servers =
        || world.census.living().iter().filter(|(_, args)| args.contains("bad.py")).count();
    world.run(&["new", "--name", "one", "--policy", "all"]).code(0);
    assert_eq!(servers(), 0, "an idle session has no server");
    world.run(&["prompt", "one", CALL]).code(0);
    world.run(&["wait", "one"]).code(0);
    assert_eq!(servers(), 1, "it waits for the next call");
    world.run(&["close", "one"]).code(0);
    assert_eq!(servers(), 0);
    world.opens("two", &["--policy", "all"], CALL);
    world.run(&["wait", "two"]).code(0);
    assert_eq!(servers(), 1);
    kill_process(world.daemon().unwrap(), Signal::KILL).unwrap();
    world.census.wait_none();
}

#[test]
fn m_h2_t_h3_values_of_a_servers_variables_are_neither_shown_nor_saved() {
    let world = configured("die");
    let shown = world.run(&["config", "show"]).code(0);
    assert!(
        shown.out.contains("MARK = \"***\"") && !shown.out.contains("plain-mark"),
        "{shown:#?}"
    );
    world.opens("one", &["--policy", "all"], CALL);
    world.run(&["wait", "one"]).code(0);
    for command in [&["show", "one"][..], &["show", "one", "--json"], &["logs", "one"], &["list"]] {
        let ran = world.run(command).code(0);
        assert!(!ran.out.contains("plain-mark") && !ran.err.contains("plain-mark"), "{ran:#?}");
    }
    world.run(&["daemon", "stop"]).code(0);
    let mut folders = vec![world.path("data")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => {
                    let bytes = fs::read(entry.path()).unwrap_or_default();
                    let found = String::from_utf8_lossy(&bytes).contains("plain-mark");
                    assert!(!found, "{}", entry.path().display());
                }
            }
        }
    }
}

#[test]
fn m_h2_servers_are_added_and_removed_without_a_loss() {
    let world = World::new();
    let file = world.config("# mine\npolicy = \"ask\" # as it is\n\n[limits]\ngrace_ms = 400\n");
    let before = fs::read_to_string(&file).unwrap();
    let add = ["mcp", "add", "files", "--env", "KEY=a=b", "--domain", "example.com", "--", "npx"];
    let ran = world.run(&[&add[..], &["-y", "--flag"]].concat()).code(0);
    assert!(ran.out.starts_with("added files to "), "{ran:#?}");
    let after = fs::read_to_string(&file).unwrap();
    let added = "[mcp.files]\ncommand = \"npx\"\nargs = [\"-y\", \"--flag\"]\n\
                 env = { KEY = \"a=b\" }\ndomains = [\"example.com\"]\n";
    assert_eq!(after, format!("{before}\n{added}"));
    let ran = world.run(&["mcp", "list"]).code(0);
    assert_eq!(ran.out, "files  npx -y --flag  (domains: example.com, env: KEY)\n");
    let ran = world.run(&add).code(1);
    assert!(ran.err.contains("hint: remove it first: holdpoint mcp remove files"), "{ran:#?}");
    for wrong in [&["mcp", "add", "A", "--", "x"][..], &["mcp", "add", "a"], &["mcp", "test", "a"]]
    {
        world.run(wrong).code(2);
    }
    for (wrong, why) in [
        (["--domain", "https://example.com/"], "is not a domain: write only the name of a host"),
        (["--domain", "*"], "is not a domain"),
        (["--domain", "127.0.0.1"], "an address can't be named"),
        (["--cwd", "../../.."], "`cwd` is \"../../..\"; it must be below the workspace"),
        (["--tools", ""], "`tools` must have the names of tools"),
    ] {
        let ran = world.run(&[&["mcp", "add", "a"][..], &wrong, &["--", "x"]].concat()).code(2);
        assert!(ran.err.contains(why) && ran.err.contains("hint: "), "{ran:#?}");
    }
    world.run(&["mcp", "remove", "files"]).code(0);
    assert_eq!(fs::read_to_string(&file).unwrap().trim_end(), before.trim_end());
    world.run(&["mcp", "remove", "files"]).code(1);
    fs::write(&file, "policy = 'wrong'").unwrap();
    world.run(&["mcp", "add", "files", "--", "npx"]).code(2);
    assert_eq!(fs::read_to_string(&file).unwrap(), "policy = 'wrong'");
    fs::remove_file(&file).unwrap();
    world.run(&["mcp", "add", "files", "--", "npx"]).code(0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "[mcp.files]\ncommand = \"npx\"\n");
}

#[test]
fn m_h2_a_server_is_tested_as_a_session_would_start_it() {
    let world = configured("none");
    let ran = world.run(&["mcp", "test", "s"]).code(0);
    assert_eq!(ran.out, "1 tool\n  mcp__s__work  \n");
    assert!(ran.err.contains("sandbox: off"), "{ran:#?}");
    let ran = world.run(&["mcp", "test", "s", "--json"]).code(0);
    let tools: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(tools[0]["schema"]["type"], "object");
    configure(&world, "no-start", "");
    let ran = world.run(&["mcp", "test", "s"]).code(1);
    assert!(ran.err.contains("it exited with code 3"), "{ran:#?}");
    assert!(world.census.living().is_empty());
}

#[test]
fn m_h2_the_policy_is_explained_for_a_tool_of_a_server() {
    let world = World::new();
    let explain = ["policy", "explain", "--tool", "mcp", "files read_file"];
    let ran = world.run(&[&explain[..], &["--allow", "mcp(files read_*)"]].concat()).code(0);
    assert_eq!(
        ran.out,
        "allow  call read_file of the MCP server files\n       allowed by the rule `mcp(files \
         read_*)`\n\nallow: allowed by the rule `mcp(files read_*)`\n"
    );
    assert!(world.run(&explain).code(0).out.ends_with("ask: the policy is `ask`\n"));
    world.run(&["policy", "explain", "--tool", "mcp", "files"]).code(2);
}
