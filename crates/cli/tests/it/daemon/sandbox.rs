//! The sandbox of a session's commands.

use std::fs;

use serde_json::{Value, json};

use super::client::Api;
use super::from_tool;
use super::harness::DaemonWorld;
use crate::world::program;

/// The sandboxes that work here.
const LEVELS: [&str; 2] = ["bwrap", "landlock"];

/// Opens a session with this sandbox, in which every command runs.
fn open(house: &DaemonWorld, sandbox: &Value) -> String {
    open_under("all", house, sandbox)
}

/// Opens a session with this policy and sandbox.
pub(super) fn open_under(policy: &str, house: &DaemonWorld, sandbox: &Value) -> String {
    let api = Api::new(house);
    let body = json!({
        "workspace": house.0.path("work"),
        "policy": policy,
        "model": "rehearsal",
        "sandbox": sandbox,
        "supplies": api.supplies(),
    });
    api.post("sessions", &body).ok()["settings"]["id"].as_str().unwrap().to_owned()
}

/// Runs a command in a session. Returns the log of the session.
fn run(house: &DaemonWorld, session: &str, command: &str) -> String {
    let api = Api::new(house);
    api.prompt(session, &format!("call shell {}", json!({ "command": command })));
    api.settled(session);
    house.run(&["logs", session]).code(0).out
}

#[test]
fn m_g2_nothing_in_a_sandbox_reaches_the_daemon() {
    let (house, session, ask) = from_tool::world();
    let (pid, api) = (house.pid(), Api::new(&house));
    // The program may be in a folder that the sandbox does not contain.
    let inside = house.0.work("holdpoint");
    fs::hard_link(program(), &inside).or_else(|_| fs::copy(program(), &inside).map(drop)).unwrap();
    for script in ["requests", "ways"].map(|name| house.0.work(name)) {
        let text = fs::read_to_string(&script).unwrap();
        let [outside, inside] = [program(), &inside].map(|path| path.to_str().unwrap());
        fs::write(&script, text.replace(outside, inside)).unwrap();
    }
    for level in LEVELS {
        let agent = open(&house, &json!({ "level": level }));
        run(&house, &agent, "NAMESPACE= bash ways | grep '|' > tried");
        let tried = fs::read_to_string(house.0.work("tried")).unwrap();
        for way in ["plain", "setsid", "cleared", "orphan", "nested"] {
            let count = tried.lines().filter(|line| line.starts_with(&format!("{way}|"))).count();
            assert_eq!(count, from_tool::requests(), "{level}, {way}: {tried}");
        }
        assert!(!tried.contains("holdpoint: No such file"), "{level}: {tried}");
        run(&house, &agent, "rm -rf orphan.* nested.* tried own");
    }
    assert_eq!(house.pid(), pid);
    assert_eq!(api.asks(&session, 1), std::slice::from_ref(&ask));
    assert!(!house.0.work("approved").exists());
    let sessions = api.get("sessions").ok();
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1 + LEVELS.len(), "{sessions}");
}

#[test]
fn m_g2_commands_and_jobs_run_in_the_sandbox_of_their_session() {
    let house = DaemonWorld::new();
    house.start();
    let api = Api::new(&house);
    fs::write(house.0.path("home/private"), "CONTENT").unwrap();
    let read = format!("cat {}", house.0.path("home/private").display());
    let mut sessions = Vec::new();
    for (level, is_read) in [("off", true), ("landlock", false), ("bwrap", false)] {
        let session = open(&house, &json!({ "level": level, "hidden": ["~/private"] }));
        assert_eq!(run(&house, &session, &read).contains("CONTENT"), is_read, "{level}");
        let job = json!({ "command": format!("{read} > job; touch done"), "background": true });
        api.prompt(&session, &format!("call shell {job}"));
        api.settled(&session);
        run(&house, &session, "until [ -e done ]; do sleep 0.01; done; rm done");
        let job = fs::read_to_string(house.0.work("job")).unwrap();
        assert_eq!(job.contains("CONTENT"), is_read, "{level}");
        let shown = house.run(&["show", &session]).code(0).out;
        assert!(shown.contains(&format!("sandbox   {level}")), "{shown}");
        sessions.push(session);
    }
    // The level stays the same when the session is opened again.
    house.run(&["daemon", "stop"]).code(0);
    house.start();
    let session = sessions.pop().unwrap();
    api.post(&format!("sessions/{session}/open"), &api.supplies()).ok();
    assert!(!run(&house, &session, &read).contains("CONTENT"));
    // From the configuration and the command line.
    house.0.config("[sandbox]\nhidden = ['~/private']\n");
    let script = format!("shell: {read}");
    for (level, is_read) in [("off", true), ("auto", false)] {
        let ran = house.run(&["run", "--policy", "all", "--sandbox", level, &script]);
        assert_eq!(ran.err.contains("CONTENT"), is_read, "{level}: {ran:?}");
    }
}

