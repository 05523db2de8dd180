//! A daemon started by a command: it inherits nothing from its starter, and the command reports why
//! it can't start.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use holdpoint_tests::faults::{Fault, Faults};
use holdpoint_tools::testing::rounds;

use super::harness::DaemonWorld;
use crate::world::{Ran, is_root, program, wait};

#[test]
fn t_n7_a_daemon_inherits_nothing_from_its_starter() {
    if !is_root() {
        return;
    }
    let house = DaemonWorld::new();
    let mut shell = Command::new("bash");
    shell.args(["-c", "exec 9> held; exec \"$0\" daemon start"]).arg(program());
    shell
        .current_dir(house.0.path("work"))
        .env_clear()
        .envs(house.0.env())
        .env("OPENAI_API_KEY", "sk-secret");
    Ran::of(shell).code(0);
    let pid = house.pid();
    let about = |what: &str| fs::read_link(format!("/proc/{pid}/{what}")).unwrap();
    assert_eq!(about("cwd").to_str(), Some("/"));
    for stream in ["fd/0", "fd/1", "fd/2"] {
        assert_eq!(about(stream).to_str(), Some("/dev/null"), "{stream}");
    }
    let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    for file in files.filter_map(|file| fs::read_link(file.unwrap().path()).ok()) {
        assert!(
            !file.starts_with(house.0.path("work")),
            "the daemon keeps {} open",
            file.display()
        );
    }
    // The session is field 6 of stat, counted past the name.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let session = stat.rsplit(") ").next().unwrap().split(' ').nth(3).unwrap().to_owned();
    assert_eq!(session, pid.to_string(), "the daemon leads its own session");
    let environ = fs::read_to_string(format!("/proc/{pid}/environ")).unwrap();
    let mut names: Vec<_> =
        environ.split_terminator('\0').map(|one| one.split('=').next().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"]);
}

#[test]
fn t_u17_it_starts_again_after_a_kill_at_any_call_of_its_first_start() {
    let Some(faults) = Faults::build() else {
        println!("skipped: no library can be preloaded here");
        return;
    };
    let mut killed = 0;
    for call in (1..).step_by(rounds(6, 1)) {
        let house = DaemonWorld::new();
        let mut daemon = house.0.command(&["daemon"]);
        faults.inject(&mut daemon, Fault::Kill, call);
        let mut daemon = daemon.spawn().unwrap();
        let mut served = String::new();
        BufReader::new(daemon.stdout.take().unwrap()).read_line(&mut served).unwrap();
        if !served.is_empty() {
            daemon.kill().unwrap();
            daemon.wait().unwrap();
            break;
        }
        assert_eq!(wait(&mut daemon).signal(), Some(9), "call {call}");
        house.run(&["run", "--model", "rehearsal", "say Hello."]).code(0);
        assert_eq!(house.status()["saved"], true, "call {call}");
        killed += 1;
    }
    assert!(killed > 3, "{killed}");
}

#[test]
fn the_command_reports_why_the_daemon_does_not_start() {
    let house = DaemonWorld::new();
    let config = house.0.config("[limits]\nmax_session = 1\n");
    house.refuses(2, &["did you mean `limits.max_sessions`?"]);
    fs::remove_file(config).unwrap();
    house.start();
    house.run(&["daemon", "stop"]).code(0);
    for file in ["sessions.db", "sessions.db-wal", "sessions.db-shm"] {
        let _ = fs::remove_file(house.data().join(file));
    }
    fs::create_dir(house.data().join("sessions.db")).unwrap();
    house.refuses(1, &["can't be opened"]);
    fs::remove_dir(house.data().join("sessions.db")).unwrap();
    house.start();
}

#[test]
fn the_starter_sets_the_daemons_log_levels() {
    for (levels, info) in
        [(None, true), (Some("holdpoint=warn"), false), (Some("holdpoint=info"), true)]
    {
        let house = DaemonWorld::new();
        let mut start = house.0.command(&["daemon", "start"]);
        start.envs(levels.map(|levels| ("HOLDPOINT_LOG", levels)));
        Ran::of(start).code(0);
        let log = house.last_words();
        assert_eq!(log.contains(" INFO holdpoint::daemon: serving"), info, "{levels:?}: {log}");
    }
    let house = DaemonWorld::new();
    house.0.config("log = 'holdpoint=warn'\n");
    house.start();
    assert!(!house.last_words().contains(" INFO "), "else from the configuration");
    house.0.config("log = 'a=b=c'\n");
    house.refuses(2, &["a=b=c"]);
    let mut start = house.0.command(&["daemon", "start"]);
    start.env("HOLDPOINT_LOG", "a=b=c");
    assert!(Ran::of(start).code(2).err.contains("HOLDPOINT_LOG"));
}

#[test]
fn restart_also_starts_a_daemon_when_none_runs() {
    let house = DaemonWorld::new();
    let ran = house.run(&["daemon", "restart"]).code(0);
    assert!(ran.out.starts_with("The daemon is not running."), "{ran:#?}");
    let first = house.pid();
    let ran = house.run(&["daemon", "restart"]).code(0);
    assert!(ran.out.contains(&format!("(pid {first}) has stopped")), "{ran:#?}");
    assert_ne!(house.pid(), first);
}
