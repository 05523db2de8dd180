//! The known agents: their needs, their approval, and the command `agents`. Their programs are
//! stand-ins that a test can script; `others.rs` has the real ones.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use holdpoint_common::api::Inbox;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::calls::open_asks;
use super::log_of;
use crate::world::{Ran, World, patience, wait};

/// Installs a script of this name, in a folder that sandboxes can see.
fn install(world: &World, folder: &str, name: &str, script: &str) {
    let folder = world.path(folder);
    fs::create_dir_all(&folder).unwrap();
    let plain = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/hosted/plain.py");
    fs::copy(plain, folder.join("plain.py")).unwrap();
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// A world with a program `gemini`, and this level of the sandbox.
fn world(level: &str) -> World {
    configured(level, "")
}

/// The same with further settings.
fn configured(level: &str, settings: &str) -> World {
    let world = World::new();
    let bins = ["home/bin", "home/other"].map(|bin| world.path(bin).display().to_string());
    install(&world, "home/bin", "gemini", r#"exec python3 "$(dirname "$0")/plain.py" "$@""#);
    fs::create_dir_all(world.path("home/other")).unwrap();
    let sandbox = format!("[sandbox]\nlevel = \"{level}\"\nwritable = {bins:?}\n");
    world.config(&format!("{settings}{sandbox}"));
    world
}

/// Runs a command of a user with keys, who has the programs of the test in `PATH`.
fn run(world: &World, args: &[&str]) -> Ran {
    Ran::of(command(world, args))
}

fn command(world: &World, args: &[&str]) -> Command {
    let mut command = world.command(args);
    let bins = ["home/other", "home/bin"].map(|bin| world.path(bin).display().to_string());
    command.env("PATH", format!("{}:{}", bins.join(":"), std::env::var("PATH").unwrap()));
    command.env("GEMINI_API_KEY", "for-gemini").env("OPENAI_API_KEY", "for-others");
    command
}

/// The details of the only open ask.
fn asked(world: &World) -> String {
    let inbox = world.run(&["inbox", "--json"]).code(0);
    let inbox: Inbox = serde_json::from_str(&inbox.out).unwrap();
    let [asked] = &inbox.asks[..] else { panic!("{inbox:?}") };
    let ask = serde_json::to_value(&asked.ask).unwrap();
    assert!(ask["always"].is_string(), "{ask}");
    ask["request"]["details"].as_str().unwrap_or_else(|| panic!("{ask}")).to_owned()
}

#[test]
fn m_h3_a_known_agent_starts_with_the_needs_that_were_approved() {
    let world = world("bwrap");
    let home = world.path("home").canonicalize().unwrap();
    let note = home.join(".gemini/note");
    let script = format!(
        "write {} x\nenv GEMINI_API_KEY\nenv OPENAI_API_KEY\nenv HTTPS_PROXY\nwrite {} x\n\
         list {}/holdpoint",
        note.display(),
        home.join("elsewhere").display(),
        world.path("data").display()
    );
    run(&world, &["new", "--name", "one", "--agent", "gemini", &script]).code(0);
    world.run(&["wait", "one"]).code(0);
    let details = asked(&world);
    for part in [
        &*format!("{}/bin/gemini --acp\n", home.display()),
        &format!("it may read and change {}/.gemini, and only read .env, ", home.display()),
        "it may reach accounts.google.com, ",
        "generativelanguage.googleapis.com, ",
        " and no other host\n",
        "GEMINI_API_KEY",
    ] {
        assert!(details.contains(part), "{part}: {details}");
    }
    assert!(!details.contains("for-gemini"), "{details}");
    assert!(!home.join(".gemini").exists(), "its folder is created when it starts");
    world.run(&["approve", "--always", &open_asks(&world)[0]]).code(0);
    world.run(&["wait", "one"]).code(0);
    let log = log_of(&world);
    assert!(note.exists() && log.contains("GEMINI_API_KEY=for-gemini"), "{log}");
    // It has no other keys, no other files, and only a proxy for its network.
    assert!(log.contains("OPENAI_API_KEY=None") && log.contains("HTTPS_PROXY=http://"), "{log}");
    assert!(!home.join("elsewhere").exists() && !log.contains("daemon.lock"), "{log}");
    // Other processes of a session get none of its variables.
    let ran = run(&world, &["run", "--model", "rehearsal", "--policy", "all", "shell env"]);
    assert!(!ran.err.contains("for-gemini") && !ran.out.contains("for-gemini"), "{ran:#?}");
}

/// Settings that name programs would run outside of the sandbox when the user starts the agent.
#[test]
fn m_h3_a_known_agent_can_not_change_the_settings_of_its_next_start() {
    let world = world("bwrap");
    install(&world, "home/bin", "claude-agent-acp", "exec python3 ${0%/*}/plain.py");
    let home = world.path("home").canonicalize().unwrap();
    let folder = home.join(".claude");
    fs::create_dir_all(folder.join("hooks")).unwrap();
    fs::write(folder.join("hooks/run.sh"), "old").unwrap();
    fs::write(home.join("other.json"), "{}").unwrap();
    // The target of a link can't be changed either.
    std::os::unix::fs::symlink(home.join("other.json"), folder.join("settings.local.json"))
        .unwrap();
    let protected = ["settings.json", "hooks/run.sh", "hooks/new.sh", "plugins/x", "local/claude"];
    let linked = ["settings.local.json"];
    let script =
        protected.iter().chain(&linked).map(|path| folder.join(path).display().to_string());
    let script: Vec<_> = script.map(|path| format!("write {path} planted")).collect();
    let usual = [folder.join("note"), home.join(".claude.json")];
    let usual = usual.map(|path| format!("write {} used", path.display()));
    let script = [script, usual.to_vec()].concat().join("\n");
    let policy = ["run", "--policy", "all", "--agent", "claude"];
    let ran = run(&world, &[&policy[..], &[&script]].concat()).code(0);
    let read = |path: &str| fs::read_to_string(home.join(path)).unwrap();
    assert_eq!(read(".claude/note"), "used", "{ran:#?}");
    assert_eq!(read(".claude.json"), "used");
    assert_eq!(
        (read(".claude/settings.json"), read(".claude/hooks/run.sh")),
        ("{}\n".into(), "old".into())
    );
    assert_eq!(read("other.json"), "{}");
    for absent in ["hooks/new.sh", "plugins/x", "local/claude"] {
        assert!(!folder.join(absent).exists(), "{absent}: {ran:#?}");
    }

    // The control: without mounts, the same agent can change them, and the Confirm does not deny it.
    world.config("[sandbox]\nlevel = \"landlock\"\n");
    run(&world, &[&policy[..], &[&script]].concat()).code(0);
    assert_eq!(read(".claude/settings.json"), "planted");
}

#[test]
fn m_h3_always_remembers_a_known_agent_until_its_needs_change() {
    let world = world("bwrap");
    let open = |name: &str| {
        run(&world, &["new", "--name", name, "--agent", "gemini", "say Started."]).code(0);
        world.run(&["wait", name]);
        !open_asks(&world).is_empty()
    };
    assert!(open("one"));
    world.run(&["approve", &open_asks(&world)[0]]).code(0);
    assert!(open("two"), "an approval is for one session");
    world.run(&["approve", "--always", &open_asks(&world)[0]]).code(0);
    assert!(!open("three"));
    // In another folder, too.
    fs::create_dir(world.path("work/other")).unwrap();
    let other = world.path("work/other");
    let args =
        ["new", "--name", "elsewhere", "--agent", "gemini", "--cwd", other.to_str().unwrap()];
    run(&world, &[&args[..], &["say Started."]].concat()).code(0);
    world.run(&["wait", "elsewhere"]);
    assert!(open_asks(&world).is_empty());
    let agents = run(&world, &["agents", "gemini"]).code(0);
    assert!(agents.out.contains("approved for all sessions"), "{agents:#?}");
    // Another program is found first.
    let script = "exec python3 ${0%/*}/plain.py";
    install(&world, "home/other", "gemini", script);
    assert!(open("four"));
    world.run(&["deny", &open_asks(&world)[0]]).code(0);
    fs::remove_file(world.path("home/other/gemini")).unwrap();
    assert!(!open("five"));
    run(&world, &["agents", "gemini", "--forget"]).code(0);
    assert!(open("six"));
    let log = world.run(&["logs", "five"]).code(0).out;
    assert!(log.contains("Started."), "{log}");
}

#[test]
fn m_h3_a_known_agent_that_can_not_start_says_why() {
    let world = world("bwrap");
    let ran = run(&world, &["run", "--agent", "codex", "say A."]).code(1);
    let hint = "hint: npm install -g @agentclientprotocol/codex-acp";
    assert!(ran.err.contains("codex-acp` is not found") && ran.err.contains(hint), "{ran:#?}");
    // A link that would open more than the agent's files.
    std::os::unix::fs::symlink(world.path("home"), world.path("home/.gemini")).unwrap();
    let ran = run(&world, &["run", "--policy", "all", "--agent", "gemini", "say A."]).code(1);
    assert!(ran.err.contains("has more than the agent's files"), "{ran:#?}");
    // A program of the workspace is none of the user.
    let home = world.path("home").display().to_string();
    fs::remove_file(world.path("home/.gemini")).unwrap();
    let ran = run(&world, &["run", "--agent", "gemini", "--cwd", &home, "say A."]).code(1);
    let why =
        "/gemini is in the workspace, and programs of the workspace are not started as agents";
    assert!(ran.err.contains(why), "{ran:#?}");
    // With arguments, it is a program as any other.
    let ran = run(&world, &["run", "--agent", "gemini --acp", "env GEMINI_API_KEY"]).code(0);
    assert_eq!(ran.out, "GEMINI_API_KEY=None\n");
}

#[test]
fn m_h3_a_sandbox_that_can_not_restrict_hosts_says_so() {
    let world = world("landlock");
    run(&world, &["new", "--name", "one", "--agent", "gemini", "say Started."]).code(0);
    world.run(&["wait", "one"]).code(0);
    let details = asked(&world);
    assert!(details.contains("it may use the network\n"), "{details}");
    world.run(&["approve", &open_asks(&world)[0]]).code(0);
    world.run(&["wait", "one"]).code(0);
    assert!(log_of(&world).contains("Started."));
}

/// A server on this machine that answers each request with `hello`. Returns its port.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            // The request of the agent fits into one piece.
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        }
    });
    port
}

