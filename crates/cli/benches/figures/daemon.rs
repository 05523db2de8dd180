//! The daemon: how fast a command reaches it, how fast it is there, what it takes when it has nothing to do.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::floors::Floor;
use crate::table::{Amount, Samples, Table};

/// How long an idle daemon is watched.
const IDLE: Duration = Duration::from_secs(10);

/// A state folder with at most one daemon, which ends with it.
pub(crate) struct Place(TempDir);

pub(crate) fn measure(table: &Table) {
    if !table.wants("daemon", &["status of a running daemon", "first command", "idle daemon"]) {
        return;
    }
    let place = Place::new();
    // The store is there from now on.
    place.succeed(&["daemon", "start"]);
    let status = Samples::of(100, || place.timed(&["status"]));
    table.figure_beside(Floor::Spawn, "status of a running daemon, whole process", status.median(), Amount::ms(12));
    table.note("   … p99", status.p99());

    let pid = place.pid();
    let before = busy(pid);
    std::thread::sleep(IDLE);
    // A thousandth of the time.
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

impl Place {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn folder(&self) -> &std::path::Path {
        self.0.path()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.0.path().join("run/holdpoint.sock")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdpoint"));
        command.arg("--state-dir").arg(self.0.path()).args(args).stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    pub(crate) fn succeed(&self, args: &[&str]) {
        let status = self.command(args).stdout(Stdio::null()).status().unwrap();
        assert!(status.success(), "{args:?} ended with {status}");
    }

    fn timed(&self, args: &[&str]) -> Duration {
        let since = Instant::now();
        self.succeed(args);
        since.elapsed()
    }

    pub(crate) fn pid(&self) -> u64 {
        let output = self.command(&["status", "--json"]).output().unwrap();
        let status: Value = serde_json::from_slice(&output.stdout).unwrap();
        status["pid"].as_u64().unwrap()
    }

    /// The most bytes of memory that the daemon had at once.
    pub(crate) fn peak(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // There may be none.
        let _ = self.command(&["daemon", "stop"]).stdout(Stdio::null()).status();
    }
}

/// How long all threads of a process have run on a core.
pub(crate) fn busy(pid: u64) -> Duration {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let ran = |thread: fs::DirEntry| {
        let stat = fs::read_to_string(thread.path().join("schedstat")).unwrap();
        stat.split(' ').next().unwrap().parse().map(Duration::from_nanos).unwrap()
    };
    threads.map(|thread| ran(thread.unwrap())).sum()
}

/// Bytes that a process alone has in memory, and of them those that are as in a file.
fn unshared(pid: u64) -> (u64, u64) {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let amount = |name: &str| {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    };
    let clean = amount("Private_Clean:");
    (clean + amount("Private_Dirty:"), clean)
}
