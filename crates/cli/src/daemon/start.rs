//! Starting a daemon from a command: one at a time, detached from whoever starts it, and with its reason if it can't.

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use holdpoint_session::folders::{self, Folders};
use holdpoint_tools::environment;
use rustix::fs::{FlockOperation, flock};
use rustix::stdio::dup2_stdout;

use super::claim;
use crate::error::CliError;

/// How long one daemon may take to stop and the next one to start.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

/// After how long a claim that is held is tried again.
pub(super) const AGAIN: Duration = Duration::from_millis(10);

/// Held by the command that starts the daemon. Those that come at the same time wait for it, and find a daemon.
const LOCK: &str = "start.lock";

/// What a daemon says when it serves.
const READY: &str = "ready";

/// The variables that a daemon gets of the environment, besides [`environment::DESKTOP`]: for its folders, its log, and the
/// certificates for the command of `notify`. Clients send all others for the sessions they open.
const ENVIRONMENT: [&str; 6] =
    ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", holdpoint_session::levels::VARIABLE];

/// Starts a daemon, unless one can be reached by the time it is our turn. Blocks until it serves.
///
/// # Errors
/// Whatever keeps it from serving, in its own words.
pub(super) fn start(folders: &Folders, idle_stop: Option<Duration>) -> Result<(), CliError> {
    folders.sockets()?;
    folders.make()?;
    let _turn = turn(folders)?;
    if claim::is_served(folders)? {
        return Ok(());
    }
    // What was opened by whoever called us, and left open to us (`exec 9> lock` in a shell), is not the daemon's.
    close_fds::set_fds_cloexec_threadsafe(3, &[]);
    let mut daemon =
        command(folders, idle_stop).spawn().map_err(|error| CliError::failed(format!("no daemon: {error}")))?;
    let said = match daemon.stdout.take() {
        Some(words) => first_line(words, || late(folders, daemon.id()))?,
        None => String::new(),
    };
    if said.trim_end() == READY {
        return Ok(());
    }
    // It has ended, or is about to.
    let ended = daemon.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
    Err(serde_json::from_str(&said).unwrap_or_else(|_| {
        CliError::failed(format!("the daemon ended before it served: {ended}"))
            .hint(format!("its log is in {}; `holdpoint daemon` runs it here", folders.logs().display()))
    }))
}

/// What a daemon says first; nothing if it ends before. If it says nothing for too long, the error is `late`.
fn first_line(words: impl io::Read + Send + 'static, late: impl FnOnce() -> CliError) -> Result<String, CliError> {
    let (says, said) = mpsc::sync_channel(1);
    // A read has no time limit: if it runs out, the thread ends with the daemon.
    let read = move || {
        let mut line = String::new();
        let _ = BufReader::new(words).read_line(&mut line);
        // Nobody waits any more.
        let _ = says.send(line);
    };
    std::thread::Builder::new().spawn(read).map_err(|error| CliError::failed(format!("no daemon: {error}")))?;
    said.recv_timeout(PATIENCE).map_err(|_| late())
}

/// Why the daemon with this process id has not served in time: another one has its place, or it is slow.
fn late(folders: &Folders, pid: u32) -> CliError {
    match claim::check_free(folders) {
        Err(unreachable) if unreachable.pid != Some(pid) => unreachable.into(),
        _ => {
            let seconds = PATIENCE.as_secs();
            CliError::failed(format!(
                "the daemon (pid {pid}) has been starting for {seconds} s, and does not serve yet"
            ))
            .hint("`holdpoint status` says whether it does; `holdpoint daemon` runs it here")
        }
    }
}

/// This program as a daemon, with nothing of ours but where things are.
fn command(folders: &Folders, idle_stop: Option<Duration>) -> Command {
    let mut command = Command::new(this_program());
    command.arg0("holdpoint").args(["daemon", "--detached"]);
    if let Some(dir) = folders.state_dir() {
        command.arg("--state-dir").arg(dir);
    }
    if let Some(idle) = idle_stop {
        command.arg("--idle-stop").arg(humantime::format_duration(idle).to_string());
    }
    command.env_clear().current_dir("/");
    let names = ENVIRONMENT.iter().chain(&environment::DESKTOP);
    command.envs(names.filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// The program that runs, also if its file was replaced meanwhile.
fn this_program() -> std::path::PathBuf {
    match std::env::current_exe() {
        Ok(path) if path.exists() => path,
        _ => "/proc/self/exe".into(),
    }
}

/// Our turn to start one, for as long as the file is kept.
fn turn(folders: &Folders) -> Result<std::fs::File, CliError> {
    let path = &folders.data().join(LOCK);
    let failed = |error: io::Error| CliError::failed(format!("{}: {error}", path.display()));
    let file = folders::open(path, OpenOptions::new().write(true))?;
    // There is no lock with a time limit: if it runs out, the thread gives the lock back whenever it gets it.
    let (locked, ours) = mpsc::sync_channel(1);
    let wait = move || {
        let lock = loop {
            match flock(&file, FlockOperation::LockExclusive) {
                Err(rustix::io::Errno::INTR) => {}
                lock => break lock,
            }
        };
        // Nobody waits any more.
        let _ = locked.send(lock.map(|()| file));
    };
    std::thread::Builder::new().spawn(wait).map_err(failed)?;
    match ours.recv_timeout(PATIENCE) {
        Ok(locked) => locked.map_err(|error| failed(error.into())),
        Err(_) => {
            claim::check_free(folders)?;
            let seconds = PATIENCE.as_secs();
            Err(CliError::failed(format!("another command has been starting the daemon for {seconds} s already"))
                .hint(format!("it holds {}", path.display())))
        }
    }
}

/// Leaves the terminal and the process group of whoever started this daemon.
pub(crate) fn detach() {
    // Fails for who leads a group, and so has no terminal to lose.
    let _ = rustix::process::setsid();
}

/// Tells whoever started this daemon that it serves, or why not, and lets go of them.
pub(crate) fn announce(outcome: Result<(), &CliError>) -> io::Result<()> {
    let words = match outcome {
        Ok(()) => READY.to_owned(),
        Err(error) => serde_json::to_string(error)?,
    };
    let mut out = io::stdout();
    // They may be gone.
    let _ = out.write_all(format!("{words}\n").as_bytes()).and_then(|()| out.flush());
    dup2_stdout(OpenOptions::new().write(true).open("/dev/null")?)?;
    Ok(())
}
