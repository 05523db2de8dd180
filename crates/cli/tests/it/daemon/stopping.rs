//! Events that end a daemon, and events that do not.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use holdpoint_common::{CutCause, Delta, Event, Fact, Outcome, TurnFact};
use holdpoint_session::AttachFrom;
use holdpoint_session::store::Sqlite;
use holdpoint_tests::model_server::{ModelServer, Reply};
use rustix::process::{Pid, Signal, kill_process};

use super::client::{Api, Stream};
use super::harness::{DaemonWorld, ask, until};
use crate::world::{is_root, patience, rounds, wait};

#[test]
fn t_n6_it_stops_with_clients_that_are_stuck() {
    let house = DaemonWorld::new();
    let pid = house.start();
    // One sends nothing, one sends half a request, and one does not read its answers.
    let silent = UnixStream::connect(house.socket()).unwrap();
    let mut half = UnixStream::connect(house.socket()).unwrap();
    half.write_all(b"POST /v1/sessions HTTP/1.1\r\ncontent-length: 100\r\n\r\n{").unwrap();
    let mut deaf = UnixStream::connect(house.socket()).unwrap();
    deaf.set_nonblocking(true).unwrap();
    while deaf.write_all(&b"GET /v1/status HTTP/1.1\r\nhost: x\r\n\r\n".repeat(100)).is_ok() {}
    assert!(house.run(&["daemon", "stop"]).code(0).out.contains(&format!("pid {pid}")));
    assert_eq!(house.holder(), None);
    assert!(!house.socket().exists());
    drop((silent, half, deaf));
}

/// A copy of the one file, made after the daemon has ended, is complete.
#[test]
fn m_e2_a_stopped_daemon_leaves_only_the_database_file() {
    let house = DaemonWorld::new();
    for _ in 0..rounds(10, 100) {
        house.start();
        let api = Api::new(&house);
        let session = api.open("all");
        api.prompt(&session, "say Hello.");
        api.settled(&session);
        house.run(&["daemon", "stop"]).code(0);
        let there: Vec<_> =
            Sqlite::files(&house.data()).into_iter().map(|file| file.exists()).collect();
        assert_eq!(
            there,
            [true, false, false, false],
            "the database, and nothing beside it: {}",
            house.log()
        );
    }
}

/// A command that survives every signal but KILL.
const STUBBORN: &str =
    "shell: trap '' TERM INT HUP; setsid sleep 1000 & echo up; while true; do wait; done";

#[tokio::test]
async fn t_n6_it_stops_with_a_tool_that_is_stuck_and_the_next_one_waits() {
    let house = DaemonWorld::new();
    house.0.config("[limits]\ngrace_ms = 1500\n");
    let first = house.start();
    let session = house.sessions().open(house.session()).await.unwrap();
    let mut events = session.attach(AttachFrom::start()).await.unwrap();
    session.prompt(STUBBORN).await.unwrap();
    let up = |event: &Event| matches!(event.delta(), Some(Delta::Output { text, .. }) if text.contains("up"));
    until(&mut events, up).await;
    house.signal(Signal::TERM);
    let by = Instant::now() + patience();
    while house.socket().exists() {
        assert!(Instant::now() < by, "the daemon does not begin to stop");
        std::thread::yield_now();
    }
    // The tool of the first daemon still has a second and a half.
    assert_ne!(house.start(), first);
    assert_eq!(
        house.0.census.living(),
        [],
        "no process of the first daemon is left when the next one serves"
    );
    let listed = house.sessions().list().await.unwrap();
    assert_eq!((listed.len(), listed[0].live), (1, false));
}

/// Two stop requests mean one stop, because two clients may send them. A second Ctrl+C leaves at
/// once.
#[test]
fn m_b8_a_second_term_is_tidy_and_a_second_int_leaves_at_once() {
    for (again, words) in [(Signal::TERM, "asked to stop again"), (Signal::INT, "exiting at once")]
    {
        let house = DaemonWorld::new();
        house.0.config("[limits]\ngrace_ms = 1500\n");
        house.start();
        let api = Api::new(&house);
        let session = api.open("all");
        let mut events = api.attach(&session, "");
        api.prompt(&session, STUBBORN);
        events.until_event(|event| matches!(event.delta(), Some(Delta::Output { .. })));
        house.signal(Signal::TERM);
        events.until_event(|event| matches!(event.fact(), Some(Fact::Turn(TurnFact::Cut { .. }))));
        house.signal(again);
        house.wait_gone();
        assert!(house.log().contains(words), "{}", house.log());
        house.start();
        let last = api.look(&session).last_turn.unwrap();
        let tidily = again == Signal::TERM;
        assert_eq!(last.cause, Some(CutCause::Shutdown), "{last:?}");
        let output = house.run(&["logs", &session]).code(0).out;
        assert_eq!(output.contains("1 tool stopped"), tidily, "{output}");
    }
}

