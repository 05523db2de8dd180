//! `holdpoint status`, and daemons of other versions.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};

use super::harness::{DaemonWorld, ask};
use crate::world::Ran;
use holdpoint_common::api::API_VERSION;

#[test]
fn without_a_daemon_it_says_so_and_starts_none() {
    let house = DaemonWorld::new();
    assert!(house.run(&["status"]).code(3).out.contains("is not running"));
    let json: serde_json::Value =
        serde_json::from_str(&house.run(&["status", "--json"]).code(3).out).unwrap();
    assert_eq!(json, serde_json::json!({ "pid": null }));
    assert!(
        !house.data().exists() && !house.socket().exists(),
        "the status command creates nothing"
    );
}

#[test]
fn status_shows_version_socket_data_folder_and_counts() {
    let house = DaemonWorld::new();
    house.start();
    let status = house.status();
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(status["socket"], house.socket().to_str().unwrap());
    assert_eq!(status["data"], house.data().to_str().unwrap());
    assert_eq!(status["saved"], true);
    assert_eq!(status["connections"], 1);
    assert_eq!(status["sessions"]["live"], 0);
    assert!(["bwrap", "landlock", "off"].iter().any(|level| status["sandbox"]["level"] == *level));
    assert_eq!(status["sessions"]["limit"], 10);
    let text = house.run(&["status"]).code(0).out;
    for line in
        ["socket ", "data ", "log ", "sandbox ", "sessions  0 of 10 live", "clients   0 attached"]
    {
        assert!(text.lines().any(|shown| shown.starts_with(line)), "{line}: {text}");
    }
}

/// A daemon keeps the configuration that it read at its start. Values that each command reads by
/// itself do not concern it.
#[test]
fn m_e2_a_configuration_changed_since_the_start_is_reported() {
    let house = DaemonWorld::new();
    let tells = |what: &str| {
        let [status, show] =
            [&["status"][..], &["config", "show"]].map(|args| house.run(args).code(0));
        let hint = if what.is_empty() { "" } else { "hint: `holdpoint daemon restart` " };
        let notice = format!("changed since the daemon read it: {what}\n");
        assert_eq!(
            status.out.contains(&format!("\nconfig    {notice}")),
            !what.is_empty(),
            "{status:#?}"
        );
        assert_eq!(
            show.err.starts_with(&format!("the configuration has {notice}")),
            !what.is_empty(),
            "{show:#?}"
        );
        assert!(
            [status.err, show.err]
                .iter()
                .all(|err| err.contains(hint) && err.is_empty() == what.is_empty())
        );
    };
    house.0.config("[limits]\nmax_sessions = 3\n");
    assert_eq!(house.run(&["config", "show"]).code(0).err, "", "no daemon is running");
    house.start();
    assert_eq!(house.status()["config"]["limits"]["max_sessions"], 3);
    tells("");
    house.0.config(
        "model = 'openai'\npolicy = 'all'\n[limits]\nmax_sessions = 3\n[tui]\nbell = false\n",
    );
    tells("");
    house.0.config("log = 'debug'\n[limits]\nmax_sessions = 4\n[notify]\ncommand = 'true'\n[web]\nidle_minutes = 1\n");
    tells("[limits], log, [notify], [web]");
    house.run(&["daemon", "restart"]).code(0);
    tells("");
    // An unreadable configuration does not prevent the status.
    house.0.config("[limits");
    assert_eq!(house.run(&["status"]).code(0).err, "");
}

/// Where a saved session is missing, commands point to the damaged store.
#[test]
fn a_damaged_store_is_reported_where_sessions_are_missing() {
    let house = DaemonWorld::new();
    house.start();
    assert!(!house.run(&["list"]).code(0).err.contains("damaged"));
    assert!(!house.run(&["logs", "one"]).code(1).err.contains("damaged"));
    house.run(&["daemon", "stop"]).code(0);
    std::fs::write(house.data().join("sessions.db"), "no database at all ".repeat(1_000)).unwrap();
    let listed = house.run(&["list"]).code(0);
    assert!(
        listed.out.starts_with("No sessions.")
            && listed.err.contains("hint: the store was damaged"),
        "{listed:#?}"
    );
    let missed = house.run(&["logs", "one"]).code(1);
    assert!(
        missed.err.contains("`holdpoint list` lists every session; the store was damaged"),
        "{missed:#?}"
    );
    let missed = house.run(&["interrupt", "one", "two"]).code(1);
    assert_eq!(
        missed.err.matches("lists every session; the store was damaged").count(),
        2,
        "{missed:#?}"
    );
    let status = house.run(&["status"]).code(0).out;
    assert!(
        status.contains("is kept as") && status.contains("no session can be read from it"),
        "{status}"
    );
}

