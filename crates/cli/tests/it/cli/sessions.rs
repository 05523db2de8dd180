//! Sessions that outlive the command that opened them: opened, listed, asked, answered, held, left,
//! and reopened.

use std::io::{BufRead, BufReader, Read};
use std::process::Child;

use holdpoint_common::api::SessionList;
use holdpoint_common::{AskFact, CutCause, Fact, Outcome, ToolFact, TurnFact};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::pty::Terminal;
use crate::tty::Tty;
use crate::world::{Ran, Running, World, finished, timeout, wait, wait_full};

/// A process that may start a daemon. It must end before its world, even when a test fails.
struct Follower(Child);

impl Drop for Follower {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl World {
    fn fifo(&self, name: &str) {
        assert!(
            std::process::Command::new("mkfifo").arg(self.work(name)).status().unwrap().success()
        );
    }

    /// Starts a `run` in the session `mine`. Its turn ends when something writes to `go`.
    fn runs_until_go(&self) -> Running {
        self.fifo("go");
        let mut run =
            self.start(&["--policy", "all", "--name", "mine"], "shell: echo up; read line < go");
        run.wait_for("the turn", |event| {
            matches!(event.fact(), Some(Fact::Tool(ToolFact::Started { .. })))
        });
        run
    }

    fn follower(&self, args: &[&str]) -> Follower {
        Follower(self.command(args).spawn().unwrap())
    }

    /// Waits until the daemon has logged the follower's watch.
    fn wait_watched(&self, by: &Follower) {
        let log = self.path("data/holdpoint/logs/daemon.log");
        let pid = format!("pid {} client=\"wait\"", by.0.id());
        let watches = |line: &str| line.contains(": watch peer=") && line.contains(&pid);
        while !std::fs::read_to_string(&log).unwrap().lines().any(watches) {
            std::thread::yield_now();
        }
    }

    /// Runs a command and parses its JSON output.
    #[track_caller]
    pub(super) fn json(&self, args: &[&str]) -> Value {
        self.json_of(0, args)
    }

    /// Like `json`, with another exit code.
    #[track_caller]
    fn json_of(&self, code: i32, args: &[&str]) -> Value {
        serde_json::from_str(&self.run(args).code(code).out).unwrap()
    }

    /// Opens a session that plays a script, and returns its id.
    #[track_caller]
    pub(crate) fn open(&self, args: &[&str], script: &str) -> String {
        self.run(&[&["new"], args, &[script]].concat()).code(0).out.trim().to_owned()
    }

