//! A world of its own for each test: an empty home, an empty work folder, a cleared environment.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use holdpoint_common::{Event, Fact, TurnFact};
use holdpoint_tools::testing::Census;
pub(crate) use holdpoint_tools::testing::{patience, rounds};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, geteuid, kill_process};

/// Whether the test is root; if not, it reports that it is skipped.
pub(crate) fn is_root() -> bool {
    let is_root = geteuid().is_root();
    if !is_root {
        println!("skipped: it takes root");
    }
    is_root
}

/// An isolated environment for one test.
pub(crate) struct World {
    root: tempfile::TempDir,
    /// Marks every process that is started here, including those of tools.
    pub census: Census,
}

/// The exit code and the output of a finished program.
#[derive(Debug)]
pub(crate) struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// A program that runs with `--json`.
pub(crate) struct Running {
    pub child: Child,
    events: BufReader<ChildStdout>,
    pub seen: Vec<Event>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    /// A world inside `folder`, for tests that depend on the length of its path.
    pub(crate) fn within(folder: &Path) -> Self {
        let root = tempfile::tempdir_in(folder).unwrap();
        for folder in ["home", "config/holdpoint", "work"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let world = Self { root, census: Census::new() };
        world.config("");
        world
    }

    pub(crate) fn path(&self, inside: &str) -> PathBuf {
        self.root.path().join(inside)
    }

    pub(crate) fn work(&self, file: &str) -> PathBuf {
        self.path("work").join(file)
    }

    /// Sets the configuration. Commands run without a sandbox unless it has one: most tests are
    /// about other things, and many look at processes from outside.
    pub(crate) fn config(&self, text: &str) -> PathBuf {
        let path = self.path("config/holdpoint/config.toml");
        let sandbox =
            if text.contains("[sandbox]") { "" } else { "\n[sandbox]\nlevel = \"off\"\n" };
        fs::write(&path, format!("{text}{sandbox}")).unwrap();
        path
    }

    /// The whole environment of the program.
    pub(crate) fn env(&self) -> Vec<(&'static str, String)> {
        let path = |inside| self.path(inside).display().to_string();
        vec![
            ("PATH", std::env::var("PATH").unwrap()),
            ("HOME", path("home")),
            ("XDG_CONFIG_HOME", path("config")),
            ("XDG_DATA_HOME", path("data")),
            ("XDG_RUNTIME_DIR", path("run")),
            ("LANG", "C.UTF-8".into()),
            // One of the variables that tools may see.
            ("XDG_TEST_MARK", self.census.mark().into()),
        ]
    }

    /// The program, in the work folder.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(args).current_dir(self.path("work")).env_clear().envs(self.env());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The process that holds the daemon's lock, if one does.
    pub(crate) fn daemon(&self) -> Option<Pid> {
        let path = self.path("data/holdpoint/daemon.lock");
        let file = File::open(&path).ok()?;
        if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
            return None;
        }
        let contents = fs::read_to_string(path).unwrap();
        contents.lines().next().and_then(|pid| Pid::from_raw(pid.parse().unwrap()))
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args))
    }

    /// Plays a script to its end.
    pub(crate) fn play(&self, args: &[&str], script: &str) -> Ran {
        self.run(&[&["run"], args, &[script]].concat())
    }

    /// Starts to play a script.
    pub(crate) fn start(&self, args: &[&str], script: &str) -> Running {
        Running::of(self.command(&[&["run", "--json"], args, &[script]].concat()))
    }

    /// Starts to follow a session.
    pub(crate) fn follow(&self, session: &str) -> Running {
        self.follow_after(session, 0)
    }

    /// Starts to follow a session after the event with this number.
    pub(crate) fn follow_after(&self, session: &str, after: u64) -> Running {
        let after = after.to_string();
        Running::of(self.command(&["logs", session, "--json", "--follow", "--after", &after]))
    }
}

/// Ends the daemon that the program may have started, even when a test fails.
impl Drop for World {
    fn drop(&mut self) {
        if let Some(pid) = self.daemon() {
            // The daemon may have ended meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// The patience as a value of `--timeout`.
pub(crate) fn timeout() -> String {
    format!("{}s", patience().as_secs())
}

pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_holdpoint"))
}

impl Ran {
    pub(crate) fn of(mut command: Command) -> Self {
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.out
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect()
    }
}

impl Running {
    /// Starts a program that prints events.
    fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let events = BufReader::new(child.stdout.take().unwrap());
        Self { child, events, seen: Vec::new() }
    }

    /// Reads events until one matches `wanted`.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, what: &str, wanted: impl Fn(&Event) -> bool) {
        let found = self.reaches(wanted);
        assert!(found, "the program ended before {what}: {:#?}", self.seen);
    }

    /// Reads events until one matches `wanted`. Returns `false` if the program ends before.
    pub(crate) fn reaches(&mut self, wanted: impl Fn(&Event) -> bool) -> bool {
        let mut line = String::new();
        while self.events.read_line(&mut line).unwrap() > 0 {
            let event: Event = serde_json::from_str(&line).unwrap();
            line.clear();
            let found = wanted(&event);
            self.seen.push(event);
            if found {
                return true;
            }
        }
        false
    }

    /// Waits until a tool has printed this.
    #[track_caller]
    pub(crate) fn wait_output(&mut self, text: &str) {
        self.wait_for(text, |event| {
            matches!(event.delta(), Some(holdpoint_common::Delta::Output { text: output, .. }) if output.contains(text))
        });
    }

    pub(crate) fn signal(&self, signal: &str) {
        let done = Command::new("kill")
            .args(["-s", signal, &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(done.success());
    }

    /// Waits until the program's output fills the pipe and blocks it.
    pub(crate) fn wait_full(&self) {
        wait_full(self.events.get_ref());
    }

    /// Waits for the end. Returns the status, all events and standard error.
    pub(crate) fn end(mut self) -> (ExitStatus, Vec<Event>, String) {
        for line in self.events.by_ref().lines() {
            self.seen.push(serde_json::from_str(&line.unwrap()).unwrap());
        }
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (wait(&mut self.child), self.seen, err)
    }

    /// Stops reading the output.
    pub(crate) fn stop_reading(self) -> Child {
        self.child
    }
}

/// Waits until a program's output fills its pipe and blocks the program.
#[track_caller]
pub(crate) fn wait_full(pipe: &ChildStdout) {
    // A pipe holds 16 pages of 4 KiB, which need not be full: with 40 KiB in them, most are taken.
    let by = Instant::now() + patience();
    while rustix::io::ioctl_fionread(pipe).unwrap() < 40 * 1024 {
        assert!(Instant::now() < by, "the pipe does not fill");
        std::thread::yield_now();
    }
}

/// Waits for a process to end.
#[track_caller]
pub(crate) fn wait(child: &mut Child) -> ExitStatus {
    let by = Instant::now() + patience();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(Instant::now() < by, "the program did not end within {:?}", patience());
        // There is no wait with a timeout in the standard library.
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub(crate) fn killed(status: ExitStatus) -> Option<i32> {
    status.signal()
}

pub(crate) fn say(stdin: &mut ChildStdin, text: &str) {
    stdin.write_all(text.as_bytes()).unwrap();
}

/// The end of the turn.
pub(crate) fn finished(events: &[Event]) -> &Fact {
    let mut facts = events.iter().filter_map(Event::fact);
    facts.find(|fact| matches!(fact, Fact::Turn(TurnFact::Finished { .. }))).expect("the turn ends")
}