/// Overwrites the first page of the table of facts.
fn damage_facts(house: &DaemonWorld) {
    let database =
        std::fs::OpenOptions::new().write(true).open(house.data().join("sessions.db")).unwrap();
    database.write_all_at(&[0xa5; 4_096], 3 * 4_096).unwrap();
}

/// A listed session that has lost all of its facts can be deleted, as the error suggests.
#[test]
fn a_session_without_facts_is_reported_and_can_be_deleted() {
    let house = DaemonWorld::new();
    house.run(&["new", "--name", "one", "--model", "rehearsal", "say hello"]).code(0);
    house.run(&["wait", "one"]).code(0);
    house.run(&["daemon", "stop"]).code(0);
    damage_facts(&house);
    assert!(house.run(&["list"]).code(0).out.contains(" one "));
    for command in ["logs", "show", "export"] {
        let ran = house.run(&[command, "one"]).code(1);
        assert!(
            ran.err.contains("is damaged: none of its events 1 to")
                && ran.err.contains("holdpoint rm")
        );
    }
    assert_eq!(house.run(&["rm", "one"]).code(0).out, "one: deleted\n");
    assert!(house.run(&["list"]).code(0).out.starts_with("No sessions."));
}

/// The list still has the first ask of a session that has lost all of its facts.
#[test]
fn a_session_without_facts_is_kept_while_it_has_an_open_ask() {
    let house = DaemonWorld::new();
    let id = house.0.open(&["--name", "one"], "shell: touch made");
    let ask = house.0.ask(&id);
    house.run(&["daemon", "stop"]).code(0);
    damage_facts(&house);
    let kept = house.run(&["rm", "one"]).code(1);
    assert!(kept.err.contains(&ask) && kept.out.is_empty(), "{kept:#?}");
    assert!(kept.err.contains("the session is damaged; --force deletes it"), "{kept:#?}");
    assert_eq!(house.run(&["rm", "one", "--force"]).code(0).out, "one: deleted\n");
}

/// A damaged row is found before its session is opened, and every command that shows the session
/// reports it.
#[test]
fn t_u5_a_damaged_row_is_reported_wherever_its_session_is() {
    let house = DaemonWorld::new();
    for name in ["one", "two"] {
        house.run(&["new", "--name", name, "--model", "rehearsal", &format!("say {name}")]).code(0);
        house.run(&["wait", name]).code(0);
    }
    house.run(&["daemon", "stop"]).code(0);
    let database = house.data().join("sessions.db");
    let mut bytes = std::fs::read(&database).unwrap();
    let fact = br#""type":"promptAccepted","prompt":1,"text":"say one""#;
    let at = bytes.windows(fact.len()).position(|window| window == fact).unwrap();
    bytes[at + fact.len() - 2] = b'x';
    std::fs::write(&database, &bytes).unwrap();

    let damage = " can't be read";
    let one = |text: &str| {
        text.lines().filter(|line| line.contains(damage) && line.contains("event")).count()
    };
    let listed = house.run(&["list"]).code(0);
    assert_eq!(listed.out.matches("damaged, saved, idle").count(), 1, "{listed:#?}");
    assert!(listed.err.starts_with("damaged: one (") && one(&listed.err) == 1, "{listed:#?}");
    let json: serde_json::Value =
        serde_json::from_str(&house.run(&["list", "--json"]).code(0).out).unwrap();
    let of = |name: &str| {
        json["sessions"].as_array().unwrap().iter().find(|session| session["name"] == name).unwrap()
    };
    assert_eq!(
        (of("one")["gaps"].as_array().unwrap().len(), &of("two")["gaps"]),
        (1, &serde_json::Value::Null)
    );
    for shown in [house.run(&["show", "one"]), house.run(&["status"])] {
        let shown = shown.code(0).out;
        assert!(one(&shown) == 1 && shown.contains("damaged   "), "{shown}");
    }
    assert_eq!(one(&house.run(&["show", "two"]).code(0).out), 0);
    // The session continues, and a prompt reports the events that the model does not know.
    let prompted = house.run(&["prompt", "one", "say more"]).code(0);
    assert!(
        prompted.err.starts_with("damaged: event ") && one(&prompted.err) == 1,
        "{prompted:#?}"
    );
    house.run(&["wait", "one"]).code(0);
    let live = house.run(&["list"]).code(0);
    assert!(live.out.contains("damaged, idle") && one(&live.err) == 1, "{live:#?}");
    assert_eq!(house.run(&["prompt", "two", "say more"]).code(0).err, "");
}