    /// Waits for the only open ask and returns its id.
    #[track_caller]
    pub(crate) fn ask(&self, session: &str) -> String {
        self.run(&["wait", session, "--for", "ask", "--timeout", &timeout()]).code(0);
        let inbox = self.json(&["inbox", "--json"]);
        assert_eq!(inbox["asks"].as_array().unwrap().len(), 1, "{inbox}");
        inbox["asks"][0]["ask"]["id"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    pub(super) fn idle(&self, session: &str) {
        self.run(&["wait", session, "--for", "idle", "--timeout", &timeout()]).code(0);
    }
}

#[test]
fn m_b9_sessions_are_opened_listed_shown_renamed_closed_and_deleted() {
    let world = World::new();
    let id = world.open(&["--name", "one"], "say Hello.");
    world.idle("one");
    let list = world.json(&["ls", "--json"]);
    let one = &list["sessions"][0];
    assert_eq!(
        (one["id"].as_str(), one["name"].as_str(), one["live"].as_bool()),
        (Some(&*id), Some("one"), Some(true))
    );
    assert_eq!(one["lastTurn"]["outcome"], "done");
    let shown = world.run(&["show", &id[..4]]).code(0).out;
    // Fewer than four characters are not taken for an id, and a command that can't be undone needs
    // the whole id.
    for length in 1..4 {
        let short = world.run(&["show", &id[..length]]).code(1);
        assert!(short.err.contains("there is no session"), "{short:#?}");
    }
    for args in [&["show", ""][..], &["rm", ""], &["prompt", "", "say x"], &["export", ""]] {
        let ran = world.run(args).code(1);
        assert!(ran.err.contains("there is no session ``"), "{ran:#?}");
    }
    // Commands print the session's name first if the rest of their output does not have it.
    let meant = format!("session: one ({id})\n");
    for args in [
        &["prompt", &id[..4], "say Hello."][..],
        &["rename", &id[..5], "one"],
        &["export", &id[..6]],
    ] {
        assert_eq!(world.run(args).code(0).err, meant);
        world.idle("one");
    }
    assert!(world.run(&["logs", &id[..4]]).code(0).out.starts_with(&meant));
    assert_eq!(world.run(&["prompt", &id, "say Hello."]).code(0).err, "");
    world.idle("one");
    world.run(&["rename", "one", &format!(" {id} ")]).code(1);
    for command in ["close", "rm"] {
        let begun = world.run(&[command, &id[..9]]).code(1);
        assert!(
            begun.err.contains(&format!("only a prefix of a session's id: {id}")),
            "{begun:#?}"
        );
        assert!(begun.err.contains("hint: give the whole id, or the name"), "{begun:#?}");
    }
    assert!(
        world.json(&["list", "--json"])["sessions"][0]["live"].as_bool().unwrap(),
        "the session is not closed"
    );
    assert!(
        shown.contains("session   one") && shown.contains("status    idle (done) for"),
        "{shown}"
    );
    assert!(world.run(&["logs", "one"]).code(0).out.contains("Hello."));
    world.run(&["rm", "one"]).code(1);
    world.run(&["rename", "one", "uno"]).code(0);
    world.run(&["show", "one"]).code(1);
    world.run(&["close", "uno"]).code(0);
    let text = world.run(&["list"]).code(0).out;
    assert!(text.contains("uno") && text.contains("saved, idle (done)"), "{text}");
    // The conversation is still there, and showing it opens nothing.
    let shown = world.run(&["show", "uno"]).code(0).out;
    assert!(
        shown.contains("status    saved, idle (done) for") && shown.contains("last turn done"),
        "{shown}"
    );
    assert_eq!(world.json(&["list", "--json"])["sessions"][0]["live"], false);
    for args in [&["rm", "--json"][..], &["rm", "--force"], &["rm", "--force", "--json"]] {
        let ran = world.run(args).code(2);
        assert!(ran.err.contains("<SESSION|--older-than <DURATION>>"), "{}", ran.err);
    }
    world.run(&["rm", "--older-than", "1d"]).code(0);
    world.run(&["rm", "uno"]).code(0);
    assert!(world.run(&["list"]).code(0).out.starts_with("No sessions."));
}

#[test]
fn m_b9_the_list_is_filtered() {
    let world = World::new();
    std::fs::create_dir(world.work("sub")).unwrap();
    world.open(&["--name", "asks"], "shell: touch made");
    world.ask("asks");
    world.open(&["--name", "other", "--cwd", "sub"], "say Done.");
    world.idle("other");
    let names = |args: &[&str]| {
        let list = world.json(&[&["list", "--json"], args].concat());
        list["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&[]), ["other", "asks"]);
    assert_eq!(names(&["--waiting"]), ["asks"]);
    assert_eq!(names(&["--cwd"]), ["asks"]);
    assert_eq!(names(&["--cwd", "sub"]), ["other"]);
    assert_eq!(names(&["--running"]), Vec::<String>::new());
    world.run(&["list", "--cwd", "nowhere"]).code(2);
}

#[test]
fn m_c1_live_sessions_are_stopped_despite_a_broken_configuration() {
    let world = World::new();
    let runs = world.open(&["--policy", "all"], "shell: touch begun; sleep 1000");
    while !world.work("begun").exists() {
        world.run(&["show", &runs]).code(0);
    }
    let asks = world.open(&[], "shell: touch made");
    let ask = world.ask(&asks);
    let saved = world.open(&[], "say Well.");
    world.idle(&saved);
    world.run(&["close", &saved]).code(0);
    world.config("nosuch = 1");
    assert!(world.run(&["hold", &asks]).code(0).out.contains("PAUSING..."));
    world.run(&["deny", &ask]).code(0);
    assert!(
        world
            .run(&["interrupt", &runs])
            .code(0)
            .out
            .contains("Agent interrupted: 1 tool stopped, 1 process")
    );
    assert!(world.run(&["list"]).code(0).out.contains(&saved));
    // No command starts anything under a broken configuration.
    for command in [
        &["new", "say Well."][..],
        &["prompt", &saved, "say Well."],
        &["attach", "--plain", &saved],
    ] {
        let refused = world.run(command);
        assert!(refused.code != Some(0) && refused.err.contains("hint: "), "{refused:#?}");
    }
}

#[test]
fn m_a5_an_ask_is_answered_once_by_its_whole_id() {
    let world = World::new();
    let id = world.open(&[], "shell: touch made");
    let ask = world.ask(&id);
    let wrong = world.run(&["continue", &ask]).code(1);
    assert!(wrong.err.contains("is a Confirm\nhint: `holdpoint approve "), "{wrong:#?}");
    // For a session, `approve` asks back, and here is no user to ask.
    assert!(world.run(&["approve", &id]).code(2).err.contains(&ask));
    // A prefix of an ask's id is refused, too: later it may match another session.
    let (whole, number) = ask.rsplit_once('.').unwrap();
    let begun = world.run(&["approve", &format!("{}.{number}", &whole[..5])]).code(2);
    assert!(begun.err.contains("is not an ask id") && begun.err.contains(&ask), "{begun:#?}");
    world.run(&["approve", &ask]).code(0);
    let again = world.run(&["deny", &ask]).code(1);
    assert!(again.err.contains("already answered from the command line (pid "), "{again:#?}");
    world.idle(&id);
    assert!(world.work("made").exists());
    world.run(&["approve", "nobody.7"]).code(1);
}

#[test]
fn m_a2_deny_always_denies_later_calls_until_the_policy_changes() {
    let world = World::new();
    let id = world.open(&[], "shell: touch made\n---\nshell: touch made\n---\nsay Well.");
    let ask = world.ask(&id);
    world.run(&["deny", &ask, "--always", "--reason", "not here"]).code(0);
    world.idle(&id);
    let log = world.run(&["logs", &id]).code(0).out;
    assert!(log.contains("), always in this session: not here\n"), "{log}");
    let denied = "denied: the user denied this for the whole session: not here";
    assert_eq!((log.matches(denied).count(), log.matches("⏸ shell").count()), (2, 1), "{log}");
    world.run(&["policy", "set", &id, "edits"]).code(0);
    world.run(&["prompt", &id, "shell: touch made"]).code(0);
    world.run(&["approve", &world.ask(&id)]).code(0);
    world.idle(&id);
    assert!(world.work("made").exists());
}

#[test]
fn m_a2_a_reason_reaches_the_model_and_questions_are_answered_by_number_or_words() {
    let world = World::new();
    let id = world.open(&[], "shell: touch made");
    let ask = world.ask(&id);
    world.run(&["deny", &ask, "--reason", "not today"]).code(0);
    world.idle(&id);
    assert!(!world.work("made").exists());
    assert!(world.run(&["logs", &id]).code(0).out.contains("): not today\n"));
    let question = r#"call ask_user {"questions":[{"id":"a","header":"Colour","question":"Which?","options":[{"label":"red","description":""},{"label":"blue","description":""}]},{"id":"b","header":"Size","question":"How big?"}]}"#;
    world.run(&["prompt", &id, question]).code(0);
    let ask = world.ask(&id);
    let few = world.run(&["answer", &ask, "2"]).code(2);
    assert!(few.err.starts_with("error: 1 answer for 2 questions\nhint: "), "{few:#?}");
    world.run(&["answer", &ask, "2", "very"]).code(0);
    world.idle(&id);
    let log = world.run(&["logs", &id]).code(0).out;
    assert!(log.contains("): blue, very"), "{log}");
}

/// The screen has no key for such a number either; it is most likely mistyped.
#[test]
fn m_e4_a_number_without_an_option_is_refused() {
    let world = World::new();
    let question = r#"call ask_user {"questions":[{"id":"a","header":"Port","question":"Which?","options":[{"label":"80","description":""},{"label":"443","description":""}]}]}"#;
    let id = world.open(&[], question);
    for (answers, expected) in [
        (&["1"][..], "80"),
        (&["443"], "443"),
        (&["8080", "--own-words"], "8080"),
        (&["a 7"], "a 7"),
        (&["+1"], "+1"),
    ] {
        let ask = world.ask(&id);
        for wrong in ["0", "3", "7", "99999999999999999999"] {
            let refused = world.run(&["answer", &ask, wrong]).code(2).err;
            assert!(
                refused.starts_with(&format!(
                    "error: `Port` has no option {wrong}: the options are 1 to 2\n"
                )),
                "{refused}"
            );
            assert!(refused.contains("\nhint: ") && refused.contains("--own-words"), "{refused}");
        }
        let empty = world.run(&["answer", &ask, " "]).code(2).err;
        assert_eq!(
            empty,
            "error: the answer to `Port` is empty\nhint: give an answer, or decline to answer with `--skip`\n"
        );
        let many = world.run(&["answer", &ask, "1", "2"]).code(2).err;
        assert!(many.starts_with("error: 2 answers for 1 question\n"), "{many}");
        world.run(&[&["answer", &ask], answers].concat()).code(0);
        world.idle(&id);
        let log = world.run(&["logs", &id]).code(0).out;
        let answered =
            log.lines().rfind(|line| line.contains("→ answered from the command line (pid "));
        assert!(answered.is_some_and(|line| line.ends_with(&format!("): {expected}"))), "{log}");
        world.run(&["prompt", &id, question]).code(0);
    }
    // Without options, a number is an ordinary answer.
    let ask = world.ask(&id);
    world.run(&["answer", &ask, "--skip"]).code(0);
    world.idle(&id);
    world.run(&["prompt", &id, "ask: Which port?"]).code(0);
    world.run(&["answer", &world.ask(&id), "8080"]).code(0);
}

#[test]
fn m_a7_logs_tell_which_of_several_asks_was_answered() {
    let world = World::new();
    let id = world.open(&[], "shell: touch one\nshell: touch two\n---\nshell: touch three");
    let asks = loop {
        let inbox = world.json(&["inbox", "--json"]);
        let asks = inbox["asks"].as_array().unwrap();
        if let [one, two] = &asks[..] {
            break [one, two].map(|asked| asked["ask"].clone());
        }
    };
    for (ask, command) in asks.iter().zip(["deny", "approve"]) {
        world.run(&[command, ask["id"].as_str().unwrap()]).code(0);
    }
    let third = world.ask(&id);
    world.run(&["approve", &third]).code(0);
    world.idle(&id);
    let log = world.run(&["logs", &id]).code(0).out;
    for (ask, answer) in asks.iter().zip(["denied", "approved"]) {
        let details = ask["request"]["details"].as_str().unwrap().lines().next().unwrap();
        assert!(
            log.contains(&format!("\n  ⏸ shell: {details} → {answer} from the command line ")),
            "{details}: {log}"
        );
    }
    // A single ask needs no name. The log always names the client that answered.
    assert!(log.contains("\n  → approved from the command line (pid "), "{log}");
}

#[test]
fn m_b2_a_full_queue_says_what_empties_it() {
    let world = World::new();
    world.config("[limits]\nmax_queued_prompts = 1\n");
    let held = world.run(&["new"]).code(0).out.trim().to_owned();
    world.run(&["hold", &held]).code(0);
    world.run(&["prompt", &held, "say Hi."]).code(0);
    let full = world.run(&["prompt", &held, "say Hi."]).code(1);
    assert!(
        full.err.contains(&format!("hint: the session is held: `holdpoint release {held}`")),
        "{full:#?}"
    );
    let busy = world.open(&[], "shell: touch made");
    world.ask(&busy);
    world.run(&["prompt", &busy, "say Hi."]).code(0);
    let full = world.run(&["prompt", &busy, "say Hi."]).code(1);
    assert!(full.err.contains("hint: wait until it has run some of them"), "{full:#?}");
}

#[test]
fn m_d3_all_without_live_sessions_says_so() {
    let world = World::new();
    for command in ["hold", "release", "interrupt", "close"] {
        let ran = world.run(&[command, "--all"]).code(0);
        assert_eq!((&*ran.out, &*ran.err), ("", "No live sessions.\n"), "{command}");
    }
    world.run(&["new", "--name", "one"]).code(0);
    assert_eq!(
        world.run(&["list", "--waiting"]).code(0).out,
        "No session matches. `holdpoint list` shows all (1).\n"
    );
}

#[test]
fn m_b9_a_list_can_be_limited() {
    let world = World::new();
    for name in ["one", "two", "three"] {
        world.run(&["new", "--name", name]).code(0);
    }
    world.run(&["close", "three"]).code(0);
    let names = |args: &[&str]| -> Vec<String> {
        let listed = world.run(&[&["list", "--json"], args].concat()).code(0).out;
        let listed: SessionList = serde_json::from_str(&listed).unwrap();
        listed.sessions.into_iter().map(|session| session.name).collect()
    };
    assert_eq!(names(&[]), ["two", "one", "three"]);
    assert_eq!(names(&["--limit", "1"]), ["two"]);
    assert_eq!(names(&["--live", "--limit", "3"]), ["two", "one"]);
    let cut = world.run(&["list", "--limit", "2"]).code(0);
    assert!(cut.out.contains("one") && !cut.out.contains("three"), "{cut:#?}");
    assert_eq!(cut.err, "hint: the list is cut after 2; use --limit N\n");
    assert_eq!(world.run(&["list", "--limit", "3"]).code(0).err, "");
    let cut = world.run(&["list", "--live", "--limit", "1"]).code(0);
    assert_eq!(cut.err, "hint: the list is cut after 1; use --limit N\n");
    world.run(&["list", "--limit", "0"]).code(2);
}

#[test]
fn m_b9_the_counts_of_the_status_add_up() {
    let world = World::new();
    let sessions = || {
        let status = world.run(&["status"]).code(0).out;
        status.lines().find_map(|line| line.strip_prefix("sessions  ")).unwrap().to_owned()
    };
    for name in ["idle", "held"] {
        world.run(&["new", "--name", name]).code(0);
    }
    assert_eq!(sessions(), "2 of 10 live: 2 idle, 0 busy");
    world.run(&["hold", "held"]).code(0);
    let asks = world.open(&[], "shell: touch made");
    world.ask(&asks);
    assert_eq!(
        sessions(),
        "3 of 10 live: 1 idle, 2 busy (0 running, 1 waiting for an answer, 1 held)"
    );
}

#[test]
fn m_d3_holds_last_until_they_are_released() {
    let world = World::new();
    for name in ["one", "two"] {
        world.run(&["new", "--name", name]).code(0);
    }
    let held = world.run(&["pause", "--all"]).code(0).out;
    assert_eq!(held.matches("⏸ PAUSED").count(), 2, "{held}");
    world.run(&["prompt", "one", "shell: true"]).code(0);
    let shown = world.run(&["show", "one"]).code(0).out;
    assert!(shown.contains("⏸ PAUSED") && shown.contains("queued"), "{shown}");
    world.run(&["play", "--all"]).code(0);
    world.idle("one");
    assert!(world.run(&["show", "one"]).code(0).out.contains("last turn done"));
    world.run(&["hold"]).code(2);
}

#[test]
fn m_c3_an_interrupt_prints_its_receipt() {
    let world = World::new();
    let id =
        world.open(&["--policy", "all", "--name", "busy"], "shell: sleep 1000 & echo up; wait");
    // `logs -f` shows the output as it is produced.
    let mut logs = world.command(&["logs", "-f", "--json", &id]).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(logs.stdout.take().unwrap()));
    assert!(lines.any(|line| line.unwrap().contains("up\\n")));
    let ran = world.run(&["interrupt", "busy"]).code(0);
    assert!(ran.out.contains("Agent interrupted: 1 tool stopped, "), "{ran:#?}");
    // Only the follower is alive; only root can see its mark.
    let mut living = world.census.living();
    living.retain(|(pid, _)| *pid != logs.id());
    assert!(living.is_empty(), "{living:?}");
    assert!(logs.try_wait().unwrap().is_none(), "the follower has ended");
    assert!(world.run(&["interrupt", "busy"]).code(0).out.contains("nothing was running"));
    world.run(&["close", "busy"]).code(0);
    // The follower ends with the session.
    assert!(logs.wait().unwrap().success());
}

#[test]
fn m_b7_m_a11_a_daemon_that_is_killed_loses_nothing() {
    let world = World::new();
    let id = world.open(&["--name", "one"], "shell: touch made");
    let ask = world.ask("one");
    let pid = world.json(&["status", "--json"])["pid"].to_string();
    assert!(
        std::process::Command::new("kill").args(["-s", "KILL", &pid]).status().unwrap().success()
    );
    // The next command starts another daemon, and the ask is open again.
    assert_eq!(world.ask(&id), ask);
    assert!(!world.work("made").exists());
    world.run(&["approve", &ask]).code(0);
    world.idle("one");
    assert!(world.work("made").exists());
}

#[test]
fn m_b10_ctrl_c_in_attach_and_logs_detaches() {
    for command in [&["attach"][..], &["logs", "-f"]] {
        let world = World::new();
        let fifo = std::process::Command::new("mkfifo").arg(world.work("go")).status().unwrap();
        assert!(fifo.success());
        let id = world.open(&["--policy", "all"], "shell: echo up; read line < go; echo $line");
        let mut child = world.command(&[command, &["--json", &id]].concat()).spawn().unwrap();
        let mut lines =
            std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
        assert!(lines.any(|line| line.unwrap().contains("turnStarted")));
        let pid = child.id().to_string();
        assert!(
            std::process::Command::new("kill")
                .args(["-s", "INT", &pid])
                .status()
                .unwrap()
                .success()
        );
        assert_eq!(child.wait().unwrap().code(), Some(0));
        // The turn continues.
        let shown: Ran = world.run(&["show", &id]).code(0);
        assert!(shown.out.contains("status    running"), "{shown:#?}");
        world.run(&["interrupt", &id]).code(0);
    }
}

#[test]
fn a_shell_completes_sessions_and_asks() {
    let world = World::new();
    let id = world.open(&["--name", "one"], "shell: touch made");
    let ask = world.ask("one");
    let complete = |words: &[&str]| {
        let mut command = world.command(&[&["--", "holdpoint"], words].concat());
        command.env("COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", words.len().to_string());
        Ran::of(command).code(0).out
    };
    assert!(complete(&["show", "o"]).contains("one"));
    assert!(complete(&["approve", &ask[..4]]).contains(&ask));
    assert!(complete(&["show", &id[..3]]).contains(&id));
}

/// Another user of the folder has planted a link in the file's place.
#[test]
fn t_d7_an_export_follows_no_link_that_was_planted() {
    let world = World::new();
    world.open(&["--name", "one"], "say Hello.");
    world.idle("one");
    let link = world.work("out.jsonl");
    std::os::unix::fs::symlink(world.path("victim"), &link).unwrap();
    let error = world.run(&["export", "one", "-o", "out.jsonl"]).code(1).err;
    assert!(error.contains("out.jsonl") && error.contains("hint: "), "{error}");
    assert!(!world.path("victim").exists());
    assert!(link.is_symlink(), "the link is unchanged");
}

#[test]
fn a_session_is_exported_and_imported_elsewhere() {
    let (here, there) = (World::new(), World::new());
    let id = here.open(&["--name", "one"], "say Hello.");
    here.idle("one");
    let text = here.run(&["export", "one"]).code(0).out;
    let file = there.work("one.jsonl");
    here.run(&["export", "one", "-o", file.to_str().unwrap()]).code(0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    // An existing file is not overwritten.
    here.run(&["export", "one", "-o", file.to_str().unwrap()]).code(1);
    assert_eq!(there.run(&["import", "one.jsonl"]).code(0).out.trim(), id);
    assert!(there.run(&["logs", "one"]).code(0).out.contains("Hello."));
    // A second import makes another session; a truncated file makes none.
    let again = there.run(&["import", "one.jsonl"]).code(0).out;
    assert_ne!(again.trim(), id);
    std::fs::write(&file, &text[..text.len() - 20]).unwrap();
    assert!(there.run(&["import", "one.jsonl"]).code(1).err.contains("line "));
    assert_eq!(there.json(&["list", "--json"])["sessions"].as_array().unwrap().len(), 2);
}

/// Whichever command shows the words of tools and models, no escape in them reaches the terminal.
#[test]
fn t_c7_no_escape_of_a_tool_or_a_model_reaches_the_terminal() {
    let world = World::new();
    let escapes = [
        "\u{1b}]52;c;aGk=\u{7}",
        "\u{1b}]8;;http://evil\u{1b}\\link",
        "\u{1b}]0;title\u{7}",
        "\u{1b}]2;title\u{1b}\\",
        "\u{1b}]9;note\u{7}",
        "\u{1b}]777;notify;a;b\u{7}",
        "\u{1b}]1337;File=:AA==\u{7}",
        "\u{1b}P1$r0m\u{1b}\\",
        "\u{1b}_app\u{1b}\\",
        "\u{9b}31m",
        "\u{9d}0;c1\u{9c}",
        "\u{1b}[2J\u{1b}[H",
        "\u{7f}\u{202e}\u{200b}\u{e0041}",
    ];
    std::fs::write(world.work("said"), escapes.concat()).unwrap();
    let name = format!("n{}", escapes[2]);
    let script = format!(
        "say {}\nthink {}\nshell: cat said; touch made{}",
        escapes.concat(),
        escapes[0],
        escapes[2]
    );
    let id = world.open(&["--asks", "wait"], &script);
    world.run(&["rename", &id, &name]);
    let ask = world.ask(&id);
    let mut shown = String::new();
    for args in [&["inbox"][..], &["show", &id], &["list"], &["logs", &id], &["inbox", "--json"]] {
        let ran = world.run(args).code(0);
        shown.extend([ran.out, ran.err]);
    }
    world.run(&["approve", &ask]).code(0);
    world.idle(&id);
    let json = [&["show", "--json", &id][..], &["list", "--json"], &["logs", "--json", &id]];
    for args in [&["logs", &id][..], &["show", &id], &["list"], &["close", &id]].iter().chain(&json)
    {
        let ran = world.run(args).code(0);
        shown.extend([ran.out, ran.err]);
    }
    let mut terminal = Terminal::run(&world, &["export", &id]);
    terminal.end(0);
    shown.push_str(&String::from_utf8(terminal.bytes()).unwrap().replace("\r\n", "\n"));
    let logged = world.run(&["logs", "--json", &id]).code(0).events();
    assert!(format!("{logged:?}").contains(&format!("{:?}", escapes.concat())), "{logged:?}");
    let ran = world.play(
        &["--policy", "all"],
        &format!("shell: cat said\nsay {}\nsay next line", escapes.concat()),
    );
    shown.extend([ran.out.clone(), ran.err]);
    assert!(shown.contains("\\u{1b}]52;c;aGk="), "{shown}");
    let acts = |character: &char| {
        character.is_control() && *character != '\n' || escapes[12].contains(*character)
    };
    let raw: Vec<_> = shown.chars().filter(acts).collect();
    assert!(raw.is_empty(), "{raw:?} in {shown:?}");
    assert!(ran.out.contains("next line\n"), "{:?}", ran.out);
}

/// A prompt that is refused at once leaves no session behind, and no id is printed.
#[test]
fn m_b1_a_refused_first_prompt_leaves_no_session() {
    let world = World::new();
    std::fs::write(world.work("long"), "x".repeat(1_100_000)).unwrap();
    for command in [&["new", "--name", "one"][..], &["run"]] {
        let mut child = world.command(&[command, &["--model", "rehearsal", "-"]].concat());
        let child = child.stdin(std::fs::File::open(world.work("long")).unwrap()).output().unwrap();
        let (out, err) =
            (String::from_utf8(child.stdout).unwrap(), String::from_utf8(child.stderr).unwrap());
        assert_eq!((child.status.code(), &*out), (Some(2), ""), "{err}");
        assert!(err.contains("hint: write it to a file"), "{err}");
    }
    assert_eq!(world.json(&["list", "--json"])["sessions"].as_array().unwrap().len(), 0);
}

#[test]
fn m_a5_an_empty_ask_id_is_an_error_and_an_empty_reason_is_dropped() {
    let world = World::new();
    for command in ["approve", "deny", "continue"] {
        let err = world.run(&[command, ""]).code(2).err;
        assert!(err.starts_with("error: no ask given\nhint: "), "{err}");
    }
    let id = world.open(&["--asks", "wait"], "shell: touch made");
    let ask = world.ask(&id);
    world.run(&["deny", &ask, "--reason", " "]).code(0);
    world.idle(&id);
    let log = world.run(&["logs", &id]).code(0).out;
    assert!(log.contains("the user denied this") && !log.contains("denied this:"), "{log}");
}

/// Prompts of other clients during `run` do not count for it, and its end does not cut them.
#[test]
fn m_b2_run_follows_only_its_own_prompt() {
    let world = World::new();
    let run = world.runs_until_go();
    world.fifo("went");
    world.run(&["prompt", "mine", "shell: read line < went; touch made"]).code(0);
    std::fs::write(world.work("go"), "on\n").unwrap();
    let (status, _, err) = run.end();
    assert_eq!(status.code(), Some(0), "{err}");
    assert!(err.contains("other clients have sent more prompts"), "{err}");
    std::fs::write(world.work("went"), "on\n").unwrap();
    world.idle("mine");
    assert!(world.work("made").exists());
}

/// The same when `run` learns of its turn's end only after others have used the session.
#[test]
fn m_b2_run_leaves_a_session_open_that_others_have_used_since() {
    let world = World::new();
    let run = world.runs_until_go();
    run.signal("STOP");
    std::fs::write(world.work("go"), "on\n").unwrap();
    world.idle("mine");
    world.run(&["prompt", "mine", "say SECOND"]).code(0);
    world.idle("mine");
    run.signal("CONT");
    let (status, _, err) = run.end();
    assert_eq!(status.code(), Some(0), "{err}");
    assert!(err.contains("other clients have sent more prompts"), "{err}");
    assert_eq!(world.json(&["list", "--json"])["sessions"][0]["live"], true);
}

/// The same when the output of `run` has lost its reader.
#[test]
fn m_b2_run_without_a_reader_ends_its_own_turn_and_not_that_of_others() {
    let world = World::new();
    let run = world.runs_until_go();
    run.signal("STOP");
    std::fs::write(world.work("go"), "on\n").unwrap();
    world.idle("mine");
    world.run(&["prompt", "mine", "hang"]).code(0);
    let mut child = run.stop_reading();
    kill_process(Pid::from_child(&child), Signal::CONT).unwrap();
    assert_eq!(wait(&mut child).code(), Some(141));
    assert_eq!(world.json(&["show", "mine", "--json"])["status"], "running");
    world.run(&["interrupt", "mine"]).code(0);
}

/// A turn that was cut before its first output is over: the next prompt is played, not the old one.
#[test]
fn m_c4_a_prompt_after_a_cut_silent_turn_plays_its_own_script() {
    let world = World::new();
    world.open(&["--name", "one"], "hang");
    world.run(&["interrupt", "one"]).code(0);
    world.run(&["prompt", "one", "say SECOND"]).code(0);
    world.idle("one");
    let log = world.run(&["logs", "one"]).code(0).out;
    assert!(log.contains("SECOND"), "{log}");
    let end = world.run(&["logs", "one", "--limit", "1"]).code(0);
    let last = end.out.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("done: about ") && !last.contains("steps"),
        "its beginning is not shown: {end:#?}"
    );
    assert!(world.run(&["release", "one"]).code(0).out.contains("one: is not held"));
}

#[test]
fn a_run_whose_session_is_closed_exits_as_interrupted() {
    let world = World::new();
    let mut run = world.start(&["--asks", "wait", "--name", "mine"], "shell: touch made");
    run.wait_for("the ask", |event| {
        matches!(event.fact(), Some(Fact::Ask(AskFact::Raised { .. })))
    });
    world.run(&["close", "mine"]).code(0);
    let (status, _, err) = run.end();
    assert_eq!(status.code(), Some(130), "{err}");
}

/// Every turn is cut before the command waits for the first one to end.
#[test]
fn m_c1_interrupt_all_cuts_every_turn_before_waiting() {
    let world = World::new();
    let stubborn = "shell: trap '' TERM; echo up; while true; do sleep 0.01; done";
    for name in ["one", "two"] {
        world.open(&["--name", name, "--policy", "all"], stubborn);
        while !world.run(&["logs", name]).out.contains("│ up") {}
    }
    let output = world.run(&["interrupt", "--all"]).code(0).out;
    assert_eq!(output.matches("Agent interrupted: 1 tool stopped").count(), 2, "{output}");
    let at = |name: &str, wanted: fn(&Fact) -> bool| {
        let events = world.run(&["logs", "--json", name]).code(0).events();
        events.iter().find(|event| event.fact().is_some_and(wanted)).unwrap().at
    };
    let cut = ["one", "two"]
        .map(|name| at(name, |fact| matches!(fact, Fact::Turn(TurnFact::Cut { .. }))));
    let finished = ["one", "two"]
        .map(|name| at(name, |fact| matches!(fact, Fact::Turn(TurnFact::Finished { .. }))));
    assert!(cut.iter().max() < finished.iter().min(), "{cut:?} {finished:?}");
}

#[test]
fn n6_followers_do_not_restart_a_stopped_daemon() {
    let world = World::new();
    let id = world.open(&["--asks", "wait"], "shell: touch made");
    world.ask(&id);
    for follow in ["logs -f", "attach"] {
        let args: Vec<_> = follow.split(' ').chain(["--json", &*id]).collect();
        let mut follows = world.command(&args).spawn().unwrap();
        let mut lines =
            std::io::BufRead::lines(std::io::BufReader::new(follows.stdout.take().unwrap()));
        assert!(lines.any(|line| line.unwrap().contains("askRaised")));
        world.run(&["daemon", "stop"]).code(0);
        assert_eq!(follows.wait().unwrap().code(), Some(1), "{follow}");
        let mut stderr = String::new();
        follows.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert!(
            stderr.contains(&format!("the daemon was stopped\nhint: `holdpoint {follow} ")),
            "{stderr}"
        );
        world.run(&["status"]).code(3);
        // The ask is still open.
        world.ask(&id);
    }
}

#[test]
fn n6_run_reports_that_the_daemon_was_stopped() {
    let world = World::new();
    let mut run = world.start(&["--asks", "wait", "--name", "mine"], "shell: touch made");
    run.wait_for("the ask", |event| {
        matches!(event.fact(), Some(Fact::Ask(AskFact::Raised { .. })))
    });
    world.run(&["daemon", "stop"]).code(0);
    let (status, _, err) = run.end();
    assert_eq!(status.code(), Some(1), "{err}");
    assert!(err.contains("the daemon was stopped\nhint: `holdpoint attach "), "{err}");
    world.run(&["status"]).code(3);
}

/// Stopping a daemon cuts turns, and attached clients see it.
#[test]
fn m_c6_attached_clients_see_how_a_stopping_daemon_ends_the_turn() {
    let world = World::new();
    let stubborn = "shell: trap '' TERM; echo up; while :; do sleep 1; done";
    let mut run = world.start(&["--policy", "all", "--name", "mine"], stubborn);
    run.wait_output("up");
    let mut shows = world.command(&["attach", "--plain", "mine"]).spawn().unwrap();
    let mut shown = BufReader::new(shows.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(shown.any(|line| line.contains("up")));
    world.run(&["daemon", "stop"]).code(0);
    let (status, seen, err) = run.end();
    let Fact::Turn(TurnFact::Finished { outcome, cause, receipt: Some(receipt), .. }) =
        finished(&seen)
    else {
        unreachable!()
    };
    assert_eq!((*outcome, cause), (Outcome::Interrupted, &Some(CutCause::Shutdown)));
    assert!(receipt.processes.killed > 0, "{receipt:?}");
    assert_eq!(status.code(), Some(1), "{err}");
    assert!(err.contains("the daemon was stopped\nhint: `holdpoint attach "), "{err}");
    assert_eq!(shows.wait().unwrap().code(), Some(1));
    assert!(shown.any(|line| line.contains("Agent interrupted")));
    world.run(&["status"]).code(3);
}

/// A session of 21 turns with far more text than a pipe holds.
fn with_long_past() -> (World, String) {
    let world = World::new();
    let id = world.open(&["--name", "one"], "say Begin.");
    let words = "word ".repeat(10_000);
    for _ in 0..20 {
        world.idle("one");
        world.run(&["prompt", "one", &format!("say {words}")]).code(0);
    }
    world.idle("one");
    (world, id)
}

/// `logs` shows the whole past, even if the daemon dies in the middle.
#[test]
fn m_b6_logs_shows_the_whole_past_after_its_stream_breaks() {
    let (world, id) = with_long_past();
    let mut logs = world.command(&["logs", "--json", &id]).spawn().unwrap();
    let mut out = logs.stdout.take().unwrap();
    wait_full(&out);
    kill_process(world.daemon().unwrap(), Signal::KILL).unwrap();
    let mut output = String::new();
    out.read_to_string(&mut output).unwrap();
    assert!(logs.wait().unwrap().success());
    assert_eq!(output.matches("\"turnFinished\"").count(), 21);
}

/// The slow reader misses the notice of the stop: its stream breaks off, and no daemon is running.
#[test]
fn m_b8_a_slow_follower_does_not_restart_a_stopped_daemon() {
    let (world, id) = with_long_past();
    let mut logs = world.follower(&["logs", "-f", "--json", &id]);
    let out = logs.0.stdout.take().unwrap();
    wait_full(&out);
    world.run(&["daemon", "stop"]).code(0);
    let reads = std::thread::spawn(move || std::io::read_to_string(out).unwrap());
    assert_eq!(wait(&mut logs.0).code(), Some(1));
    assert!(reads.join().unwrap().matches("\"turnFinished\"").count() < 21, "nothing broke off");
    let mut stderr = String::new();
    logs.0.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert!(
        stderr.ends_with(&format!(
            "error: the daemon was stopped\nhint: `holdpoint logs -f {id}` starts it again and continues\n"
        )),
        "{stderr}"
    );
    assert_eq!(world.daemon(), None);
}

#[test]
fn nothing_is_opened_for_an_empty_prompt() {
    let world = World::new();
    for args in [&["run", " "][..], &["run"], &["new", ""], &["new", "-"]] {
        world.run(args).code(2);
    }
    assert!(world.run(&["list"]).code(0).out.starts_with("No sessions."));
}

#[test]
fn a_name_with_a_command_substitution_is_not_completed() {
    let world = World::new();
    let id = world.open(&["--name", "x $(touch made)"], "say Hi.");
    let mut command = world.command(&["--", "holdpoint", "show", ""]);
    command.env("COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "2");
    let offered = Ran::of(command).code(0).out;
    assert!(offered.contains(&id) && !offered.contains('$'), "{offered}");
}

/// The log shows each of the user's prompts before its answer, and the whole log was requested.
#[test]
fn m_b4_logs_show_each_prompt_before_its_answer() {
    let world = World::new();
    let id = world.open(&[], "say Hello.");
    world.idle(&id);
    world.run(&["prompt", &id, "say Bye."]).code(0);
    world.idle(&id);
    let logs = world.run(&["logs", &id]).code(0);
    let at = |words: &str| logs.out.find(words).unwrap_or_else(|| panic!("{words}: {logs:#?}"));
    assert!(
        at("> (from the command line) say Hello.") < at("\nHello.")
            && at("\nHello.") < at("> (from the command line) say Bye.")
            && at("> (from the command line) say Bye.") < at("\nBye.")
    );
    assert_eq!(
        (logs.out.matches("done: 1 step,").count(), logs.err.as_str()),
        (2, ""),
        "all of it is what was asked for"
    );
}

/// As in `run`, where thoughts are not part of the model's words.
#[test]
fn m_b4_a_thought_and_words_have_lines_of_their_own_in_logs() {
    let world = World::new();
    let id = world.open(&[], "think Hm.\nsay Yes.\nthink So.\nsay No.");
    world.idle(&id);
    let logs = world.run(&["logs", &id]).code(0).out;
    assert!(logs.contains("\nHm.\nYes.\nSo.\nNo.\n"), "{logs}");
}

#[test]
fn m_b4_a_reopened_session_is_shown_and_followed() {
    let world = World::new();
    let id = world.open(&[], "say First.");
    world.idle(&id);
    world.run(&["close", &id]).code(0);
    world.run(&["prompt", &id, "say Second."]).code(0);
    world.idle(&id);
    let logs = world.run(&["logs", &id]).code(0).out;
    assert!(logs.contains("\nFirst.\n") && logs.contains("\nSecond.\n"), "{logs}");
    let mut follows = world.follower(&["logs", "-f", &id]);
    let mut lines =
        std::io::BufRead::lines(std::io::BufReader::new(follows.0.stdout.take().unwrap()));
    assert!(lines.any(|line| line.unwrap() == "Second."));
    world.run(&["prompt", &id, "say Third."]).code(0);
    assert!(lines.any(|line| line.unwrap() == "Third."));
}

/// Commands that do not need a live session leave a saved one saved, even when there is no room for
/// it.
#[test]
fn m_b9_saved_sessions_are_read_renamed_closed_and_awaited_without_opening() {
    let world = World::new();
    world.config("[limits]\nmax_sessions = 1\n");
    let id = world.open(&["--name", "old"], "say Hello.\nshell: touch made");
    let ask = world.ask("old");
    world.run(&["deny", &ask]).code(0);
    world.idle("old");
    world.run(&["close", "old"]).code(0);
    let other = world.open(&["--name", "busy"], "shell: touch made");
    world.ask(&other);
    assert!(
        world
            .run(&["attach", "--plain", "old"])
            .code(1)
            .err
            .contains("too many live sessions: the limit is 1,")
    );
    let logs = world.run(&["logs", "old"]).code(0);
    assert!(logs.out.contains("Hello.") && logs.out.contains("done: "), "{logs:#?}");
    let lines = |args: &[&str]| world.run(&[&["logs", "old", "--json"], args].concat()).code(0).out;
    let all = lines(&[]);
    assert!(
        all.lines().next().unwrap().contains("sessionOpened") && all.contains("sessionClosed"),
        "{all}"
    );
    let newest = lines(&["--limit", "2"]);
    assert!(all.ends_with(&newest) && newest.lines().count() == 2, "{newest}");
    let third: Value = serde_json::from_str(all.lines().nth(2).unwrap()).unwrap();
    assert_eq!(
        lines(&["--after", &third["seq"].to_string()]).lines().count(),
        all.lines().count() - 3
    );
    assert!(world.run(&["wait", "old"]).code(0).out.contains("old: idle"));
    let renamed = world.json(&["rename", "old", "older", "--json"]);
    assert_eq!(renamed, serde_json::json!({ "session": id, "name": "older", "saved": true }));
    assert!(world.run(&["close", "older"]).code(0).out.contains("already closed"));
    let list = world.json(&["list", "--json"]);
    assert_eq!(
        (list["sessions"][1]["name"].as_str(), list["sessions"][1]["live"].as_bool()),
        (Some("older"), Some(false))
    );
}

#[test]
fn m_b9_rm_refuses_live_asking_and_ambiguous_sessions() {
    let world = World::new();
    let asks = world.open(&["--name", "same"], "shell: touch made");
    let ask = world.ask(&asks);
    world.run(&["rm", "same"]).code(1);
    world.run(&["daemon", "stop"]).code(0);
    // The session still waits for an answer.
    let kept = world.run(&["rm", "same"]).code(1).err;
    assert!(kept.contains(&ask) && kept.contains("hint: answer the ask"), "{kept}");
    let old = world.run(&["rm", "--older-than", "0s"]).code(0);
    assert!(old.err.contains(&format!("{asks}: kept")) && old.out.is_empty(), "{old:#?}");
    let other = world.open(&["--name", "same"], "say Hi.");
    world.idle(&other);
    assert_eq!(
        world.json(&["close", &other, "--json"]),
        serde_json::json!({ "session": other, "result": "closed" })
    );
    let doubt = world.run(&["rm", "same", "--force"]).code(1).err;
    assert!(
        doubt.contains(&asks) && doubt.contains(&other) && doubt.contains("hint: give its id"),
        "{doubt}"
    );
    let gone = world.json(&["rm", &asks, "--force", "--json"]);
    assert_eq!(gone, serde_json::json!({ "session": asks, "result": "deleted" }));
    world.run(&["rm", "same"]).code(0);
    assert!(world.run(&["list"]).code(0).out.starts_with("No sessions."));
}

#[test]
fn m_b7_wait_continues_when_the_daemon_dies_or_is_restarted() {
    for restart in [false, true] {
        let world = World::new();
        let id = world.open(&["--policy", "all", "--name", "one"], "shell: touch up; sleep 1000");
        // A prompt without an answer yet would be sent along with the next one.
        while !world.work("up").exists() {
            std::thread::yield_now();
        }
        let mut waits =
            world.follower(&["wait", "one", "--for", "ask", "--json", "--timeout", &timeout()]);
        world.wait_watched(&waits);
        if restart {
            world.run(&["daemon", "restart"]).code(0);
        } else {
            kill_process(world.daemon().unwrap(), Signal::KILL).unwrap();
        }
        world.run(&["prompt", "one", r#"call ask_user {"question":"Which?"}"#]).code(0);
        let ask = world.ask("one");
        let mut output = String::new();
        waits.0.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        assert!(waits.0.wait().unwrap().success(), "{output}");
        let seen: Value = serde_json::from_str(&output).unwrap();
        let expected =
            serde_json::json!({ "session": id, "status": "paused", "ask": ask, "timedOut": false });
        assert_eq!(seen, expected);
    }
}

#[test]
fn n6_wait_does_not_restart_a_stopped_daemon() {
    let world = World::new();
    world.open(&["--name", "one"], "shell: touch made");
    world.ask("one");
    let mut waits = world.follower(&["wait", "one", "--for", "idle", "--timeout", &timeout()]);
    world.wait_watched(&waits);
    world.run(&["daemon", "stop"]).code(0);
    assert_eq!(waits.0.wait().unwrap().code(), Some(1));
    let mut stderr = String::new();
    waits.0.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert!(stderr.contains("the daemon was stopped") && stderr.contains("hint: "), "{stderr}");
    world.run(&["status"]).code(3);
    let timed_out =
        world.json_of(124, &["wait", "one", "--for", "idle", "--timeout", "10ms", "--json"]);
    assert_eq!(timed_out["timedOut"], true);
}

/// The socket shows whether a lost daemon was stopped or died.
#[test]
fn n6_wait_restarts_a_dead_daemon_but_not_a_stopped_one() {
    for stopped in [false, true] {
        let world = World::new();
        world.open(&["--name", "one"], "shell: touch made");
        world.ask("one");
        let mut waits = world.follower(&["wait", "one", "--for", "idle", "--timeout", &timeout()]);
        world.wait_watched(&waits);
        let pid = Pid::from_child(&waits.0);
        kill_process(pid, Signal::STOP).unwrap();
        kill_process(world.daemon().unwrap(), Signal::KILL).unwrap();
        while world.daemon().is_some() {
            std::thread::yield_now();
        }
        if stopped {
            for folder in ["run/holdpoint", "data/holdpoint/run"] {
                std::fs::remove_file(world.path(folder).join("holdpoint.sock")).unwrap();
            }
        }
        kill_process(pid, Signal::CONT).unwrap();
        if stopped {
            assert_eq!(waits.0.wait().unwrap().code(), Some(1));
            world.run(&["status"]).code(3);
        } else {
            while world.daemon().is_none() {
                std::thread::yield_now();
            }
            world.run(&["deny", &world.ask("one")]).code(0);
            assert_eq!(waits.0.wait().unwrap().code(), Some(0));
        }
    }
}

/// The old daemon stops slowly: a tool uses up its grace, which is longer than a client waits for
/// the next daemon.
#[test]
fn m_b8_wait_outlasts_a_daemon_that_stops_slowly() {
    let world = World::new();
    world.config("[limits]\ngrace_ms = 6000\n");
    world.open(
        &["--name", "one", "--policy", "all"],
        "shell: trap '' TERM; touch up; while true; do sleep 1; done",
    );
    while !world.work("up").exists() {
        std::thread::yield_now();
    }
    let mut waits = world.follower(&["wait", "one", "--for", "idle", "--timeout", &timeout()]);
    world.wait_watched(&waits);
    world.run(&["daemon", "restart"]).code(0);
    assert_eq!(waits.0.wait().unwrap().code(), Some(0));
}

#[test]
fn m_c5_an_interrupt_of_an_idle_session_names_queued_work() {
    let world = World::new();
    world.run(&["new", "--name", "one"]).code(0);
    world.run(&["hold", "one"]).code(0);
    assert!(world.run(&["interrupt", "one"]).code(0).out.contains("one: nothing was running\n"));
    for _ in 0..2 {
        world.run(&["prompt", "one", "say Hi."]).code(0);
    }
    let output = world.run(&["interrupt", "one"]).code(0).out;
    assert!(output.contains("nothing was running; the 2 queued prompts are kept"), "{output}");
    world.run(&["release", "one"]).code(0);
    world.idle("one");
    assert_eq!(world.run(&["logs", "one"]).code(0).out.matches("\nHi.").count(), 2);
}

#[test]
fn m_c5_an_interrupt_of_an_idle_session_names_its_jobs() {
    let world = World::new();
    let job = r#"call shell {"command": "exec sleep 1000", "background": true}"#;
    let id = world.open(&["--policy", "all"], job);
    world.idle(&id);
    let output = world.run(&["interrupt", &id]).code(0).out;
    assert!(
        output.contains("nothing was running; 1 background job keeps running until it ends, the agent stops it or the"),
        "{output}"
    );
    world.run(&["prompt", &id, job]).code(0);
    world.idle(&id);
    let output = world.run(&["interrupt", &id]).code(0).out;
    assert!(
        output.contains("; 2 background jobs keep running until they end, the agent stops them or the session is"),
        "{output}"
    );
    let sleeps =
        || world.census.living().iter().filter(|(_, what)| what.contains("sleep 1000")).count();
    assert!(sleeps() >= 2);
    world.run(&["close", &id]).code(0);
    assert_eq!(sleeps(), 0);
}

#[test]
fn m_a5_answering_an_ask_that_is_not_open_is_an_error() {
    let world = World::new();
    let question = r#"call ask_user {"question":"Which?"}"#;
    let id = world.open(&["--policy", "all"], question);
    let ask = world.ask(&id);
    world.run(&["answer", &ask, "this"]).code(0);
    world.idle(&id);
    assert!(
        world
            .run(&["answer", &ask, "that"])
            .code(1)
            .err
            .contains("already answered from the command line (pid ")
    );
    for args in [&["approve"][..], &["deny"], &["continue"], &["answer"]] {
        let never = format!("{id}.99999");
        let words = if args == ["answer"] { &["x"][..] } else { &[] };
        let error = world.run(&[args, &[&never], words].concat()).code(1).err;
        assert!(error.contains("hint: `holdpoint inbox`"), "{error}");
    }
}

#[test]
fn an_import_says_when_its_folder_is_missing() {
    let (here, there) = (World::new(), World::new());
    let id = here.open(&["--name", "one"], "say Hello.");
    here.idle("one");
    let file = there.work("one.jsonl");
    here.run(&["export", "one", "-o", file.to_str().unwrap()]).code(0);
    let ran = there.run(&["import", "one.jsonl"]).code(0);
    assert!(ran.out.trim() == id && ran.err.is_empty(), "{ran:#?}");
    there.run(&["rm", &id]).code(0);
    drop(here);
    let ran = there.run(&["import", "one.jsonl", "--json"]).code(0);
    assert!(
        ran.out.contains("\"workspaceMissing\":true") && ran.err.contains("does not exist"),
        "{ran:#?}"
    );
}

/// The error names only the file's line.
#[test]
fn a_failed_import_names_the_line() {
    let world = World::new();
    for (text, expected) in [
        ("{\"format\": 1}\n", "line 1: invalid type: integer `1`, expected a string\n"),
        ("nonsense\n", "line 1: expected ident\n"),
    ] {
        std::fs::write(world.work("one.jsonl"), text).unwrap();
        let refused = world.run(&["import", "one.jsonl"]).code(1).err;
        assert!(refused.starts_with(&format!("error: one.jsonl: {expected}")), "{refused}");
        assert!(!refused.contains("column"), "{refused}");
    }
}

#[test]
fn m_a6_the_asks_mode_of_an_open_session_is_changed() {
    let world = World::new();
    let id = world.open(&["--name", "one"], "shell: touch made");
    world.ask(&id);
    let changed = world.json(&["asks", "one", "deny", "--json"]);
    assert_eq!(changed, json!({ "session": id, "asks": "deny", "saved": true }));
    world.idle("one");
    assert!(!world.work("made").exists());
    assert_eq!(world.json(&["show", "one", "--json"])["settings"]["asks"], "deny");
    assert!(
        world.run(&["logs", "one"]).code(0).out.contains("asks deny: confirmations are denied")
    );
    let back = world.run(&["asks", &id[..4], "wait"]).code(0).out;
    assert_eq!(back, "asks wait: a person answers\n");
    world.run(&["prompt", "one", "shell: touch made"]).code(0);
    let ask = world.ask(&id);
    world.run(&["approve", &ask]).code(0);
    world.idle("one");
    assert!(world.work("made").exists());
}

#[test]
fn m_a6_the_inbox_counts_the_hidden_lines_of_a_command() {
    let world = World::new();
    let id =
        world.open(&["--name", "one"], r#"call shell {"command": "echo a\nrm -rf important"}"#);
    let ask = world.ask(&id);
    let inbox = world.run(&["inbox"]).code(0).out;
    assert!(inbox.contains("echo a (1 more line)\n"), "{inbox}");
    let mut terminal = Tty::run(&world, &["inbox"]);
    terminal.wait_for("(1 more line)");
    terminal.end(0);

    // On a terminal, the command is shown before it is approved.
    let mut terminal = Tty::run(&world, &["approve", &ask]);
    terminal.wait_for("│ rm -rf important");
    terminal.wait_for("approve? [y/N]");
    terminal.press("n\r");
    terminal.end(1);
    // Bytes that are not UTF-8 confirm nothing.
    let mut terminal = Tty::run(&world, &["approve", "one"]);
    terminal.wait_for("approve? [y/N]");
    terminal.press(b"y\xff\r");
    terminal.wait_for("not answered");
    terminal.end(1);
    // Without a place to show it, the command is not approved.
    let mut terminal = Tty::shell(&world);
    for command in ["one", &ask] {
        terminal.press(format!("$P approve {command} 2>problem; echo code $?; cat problem\r"));
        terminal.wait_for("code 2\nerror: the ask can't be shown first");
        terminal.press("clear\r");
        terminal.wait_until("an empty screen", |text| !text.contains("error: "));
    }
    terminal.press("exit\r");
    terminal.end(0);
    assert_eq!(world.ask(&id), ask);
    let mut terminal = Tty::run(&world, &["approve", "--yes", &ask]);
    terminal.wait_for("answered");
    terminal.end(0);
}

#[test]
fn m_e6_a_script_with_a_mistake_is_an_error_before_anything_is_opened() {
    let world = World::new();
    let id = world.open(&["--name", "one"], "say a");
    world.idle(&id);
    world.run(&["close", "one"]).code(0);
    let goal = "```rehearsal\nsay a\nsya b\n```";
    for command in [
        &["run", "say a\nsya b"][..],
        &["run", "--in-process", "say a\nsya b"],
        &["new", "say a\nsya b"],
        &["loop", "--goal", goal],
        &["loop", "--detach", "--goal", goal],
        &["prompt", "one", "say a\nsya b"],
    ] {
        let ran = world.run(command).code(2);
        assert!(
            ran.err
                .contains("error: the script can't be played: line 2: `sya` is not an instruction"),
            "{ran:#?}"
        );
        assert!(ran.err.contains("hint: see docs/rehearsal.md"), "{ran:#?}");
    }
    let bogus = world.run(&["loop", "--goal", "```rehearsal\nbogus\n```"]).code(2);
    assert!(bogus.err.contains("line 1: `bogus` is not an instruction"), "{bogus:#?}");
    let sessions = world.json(&["list", "--json"])["sessions"].as_array().unwrap().clone();
    assert!(sessions.len() == 1 && sessions[0]["live"] == false, "{sessions:?}");
}
