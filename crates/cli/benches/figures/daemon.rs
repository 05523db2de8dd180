//! The daemon: the time of a command, of a start and of a stop, and the load of an idle one.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::ops::{Add, Sub};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Barrier, mpsc};
use std::time::{Duration, Instant};

use holdpoint_common::limits::{ABANDON_AFTER, SAVE_LATE};
use holdpoint_common::{Delta, Limits, PolicyMode};
use holdpoint_session::AttachFrom;
use holdpoint_tests::model_server::Reply;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::Value;
use tempfile::TempDir;

use crate::api;
use crate::floors::Floor;
use crate::support::{EngineWorld, MODEL, until, wait_all};
use crate::table::{Amount, Samples, Table};
use crate::trees::{IGNORING, tree_pids};

/// How long an idle daemon is watched.
const IDLE: Duration = Duration::from_secs(10);

/// The commands that find no daemon at the same time, and the number of rounds.
const CROWD: usize = 50;
const CROWDS: usize = 5;

/// The time after which a daemon exits even if something is stuck.
const DAEMON_LIMIT: Duration = Duration::from_secs(9);

/// Rounds of starting over the remains of a killed daemon.
const REMAINS: usize = 20;

/// A state folder with at most one daemon, which is stopped when this is dropped.
pub(crate) struct StateDir(TempDir);

pub(crate) fn measure(table: &Table) {
    if table.wants("daemon", &["status of a running daemon", "first command", "idle daemon"]) {
        running(table);
    }
    if table.wants("daemon starts", &["50 first commands at once", "remains of a killed daemon"]) {
        let crowds = Samples::of(CROWDS, crowd);
        table.figure_beside(
            Floor::Spawn,
            "50 first commands at once, slowest (t-N1)",
            crowds.slowest(),
            Amount::ms(3_000),
        );
        let over = over_remains();
        table.figure_beside(
            Floor::Spawn,
            "start over the remains of a killed daemon, slowest (t-N2)",
            over.slowest(),
            Amount::ms(2_000),
        );
    }
    if table.wants(
        "stuck stops",
        &["daemon stop, client, tool and model stuck", "engine stop, tool stuck"],
    ) {
        let stopped = Amount::Time(stuck_daemon());
        table.figure(
            "daemon stop, client, tool and model stuck (t-N6)",
            stopped,
            Amount::ms(10_000),
        );
        table.note_beside(
            Floor::Spawn,
            "   … beyond the daemon's limit of 9 s",
            stopped.beyond(DAEMON_LIMIT),
        );
        let stopped = Amount::Time(stuck_engine());
        table.figure("engine stop, tool stuck (m-B8)", stopped, Amount::ms(10_000));
        let limit = Limits::default().grace() + 2 * ABANDON_AFTER + SAVE_LATE;
        table.note_beside(
            Floor::Hop,
            "   … beyond the engine's limit of 4.5 s",
            stopped.beyond(limit),
        );
    }
}

fn running(table: &Table) {
    let place = StateDir::new();
    // From now on, the store exists.
    place.succeed(&["daemon", "start"]);
    let status = Samples::of(100, || place.timed(&["status"]));
    table.figure_beside(
        Floor::Spawn,
        "status of a running daemon, whole process",
        status.median(),
        Amount::ms(12),
    );
    table.note("   … p99", status.p99());

    let pid = place.pid();
    let before = busy(pid);
    std::thread::sleep(IDLE);
    // The bound is a thousandth of the time.
    table.figure("idle daemon, CPU in 10 s", Amount::Time(busy(pid) - before), Amount::ms(10));
    let memory = unshared(pid);
    table.figure("idle daemon, memory (USS)", Amount::Bytes(memory.0), Amount::mib(20));
    table.note("   … of it, pages of its program's file", Amount::Bytes(memory.1));

    let first = Samples::of(30, || {
        place.succeed(&["daemon", "stop"]);
        place.timed(&["daemon", "start"])
    });
    table.figure_beside(
        Floor::Spawn,
        "first command, daemon started by it, existing store",
        first.median(),
        Amount::ms(60),
    );
    table.note("   … p99", first.p99());
    let stop = Samples::of(30, || {
        place.succeed(&["daemon", "start"]);
        place.timed(&["daemon", "stop"])
    });
    table.note("daemon stop, whole process", stop.median());
}

/// The time of the slowest command.
fn crowd() -> Duration {
    let place = StateDir::new();
    let ready = Barrier::new(CROWD);
    std::thread::scope(|scope| {
        let start = || {
            ready.wait();
            place.timed(&["daemon", "start"])
        };
        let commands: Vec<_> = (0..CROWD).map(|_| scope.spawn(start)).collect();
        commands.into_iter().map(|command| command.join().unwrap()).max().unwrap()
    })
}