#[test]
fn m_h3_the_server_of_a_known_agent_is_one_of_its_needs() {
    let port = server();
    let world = configured("bwrap", &format!("[web]\nallow = [\"localhost:{port}\"]\n"));
    let url = format!("http://localhost:{port}");
    let open = |name: &str, url: Option<&str>, script: &str| {
        let mut command = command(&world, &["new", "--name", name, "--agent", "gemini", script]);
        command.envs(url.map(|url| ("GOOGLE_GEMINI_BASE_URL", url)));
        Ran::of(command).code(0);
        world.run(&["wait", name]).code(0);
    };
    open("before", None, "say Started.");
    world.run(&["approve", "--always", &open_asks(&world)[0]]).code(0);
    open("again", None, "say Started.");
    assert!(open_asks(&world).is_empty());
    // With a server, its needs are others.
    open("one", Some(&url), &format!("get {url}/"));
    let details = asked(&world);
    assert!(details.contains("googleapis.com, localhost, oauth2."), "{details}");
    assert!(details.contains("\nits server is localhost, by GOOGLE_GEMINI_BASE_URL"), "{details}");
    world.run(&["approve", "--always", &open_asks(&world)[0]]).code(0);
    world.run(&["wait", "one"]).code(0);
    assert!(log_of(&world).contains("\nhello"), "{}", log_of(&world));
    open("same", Some(&url), "say Started.");
    assert!(open_asks(&world).is_empty());
    open("other", Some("http://other.example/"), "say Started.");
    assert!(asked(&world).contains("other.example, "), "{}", asked(&world));
}