#[tokio::test]
async fn t_n6_it_stops_with_a_provider_that_is_stuck() {
    let house = DaemonWorld::new();
    let server = ModelServer::start();
    server.reply(Reply::silence());
    house.0.config(&format!(
        "[providers.openai]\nbase_url = '{}'\napi_key = 'sk-x'\n",
        server.base_url()
    ));
    house.start();
    let session = house.sessions().open(house.session().model("openai/scripted")).await.unwrap();
    session.prompt("go").await.unwrap();
    let _asked = server.request(0);
    house.run(&["daemon", "stop"]).code(0);
    assert_eq!(house.holder(), None);
}

/// Even if tools have more time to end than the daemon itself.
#[test]
fn t_n6_it_is_gone_within_ten_seconds_whatever_its_sessions_do() {
    let house = DaemonWorld::new();
    house.0.config("[limits]\ngrace_ms = 60000\n");
    house.start();
    let api = Api::new(&house);
    let busy = [STUBBORN, "hang", "shell: while true; do seq 1000; done"].map(|script| {
        let session = api.open("all");
        let mut events = api.attach(&session, "");
        api.prompt(&session, script);
        // The stream of the flooding session is not read any further.
        events.until_event(|event| match script {
            "hang" => matches!(event.fact(), Some(Fact::Turn(TurnFact::StepStarted))),
            _ => matches!(event.delta(), Some(Delta::Output { .. })),
        });
        events
    });
    let asking = api.open("ask");
    api.prompt(&asking, "shell: touch made");
    let ask = api.asks(&asking, 1);
    // This fails when the daemon has not ended a few seconds after its limit.
    house.run(&["daemon", "stop"]).code(0);
    assert_eq!(house.holder(), None);
    assert!(!house.socket().exists());
    assert!(house.log().contains("a task did not end in time"), "{}", house.log());
    drop(busy);
    // Processes that still have their minute of grace.
    for (pid, _) in house.0.census.living() {
        // The process may have ended meanwhile.
        let _ = kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL);
    }
    house.start();
    api.post(&format!("sessions/{asking}/open"), &api.supplies()).ok();
    assert_eq!(api.asks(&asking, 1), ask);
}

/// A session that works until the file `go` exists, and its events.
fn working(house: &DaemonWorld) -> (String, Stream) {
    let api = Api::new(house);
    let session = api.open("all");
    let mut events = api.attach(&session, "");
    api.prompt(&session, "shell: echo up; until test -e go; do sleep 0.01; done\nsay It went on.");
    events.until_event(|event| matches!(event.delta(), Some(Delta::Output { .. })));
    (session, events)
}