/// The daemon was killed, and another program has its process id.
fn over_remains() -> Samples {
    let place = StateDir::new();
    let lock = place.data().join("daemon.lock");
    let this = std::process::id().to_string();
    place.succeed(&["daemon", "start"]);
    Samples::of(REMAINS, || {
        let pid = place.pid();
        let daemon = Pid::from_raw(pid.try_into().unwrap()).unwrap();
        let watched = pidfd_open(daemon, PidfdFlags::empty()).unwrap();
        kill_process(daemon, Signal::KILL).unwrap();
        wait_all(&[watched]);
        fs::write(&lock, fs::read_to_string(&lock).unwrap().replace(&pid.to_string(), &this))
            .unwrap();
        place.timed(&["daemon", "start"])
    })
}

/// Stops a daemon in which a tool ignores TERM with a minute of grace, a model sends nothing, and a
/// client has stopped in the middle of a request.
fn stuck_daemon() -> Duration {
    let place = StateDir::new();
    place.configure("[limits]\ngrace_ms = 60000\n");
    let world = api::DaemonWorld::on(place);
    world.server.reply(Reply::no_headers());
    let tree = world.runtime.block_on(async {
        let waiting = world.open(MODEL, PolicyMode::All).await;
        waiting.prompt("go").await.unwrap();
        let stuck = world.open("rehearsal", PolicyMode::All).await;
        let mut client = stuck.attach(AttachFrom::now()).await.unwrap();
        stuck.prompt(format!("shell: {IGNORING}")).await.unwrap();
        tree_pids(&mut client).await
    });
    drop(world.server.request(0));
    let mut client = UnixStream::connect(world.place.socket()).unwrap();
    client.write_all(b"POST /v1/sessions HTTP/1.1\r\ncontent-length: 100\r\n\r\n{").unwrap();
    let took = world.place.timed(&["daemon", "stop"]);
    // Ends the tool without waiting for the rest of its minute.
    for pid in tree.split(' ') {
        let _ = kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::KILL);
    }
    took
}

/// Stops an engine in which a tool call never returns.
fn stuck_engine() -> Duration {
    let world = EngineWorld::new();
    let (release, released) = mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    world.probe.does(move |context| {
        context.output("begun");
        let _ = released.lock().unwrap().recv();
    });
    world.server.reply(Reply::calls([("probe", "{}")]));
    world.runtime.block_on(async {
        let (session, mut client) = world.watched(MODEL).await;
        session.prompt("go").await.unwrap();
        until(&mut client, |event| {
            matches!(event.delta(), Some(Delta::Output { .. })).then_some(())
        })
        .await;
    });
    let since = Instant::now();
    // Stops the engine.
    drop(world);
    let took = since.elapsed();
    drop(release);
    took
}

impl StateDir {
    pub(crate) fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    /// Makes a state folder inside `folder`.
    pub(crate) fn within(folder: &Path) -> Self {
        Self(TempDir::new_in(folder).unwrap())
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.0.path().join("run/holdpoint.sock")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    /// Writes the configuration file.
    pub(crate) fn configure(&self, text: &str) {
        let folder = self.0.path().join("config");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), text).unwrap();
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdpoint"));
        command
            .arg("--state-dir")
            .arg(self.0.path())
            .args(args)
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    pub(crate) fn succeed(&self, args: &[&str]) {
        let status = self.command(args).stdout(Stdio::null()).status().unwrap();
        assert!(status.success(), "{args:?} ended with {status}");
    }

    pub(crate) fn timed(&self, args: &[&str]) -> Duration {
        let since = Instant::now();
        self.succeed(args);
        since.elapsed()
    }

    pub(crate) fn pid(&self) -> u64 {
        let output = self.command(&["status", "--json"]).output().unwrap();
        let status: Value = serde_json::from_slice(&output.stdout).unwrap();
        status["pid"].as_u64().unwrap()
    }

    /// The peak memory of the daemon in bytes.
    pub(crate) fn peak(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }
}

impl Drop for StateDir {
    fn drop(&mut self) {
        // There may be no daemon.
        let _ = self.command(&["daemon", "stop"]).stdout(Stdio::null()).status();
    }
}

/// The CPU time of each thread of a process, by thread id.
pub(crate) struct ThreadTimes(HashMap<OsString, Duration>);

pub(crate) fn busy(pid: u64) -> ThreadTimes {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let ran = |thread: fs::DirEntry| {
        // A thread that has just ended has no times.
        let stat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let nanos = stat.split(' ').next()?.parse().ok()?;
        Some((thread.file_name(), Duration::from_nanos(nanos)))
    };
    ThreadTimes(threads.filter_map(|thread| ran(thread.unwrap())).collect())
}

/// The CPU time since `before`, without that of threads that have ended since.
impl Sub for ThreadTimes {
    type Output = Duration;

    fn sub(self, before: Self) -> Duration {
        let before = |thread| before.0.get(thread).copied().unwrap_or_default();
        self.0.iter().map(|(thread, time)| time.saturating_sub(before(thread))).sum()
    }
}

impl Add for ThreadTimes {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.into_iter().chain(other.0).collect())
    }
}

/// The private memory of a process in bytes, and the part of it that is unmodified from a file.
pub(crate) fn unshared(pid: u64) -> (u64, u64) {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let amount = |name: &str| {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    };
    let clean = amount("Private_Clean:");
    (clean + amount("Private_Dirty:"), clean)
}