#[test]
fn m_h3_an_address_of_a_server_that_can_not_be_used_is_an_error() {
    for (level, url, why) in [
        ("bwrap", "gw.corp", "the value of GOOGLE_GEMINI_BASE_URL is not an address (hint: "),
        ("landlock", "key:1", "the value of GOOGLE_GEMINI_BASE_URL is not an address (hint: "),
        ("bwrap", "http://127.0.0.1:1", "can't allow the host of GOOGLE_GEMINI_BASE_URL: "),
    ] {
        let world = world(level);
        let args = ["run", "--policy", "all", "--agent", "gemini", "say Started."];
        let mut command = command(&world, &args);
        command.env("GOOGLE_GEMINI_BASE_URL", url);
        let ran = Ran::of(command).code(1);
        assert!(ran.err.contains(why) && !ran.out.contains("Started."), "{url}: {ran:#?}");
    }
}

#[test]
fn m_h3_errors_of_a_known_agent_are_shown_without_the_values_of_its_variables() {
    let key = "team-7f3a-ZQXW-of-all";
    let world = world("bwrap");
    for (name, script, shown) in [
        ("line", "echo key $GEMINI_API_KEY is old >&2; exit 3", "it wrote: key *** is old"),
        // The beginning of the key is not kept.
        ("part", "printf '%s%4090s' $GEMINI_API_KEY '' >&2; exit 3", "it wrote: ***"),
        (
            "long",
            "seq -s ' ' 2000 >&2; echo $GEMINI_API_KEY >&2; seq -s ' ' 105 >&2; exit 3",
            "101 102 103 104 105",
        ),
        (
            "reply",
            r#"read line; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"key '"$GEMINI_API_KEY"' is old"}}'; cat >/dev/null"#,
            "it reported: key *** is old",
        ),
    ] {
        install(&world, "home/bin", "gemini", script);
        let args = ["run", "--name", name, "--policy", "all", "--agent", "gemini", "say A."];
        let mut command = command(&world, &args);
        command.env("GEMINI_API_KEY", key);
        let ran = Ran::of(command).code(1);
        assert!(ran.err.contains(shown), "{name}: {ran:#?}");
        let file = world.work(name).display().to_string();
        world.run(&["export", name, "-o", &file]).code(0);
        let exported = fs::read_to_string(&file).unwrap();
        for text in [&ran.err, &exported] {
            assert!(!text.contains("ZQXW"), "{name}: {text}");
        }
    }
}