/// A fake daemon, found until this is dropped. A command that stopped it would stop this test.
struct FakeDaemon(std::path::PathBuf);

impl Drop for FakeDaemon {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}

/// Starts a fake daemon with this version of the API.
fn start_fake_daemon(house: &DaemonWorld, api: u32) -> FakeDaemon {
    let folder = house.socket().parent().unwrap().to_owned();
    std::fs::create_dir_all(&folder).unwrap();
    let listener = UnixListener::bind(house.socket()).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                line.clear();
            }
            let body =
                format!("{{\"version\":\"7.8.9\",\"api\":{api},\"pid\":42,\"aWordOfLater\":true}}");
            // A client that only probes the socket is gone.
            let _ =
                write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        }
    });
    FakeDaemon(house.socket())
}

#[test]
fn a_daemon_of_another_version_is_reported_and_status_works() {
    for (api, hint) in [(0, "holdpoint daemon restart"), (99, "newer holdpoint")] {
        let house = DaemonWorld::new();
        let _pretence = start_fake_daemon(&house, api);
        let ran = house.run(&["daemon", "start"]).code(1);
        assert!(
            ran.err.contains("7.8.9") && ran.err.contains("pid 42") && ran.err.contains(hint),
            "{ran:#?}"
        );
        assert!(house.run(&["status"]).code(0).out.contains("holdpoint 7.8.9"));
        assert_eq!(house.status()["api"], api);
    }
}

#[test]
fn a_client_of_another_version_may_only_ask_for_the_status() {
    let house = DaemonWorld::new();
    house.start();
    let ask = |path, headers| ask(UnixStream::connect(house.socket()).unwrap(), path, headers);
    assert!(ask("/v1/status", "holdpoint-api: 99\r\n").starts_with("HTTP/1.1 200"));
    let refused = ask("/v1/asks", "holdpoint-api: 99\r\n");
    assert!(refused.starts_with("HTTP/1.1 426") && refused.contains("otherVersion"), "{refused}");
    assert!(
        ask("/v1/asks", &format!("holdpoint-api: {API_VERSION}\r\n")).starts_with("HTTP/1.1 200")
    );
}

/// The log has a command's output with its result; only the daemon had it in pieces.
#[test]
fn m_b7_logs_have_the_output_of_commands_after_a_restart() {
    let house = DaemonWorld::new();
    let script = "shell: echo out; echo err >&2; seq 3; printf end; exit 3";
    house.run(&["new", "--name", "one", "--model", "rehearsal", "--policy", "all", script]).code(0);
    house.run(&["wait", "one"]).code(0);
    let lines = |ran: Ran| {
        let shown = |line: &str| line.trim_start().starts_with(['│', '└']);
        ran.out.lines().filter(|line| shown(line)).map(str::to_owned).collect::<Vec<_>>()
    };
    let before = lines(house.run(&["logs", "one"]).code(0));
    house.run(&["daemon", "stop"]).code(0);
    let after = lines(house.run(&["logs", "one"]).code(0));
    for line in ["out", "err", "1", "2", "3", "end"] {
        assert_eq!(
            after.iter().filter(|shown| shown.trim() == format!("│ {line}")).count(),
            1,
            "{line}: {after:?}"
        );
    }
    assert_eq!(after, before);
    // Of a long output, the head and the tail are kept.
    house
        .run(&[
            "new",
            "--name",
            "two",
            "--model",
            "rehearsal",
            "--policy",
            "all",
            "shell: seq 20000",
        ])
        .code(0);
    house.run(&["wait", "two"]).code(0);
    house.run(&["daemon", "stop"]).code(0);
    let long = lines(house.run(&["logs", "two"]).code(0));
    for line in ["1", "2", "3000", "19999", "20000"] {
        assert!(long.contains(&format!("  │ {line}")), "{line}: {}", long.len());
    }
    assert_eq!(long.iter().filter(|line| line.contains("bytes not shown")).count(), 1);
}