/// A cleaner of temporary files may remove the socket while the daemon works.
#[test]
fn t_n7_a_removed_socket_is_made_again_and_sessions_continue() {
    let house = DaemonWorld::new();
    let pid = house.start();
    let (_, mut events) = working(&house);
    for _ in 0..2 {
        std::fs::remove_file(house.socket()).unwrap();
        wait_found(&house);
        let mode = std::fs::metadata(house.socket()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(house.run(&["status"]).code(0).out.contains(house.socket().to_str().unwrap()));
        assert!(house.run(&["list"]).code(0).out.contains("running"));
    }
    assert_eq!(house.pid(), pid);
    // A stream over the removed socket continues, too.
    std::fs::write(house.0.work("go"), "").unwrap();
    events.until_event(|event| matches!(event.fact(), Some(Fact::Turn(TurnFact::Finished { .. }))));
    assert!(house.last_words().contains("is created again"));
    assert!(!house.socket().exists());
}

/// A session with an open ask.
fn asking(house: &DaemonWorld) -> (Api, String, Vec<String>) {
    let api = Api::new(house);
    let session = api.open("ask");
    api.prompt(&session, "shell: echo hi");
    let asks = api.asks(&session, 1);
    (api, session, asks)
}

/// Both sockets: in the runtime folder and with the data.
fn sockets(house: &DaemonWorld) -> [PathBuf; 2] {
    [house.socket(), house.data().join("run/holdpoint.sock")]
}

/// Waits until the daemon can be reached by both sockets.
#[track_caller]
fn wait_found(house: &DaemonWorld) {
    let by = Instant::now() + patience();
    while sockets(house).iter().any(|socket| UnixStream::connect(socket).is_err()) {
        assert!(Instant::now() < by, "the socket was not created again: {}", house.log());
        std::thread::yield_now();
    }
}

#[test]
fn t_n7_a_daemon_whose_folder_is_removed_is_found_again_with_its_asks() {
    let house = DaemonWorld::new();
    let pid = house.start();
    let (api, session, ask) = asking(&house);
    let folders = sockets(&house).map(|socket| socket.parent().unwrap().to_owned());
    let threads = || std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().count();
    let mut most = 0;
    for round in 0..6 {
        folders.iter().for_each(|folder| std::fs::remove_dir_all(folder).unwrap());
        wait_found(&house);
        for folder in &folders {
            assert_eq!(std::fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
        }
        assert!(house.run(&["inbox"]).code(0).out.contains("echo hi"));
        // The threads of a removed socket end when the next one is made.
        match round {
            0..3 => most = most.max(threads()),
            _ => {
                let by = Instant::now() + patience();
                while threads() > most {
                    assert!(Instant::now() < by, "{} threads after {most}", threads());
                    std::thread::yield_now();
                }
            }
        }
    }
    assert_eq!((house.pid(), api.asks(&session, 1)), (pid, ask));
    assert!(
        house.run(&["daemon", "stop"]).code(0).out.contains(&format!("(pid {pid}) has stopped"))
    );
}

/// A foreign file is in the socket's place. Commands name the daemon's process until the file is
/// gone and the daemon serves again.
#[test]
fn t_n7_a_daemon_that_cannot_be_reached_is_named_and_serves_as_soon_as_it_can() {
    let house = DaemonWorld::new();
    let pid = house.start();
    asking(&house);
    for socket in sockets(&house) {
        // Renamed, so that the path exists at every moment.
        let mine = house.0.work("mine");
        std::fs::write(&mine, "mine").unwrap();
        std::fs::rename(&mine, socket).unwrap();
    }
    let commands =
        [&["status"][..], &["status", "--json"], &["daemon", "stop"], &["inbox"], &["new"]];
    std::thread::scope(|scope| {
        // As `daemon start` starts one: the error goes to the command's pipe.
        let detached = scope.spawn(|| house.run(&["daemon", "--detached"]).code(1).out);
        let ran = commands.map(|args| scope.spawn(|| house.run(args).code(1).err));
        for ran in ran.into_iter().chain([detached]) {
            let output = ran.join().unwrap();
            assert!(
                output.contains(&format!("(pid {pid})"))
                    && output.contains(&format!("`kill {pid}`")),
                "{output}"
            );
        }
    });
    for socket in sockets(&house) {
        assert_eq!(std::fs::read_to_string(&socket).unwrap(), "mine");
        std::fs::remove_file(socket).unwrap();
    }
    wait_found(&house);
    assert_eq!(house.pid(), pid);
    assert!(house.run(&["inbox"]).code(0).out.contains("echo hi"));
    // `daemon stop` also works before the sockets are back.
    sockets(&house)
        .iter()
        .for_each(|socket| std::fs::remove_dir_all(socket.parent().unwrap()).unwrap());
    assert!(
        house.run(&["daemon", "stop"]).code(0).out.contains(&format!("(pid {pid}) has stopped"))
    );
    house.run(&["status"]).code(3);
}

/// Users remove such files as leftovers. Only the lock on the folder then keeps a second daemon
/// from the database.
#[test]
fn t_n7_a_daemon_whose_lock_and_sockets_are_removed_stays_the_only_one() {
    let house = DaemonWorld::new();
    let pid = house.start();
    let (api, session, ask) = asking(&house);
    // A stopped process can't make the files again.
    house.signal(Signal::STOP);
    std::fs::remove_file(house.data().join("daemon.lock")).unwrap();
    sockets(&house).iter().for_each(|socket| std::fs::remove_file(socket).unwrap());
    assert!(house.run(&["daemon"]).code(1).err.contains("a daemon is already running"));
    let error = house.run(&["status"]).code(1).err;
    assert!(error.contains("an unreachable process holds the sessions"), "{error}");
    // By its process id: the file that names it is gone.
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::CONT).unwrap();
    wait_found(&house);
    assert_eq!((house.pid(), api.asks(&session, 1)), (pid, ask));
    house.run(&["daemon", "stop"]).code(0);
}

#[test]
fn t_n7_hup_is_ignored_and_sessions_continue() {
    let house = DaemonWorld::new();
    let pid = house.start();
    let (session, _events) = working(&house);
    house.signal(Signal::HUP);
    house.signal(Signal::HUP);
    let by = Instant::now() + patience();
    while !house.log().contains("HUP is ignored") {
        assert!(house.holder().is_some() && Instant::now() < by, "{}", house.log());
        std::thread::yield_now();
    }
    assert_eq!(house.pid(), pid);
    std::fs::write(house.0.work("go"), "").unwrap();
    assert_eq!(Api::new(&house).settled(&session).last_turn.unwrap().outcome, Outcome::Done);
    // The session's work is saved without an orderly stop.
    house.signal(Signal::KILL);
    house.wait_gone();
    assert!(house.run(&["logs", &session]).code(0).out.contains("It went on."));
}

#[test]
fn m_b10_term_and_int_stop_the_daemon_tidily() {
    for signal in [Signal::TERM, Signal::INT] {
        let house = DaemonWorld::new();
        let mut daemon = house.0.command(&["daemon"]).spawn().unwrap();
        let by = Instant::now() + patience();
        while UnixStream::connect(house.socket()).is_err() {
            assert!(Instant::now() < by, "the daemon does not listen");
            std::thread::yield_now();
        }
        // The daemon answers, so it watches for signals.
        house.status();
        house.signal(signal);
        assert_eq!(wait(&mut daemon).code(), Some(0));
        assert!(!house.socket().exists());
        assert!(house.log().lines().last().unwrap().contains("stopped"), "{}", house.log());
    }
}

#[test]
fn an_idle_daemon_stops_only_without_clients() {
    // On a machine that stalls, a client may connect too late: the next daemon waits longer for
    // one.
    let stays = [2, 8, 32].iter().any(|idle| {
        let house = DaemonWorld::new();
        let mut daemon =
            house.0.command(&["daemon", "--idle-stop", &format!("{idle}s")]).spawn().unwrap();
        let mut has_stopped = || {
            let status = daemon.try_wait().unwrap();
            assert!(status.is_none_or(|status| status.success()), "{status:?}: {}", house.log());
            status.is_some()
        };
        let by = Instant::now() + patience();
        let client = loop {
            match UnixStream::connect(house.socket()) {
                Ok(client) => break client,
                Err(_) if has_stopped() => return false,
                Err(error) => assert!(Instant::now() < by, "{error}"),
            }
            std::thread::yield_now();
        };
        std::thread::sleep(Duration::from_millis(idle * 1_000 + 500));
        if has_stopped() {
            return false;
        }
        assert!(ask(client, "/v1/status", "").contains(&format!("\"idleStopS\":{idle}")));
        assert_eq!(wait(&mut daemon).code(), Some(0));
        assert!(house.log().contains("cause=\"idle\""), "{}", house.log());
        true
    });
    assert!(stays, "the daemon stops while a client is connected");
}

#[test]
fn a_daemon_that_a_command_starts_stops_when_idle_too() {
    let house = DaemonWorld::new();
    house.run(&["daemon", "start", "--idle-stop", "1h"]).code(0);
    assert_eq!(house.status()["idleStopS"], 3600);
    let stderr = house.run(&["daemon", "start", "--idle-stop", "500ms"]).code(0).err;
    assert!(stderr.contains("was already running"), "{stderr}");
    house.run(&["daemon", "restart", "--idle-stop", "500ms"]).code(0);
    house.wait_gone();
    assert!(house.log().contains("cause=\"idle\""), "{}", house.log());
}

#[test]
fn a_daemon_whose_folders_are_removed_stops() {
    if !is_root() {
        return;
    }
    let house = DaemonWorld::new();
    let pid = house.start();
    assert_eq!(house.programs(), [pid]);
    for folder in ["run", "data"] {
        std::fs::remove_dir_all(house.0.path(folder)).unwrap();
    }
    let by = Instant::now() + patience();
    while !house.programs().is_empty() {
        assert!(Instant::now() < by, "it is still there");
        std::thread::yield_now();
    }
}
