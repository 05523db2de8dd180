//! A world with a daemon that ends with it, even when a test fails.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use holdpoint_common::{Event, PolicyMode, Supplies, Who};
use holdpoint_session::{Attachment, OpenSession, Sessions};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::world::{Ran, World, patience, program, wait};

pub(crate) struct DaemonWorld(pub World);

impl DaemonWorld {
    pub(crate) fn new() -> Self {
        Self(World::new())
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.0.path("data/holdpoint")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.0.path("run/holdpoint/holdpoint.sock")
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.data().join("logs/daemon.log")).unwrap()
    }

    /// Stops the daemon and returns its whole log, because lines are written with a delay.
    pub(crate) fn last_words(&self) -> String {
        self.run(&["daemon", "stop"]).code(0);
        self.log()
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.0.run(args)
    }

    /// Checks that neither command starts a daemon and that both report `expected`.
    #[track_caller]
    pub(crate) fn refuses(&self, code: i32, expected: &[&str]) {
        for args in [&["daemon"][..], &["daemon", "start"]] {
            let mut child = self.0.command(args).spawn().unwrap();
            let status = wait(&mut child);
            let mut stderr = String::new();
            child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
            assert_eq!(status.code(), Some(code), "{args:?}: {stderr}");
            for words in expected.iter().chain(&["error: ", "hint: "]) {
                assert!(stderr.contains(words), "{args:?}, {words}: {stderr}");
            }
        }
    }

    /// Starts the daemon and returns its process id.
    pub(crate) fn start(&self) -> u32 {
        self.run(&["daemon", "start"]).code(0);
        self.pid()
    }

    /// The daemon's sessions over its socket, for a client with the environment of this world.
    pub(crate) fn sessions(&self) -> Sessions {
        let env = self.0.env().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Sessions::remote(self.socket(), &Who::named("test")).with_supplies(Supplies::env(env))
    }

    /// A new session with a policy that allows everything.
    pub(crate) fn session(&self) -> OpenSession {
        OpenSession::in_folder(self.0.path("work")).policy(PolicyMode::All).model("rehearsal")
    }

    /// The output of `status --json`.
    pub(crate) fn status(&self) -> Value {
        serde_json::from_str(&self.run(&["status", "--json"]).code(0).out).unwrap()
    }

    /// The process id of the daemon that answers.
    pub(crate) fn pid(&self) -> u32 {
        self.status()["pid"].as_u64().unwrap().try_into().unwrap()
    }

    /// The process that holds the daemon's lock, if one does.
    pub(crate) fn holder(&self) -> Option<Pid> {
        self.0.daemon()
    }

    /// The processes of this program that belong to this world, for a test that is root: no other
    /// user can read the environment of a daemon.
    pub(crate) fn programs(&self) -> Vec<u32> {
        let home = format!("HOME={}", self.0.path("home").display());
        let of_ours = |pid: &u32| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let is_program =
                std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program());
            is_program
                && environ.split(|byte| *byte == 0).any(|variable| variable == home.as_bytes())
        };
        let entries = std::fs::read_dir("/proc").unwrap();
        entries
            .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
            .filter(of_ours)
            .collect()
    }

    /// The daemon's resident memory in bytes.
    pub(crate) fn resident(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The daemon's peak memory in bytes while `what` runs, for a test that is root: no other user
    /// can reset it.
    pub(crate) fn peak(&self, what: impl FnOnce()) -> u64 {
        let pid = self.holder().expect("a daemon is running").as_raw_nonzero();
        // Resets the peak.
        std::fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
        what();
        self.memory("VmHWM:")
    }

    fn memory(&self, kind: &str) -> u64 {
        let pid = self.holder().expect("a daemon is running").as_raw_nonzero();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(kind)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// How many connections the daemon has open, and how many sockets it listens on: a connection
    /// has the path of its socket. Another user's process can't list the descriptors of a daemon.
    pub(crate) fn sockets(&self) -> usize {
        let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
        let folder = format!(" {}", self.0.path("").display());
        sockets.lines().filter(|line| line.contains(&folder)).count()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.holder().expect("a daemon is running"), signal).unwrap();
    }

    /// Waits until no process holds the daemon's lock.
    pub(crate) fn wait_gone(&self) {
        let by = Instant::now() + patience();
        while self.holder().is_some() {
            assert!(Instant::now() < by, "the daemon has not exited: {}", self.log());
            std::thread::yield_now();
        }
    }

    /// A command with a umask of 000.
    pub(crate) fn with_open_umask(&self, args: &[&str]) -> Command {
        let mut shell = Command::new("bash");
        shell.args(["-c", "umask 000; exec \"$0\" \"$@\""]).arg(program()).args(args);
        shell.current_dir(self.0.path("work")).env_clear().envs(self.0.env());
        shell
    }
}

/// Sends a plain HTTP request and returns the raw answer.
pub(crate) fn ask(mut stream: UnixStream, path: &str, headers: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n{headers}connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Waits for an event that matches `wanted`.
pub(crate) async fn until(events: &mut Attachment, wanted: impl Fn(&Event) -> bool) -> Arc<Event> {
    let wait = async {
        loop {
            let event = events.next().await.expect("the stream continues");
            if wanted(&event) {
                return event;
            }
        }
    };
    tokio::time::timeout(patience(), wait).await.expect("the event arrives")
}
