//! Starts a daemon from a command: one at a time, detached from the command, with a reason if it
//! fails.

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
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(15);

/// The interval between attempts to take a claim that is held.
pub(super) const CLAIM_RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// The file that is locked by the command that starts the daemon. Concurrent commands wait for it
/// and then find a daemon.
const LOCK_FILE: &str = "start.lock";

/// The line that a daemon writes when it serves.
const READY: &str = "ready";

/// The variables that a daemon inherits besides [`environment::DESKTOP`]: for its folders, its log,
/// and the certificates of the `notify` command. Clients send all others for the sessions they
/// open. In a fleet, a daemon inherits all variables: sessions that clients of other machines open here
/// use them.
const ENVIRONMENT: [&str; 6] = [
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    holdpoint_session::levels::VARIABLE,
];

/// Starts a daemon, unless one can be reached by the time this command has the lock. Blocks until
/// the daemon serves.
///
/// # Errors
/// Returns the daemon's own error if it does not serve.
pub(super) fn start(folders: &Folders, idle_stop: Option<Duration>) -> Result<(), CliError> {
    folders.sockets()?;
    folders.make()?;
    let _lock = take_start_lock(folders)?;
    if claim::is_served(folders)? {
        return Ok(());
    }
    // Files that our caller has left open to us (`exec 9> lock` in a shell) are not passed on to
    // the daemon.
    close_fds::set_fds_cloexec_threadsafe(3, &[]);
    let mut daemon = daemon_command(folders, idle_stop)
        .spawn()
        .map_err(|error| CliError::failed(format!("the daemon can't be started: {error}")))?;
    let report = match daemon.stdout.take() {
        Some(output) => first_line(output, || late_error(folders, daemon.id()))?,
        None => String::new(),
    };
    if report.trim_end() == READY {
        return Ok(());
    }
    // The daemon has ended, or is about to end.
    let ended = daemon.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
    Err(serde_json::from_str(&report).unwrap_or_else(|_| {
        CliError::failed(format!("the daemon ended before it was ready: {ended}")).hint(format!(
            "see its log in {}, or run it in the foreground with `holdpoint daemon`",
            folders.logs().display()
        ))
    }))
}

/// Returns the first line that a daemon writes; empty if the daemon ends first. If there is no line
/// in time, fails with the error of `late`.
fn first_line(
    output: impl io::Read + Send + 'static,
    late: impl FnOnce() -> CliError,
) -> Result<String, CliError> {
    let (sender, receiver) = mpsc::sync_channel(1);
    // A read has no timeout. If the time runs out, the thread ends with the daemon.
    let read = move || {
        let mut line = String::new();
        let _ = BufReader::new(output).read_line(&mut line);
        // Fails if the receiver has given up.
        let _ = sender.send(line);
    };
    std::thread::Builder::new()
        .spawn(read)
        .map_err(|error| CliError::failed(format!("the daemon can't be started: {error}")))?;
    receiver.recv_timeout(START_TIMEOUT).map_err(|_| late())
}

/// The error if the daemon with this process id has not served in time: another process holds the
/// sessions, or the daemon is slow.
fn late_error(folders: &Folders, pid: u32) -> CliError {
    match claim::check_free(folders) {
        Err(unreachable) if unreachable.pid != Some(pid) => unreachable.into(),
        _ => {
            let seconds = START_TIMEOUT.as_secs();
            CliError::failed(format!(
                "the daemon (pid {pid}) has been starting for {seconds} s and does not answer yet"
            ))
            .hint("`holdpoint status` shows whether it is running; `holdpoint daemon` runs it in the foreground")
        }
    }
}

/// The command that runs this program as a daemon, with the variables that it needs.
fn daemon_command(folders: &Folders, idle_stop: Option<Duration>) -> Command {
    let mut command = Command::new(this_program());
    command.arg0("holdpoint").args(["daemon", "--detached"]);
    if let Some(dir) = folders.state_dir() {
        command.arg("--state-dir").arg(dir);
    }
    if let Some(idle) = idle_stop {
        command.arg("--idle-stop").arg(humantime::format_duration(idle).to_string());
    }
    command.current_dir("/");
    let is_in_fleet = matches!(folders.fleet().get(), Ok(Some(_)));
    if !is_in_fleet {
        let names = ENVIRONMENT.iter().chain(&environment::DESKTOP);
        command.env_clear().envs(names.filter_map(|name| Some((name, std::env::var_os(name)?))));
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// The running program, even if its file was replaced meanwhile.
fn this_program() -> std::path::PathBuf {
    match std::env::current_exe() {
        Ok(path) if path.exists() => path,
        _ => "/proc/self/exe".into(),
    }
}

/// Takes the lock for starting a daemon, held until the file is closed.
fn take_start_lock(folders: &Folders) -> Result<std::fs::File, CliError> {
    let path = &folders.data().join(LOCK_FILE);
    let failed = |error: io::Error| CliError::failed(format!("{}: {error}", path.display()));
    let file = folders::open(path, OpenOptions::new().write(true))?;
    // A lock has no timeout. If the time runs out, the thread releases the lock as soon as it gets
    // it.
    let (sender, receiver) = mpsc::sync_channel(1);
    let wait = move || {
        let lock = loop {
            match flock(&file, FlockOperation::LockExclusive) {
                Err(rustix::io::Errno::INTR) => {}
                lock => break lock,
            }
        };
        // Fails if the receiver has given up.
        let _ = sender.send(lock.map(|()| file));
    };
    std::thread::Builder::new().spawn(wait).map_err(failed)?;
    match receiver.recv_timeout(START_TIMEOUT) {
        Ok(locked) => locked.map_err(|error| failed(error.into())),
        Err(_) => {
            claim::check_free(folders)?;
            let seconds = START_TIMEOUT.as_secs();
            Err(CliError::failed(format!(
                "another command has been starting the daemon for {seconds} s"
            ))
            .hint(format!("it holds the lock {}", path.display())))
        }
    }
}

/// Leaves the terminal and the process group of the parent.
pub(crate) fn detach() {
    // Fails only for the leader of a group, which has no terminal to lose.
    let _ = rustix::process::setsid();
}

/// Reports to the parent that the daemon serves, or why it does not, and then closes the pipe to
/// the parent.
pub(crate) fn announce(result: Result<(), &CliError>) -> io::Result<()> {
    let line = match result {
        Ok(()) => READY.to_owned(),
        Err(error) => serde_json::to_string(error)?,
    };
    let mut out = io::stdout();
    // The parent may be gone.
    let _ = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
    dup2_stdout(OpenOptions::new().write(true).open("/dev/null")?)?;
    Ok(())
}