#[test]
fn m_g2_a_session_says_which_sandbox_it_got() {
    let house = DaemonWorld::new();
    house.start();
    let api = Api::new(&house);
    let session = open(&house, &json!({ "level": "auto" }));
    assert_eq!(api.look(&session).settings.sandbox.level.name(), "bwrap");
    let shown = house.run(&["show", &session, "--json"]).code(0).out;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["settings"]["sandbox"]["level"], "bwrap");
    // A path that is not absolute is refused, and no session is opened.
    let body = json!({
        "workspace": house.0.path("work"),
        "sandbox": { "level": "bwrap", "writable": ["here"] },
    });
    let error = api.post("sessions", &body).error(422);
    assert!(format!("{error:?}").contains("`here` is neither absolute"), "{error:?}");
    assert_eq!(api.get("sessions").ok()["sessions"].as_array().unwrap().len(), 1);
    house.0.config("[sandbox]\nwritable = ['here']\n");
    let ran = house.run(&["new"]).code(2);
    assert!(ran.err.contains("`here` is neither absolute"), "{ran:?}");
}

#[test]
fn m_g2_the_temporary_files_of_a_deleted_session_are_removed() {
    let house = DaemonWorld::new();
    house.start();
    let session = open(&house, &json!({ "level": "bwrap" }));
    run(&house, &session, "echo kept > ${TMPDIR:-/tmp}/file");
    let folder = house.data().join("sandbox/tmp").join(&session);
    assert_eq!(fs::read_to_string(folder.join("file")).unwrap(), "kept\n");
    house.run(&["close", &session]).code(0);
    house.run(&["rm", &session]).code(0);
    assert!(!folder.exists());
    // A session that is not saved has no files after its end.
    let script = "shell: echo kept > ${TMPDIR:-/tmp}/file && cat ${TMPDIR:-/tmp}/file";
    let ran = house
        .run(&["run", "--in-process", "--policy", "all", "--sandbox", "bwrap", script])
        .code(0);
    assert!(ran.err.contains("kept\n"), "{ran:?}");
    let left: Vec<_> = fs::read_dir(house.data().join("sandbox/tmp")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn m_g2_a_changed_protected_name_is_in_place_only_once_it_is_approved() {
    let house = DaemonWorld::new();
    house.start();
    let api = Api::new(&house);
    fs::create_dir(house.0.work("sub")).unwrap();
    let file = house.0.work("sub/AGENTS.md");
    let command = json!({ "command": "echo new > sub/AGENTS.md" });
    for level in LEVELS {
        for (answer, text) in [("deny", "old\n"), ("approve", "new\n")] {
            fs::write(&file, "old\n").unwrap();
            let session = open_under("sandboxed", &house, &json!({ "level": level }));
            api.prompt(&session, &format!("call shell {command}"));
            let ask = api.asks(&session, 1).remove(0);
            assert_eq!(fs::read_to_string(&file).unwrap(), "old\n", "{level}");
            let aside = house.data().join("sandbox/aside").join(&session);
            assert_eq!(fs::read_to_string(aside.join("0/sub/AGENTS.md")).unwrap(), "new\n");
            let shown = house.run(&["show", &session]).code(0).out;
            assert!(shown.contains("Keep the change of a protected file?"), "{shown}");
            api.answer(&ask, &json!({ "type": answer })).ok();
            api.settled(&session);
            assert_eq!(fs::read_to_string(&file).unwrap(), text, "{level}");
            let log = house.run(&["logs", &session]).code(0).out;
            let word = if answer == "deny" { "denied" } else { "approved" };
            assert!(log.contains(&format!("the user {word} the changes")), "{log}");
            house.run(&["close", &session]).code(0);
            house.run(&["rm", &session]).code(0);
            assert!(!aside.exists());
        }
    }
    // Without a sandbox, and under a policy that allows every write, nothing is compared.
    for level in ["off", "bwrap"] {
        fs::write(&file, "old\n").unwrap();
        let session = open(&house, &json!({ "level": level }));
        run(&house, &session, "echo new > sub/AGENTS.md");
        assert_eq!(fs::read_to_string(&file).unwrap(), "new\n", "{level}");
    }
}