#[test]
fn m_h3_agents_lists_and_checks_the_known_agents() {
    let world = world("bwrap");
    let package = r#"{ "name": "@google/gemini-cli", "version": "9.8.7" }"#;
    fs::write(world.path("home/package.json"), package).unwrap();
    let ran = run(&world, &["agents"]).code(0);
    for part in [
        "gemini: /",
        "/home/bin/gemini (9.8.7)\n",
        "GEMINI_API_KEY (set), GOOGLE_API_KEY, ",
        "start      asks\n",
        "codex: not found (npm install -g @agentclientprotocol/codex-acp)\n",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    assert!(!ran.out.contains("for-gemini"), "{}", ran.out);
    run(&world, &["agents", "codex"]).code(1);
    run(&world, &["agents", "other"]).code(2);

    install(&world, "home/bin", "codex-acp", "echo no configuration >&2; exit 3");
    let ran = run(&world, &["agents", "--check", "--json"]).code(1);
    let agents: Value = serde_json::from_str(&ran.out).unwrap();
    let agents = agents.as_array().unwrap();
    let agent = |name: &str| agents.iter().find(|agent| agent["name"] == name).unwrap();
    let (gemini, codex) = (&agent("gemini")["check"], &agent("codex")["check"]);
    assert_eq!(gemini["answers"], true, "{gemini}");
    assert_eq!((&gemini["version"], &gemini["sandbox"]), (&"1.2.3".into(), &"bwrap".into()));
    assert_eq!(codex["answers"], false, "{codex}");
    let why = codex["why"].as_str().unwrap();
    assert!(why.contains("it exited with code 3; it wrote: no configuration"), "{why}");
    assert!(agent("claude")["check"].is_null());
    let ran = run(&world, &["agents", "gemini", "--check"]).code(0);
    assert!(ran.out.contains("sandbox bwrap): plain 1.2.3"), "{}", ran.out);
    assert!(world.census.living().is_empty());

    // An interrupt leaves neither the program nor its folder.
    let (temporary, started) = (world.path("tmp"), world.path("home/.gemini/started"));
    fs::create_dir(&temporary).unwrap();
    install(&world, "home/bin", "gemini", &format!("touch {}; sleep 600", started.display()));
    let mut command = command(&world, &["agents", "gemini", "--check"]);
    let mut child = command.env("TMPDIR", &temporary).spawn().unwrap();
    let by = Instant::now() + patience();
    while !started.exists() {
        assert!(Instant::now() < by, "the agent does not start");
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(wait(&mut child).code(), Some(130));
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
    while let living = world.census.living()
        && !living.is_empty()
    {
        assert!(Instant::now() < by, "{living:?}");
    }
}

#[test]
fn m_h3_a_shell_completes_the_names_of_agents() {
    let world = World::new();
    let mut command = world.command(&["--", "holdpoint", "new", "--agent", ""]);
    command.env("COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "3");
    let ran = Ran::of(command).code(0);
    for name in ["claude", "codex", "gemini", "opencode"] {
        assert!(ran.out.split_whitespace().any(|word| word == name), "{}", ran.out);
    }
}
