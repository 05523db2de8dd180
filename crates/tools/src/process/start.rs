//! Starts a program under its supervisor, or in its own process group.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use holdpoint_common::EndedProcesses;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::running::{Root, Running};
use super::started::{Started, with_folder};
use super::streams::{ProgramEnds, Streams};
use super::wire::{Order, Report};
use super::{Call, ProcessSpec, SUPERVISOR_NAME, Supervisor, descriptors, group};
use crate::sandbox::{Confinement, DomainProxy};

/// How long a supervisor may take until the program runs. A program that is not a supervisor would
/// never answer.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// How often a stopped supervisor is woken. Its program may stop it again and again.
pub(super) const WAKE_INTERVAL: Duration = Duration::from_millis(50);

pub(super) fn start(
    call: &Call,
    spec: &ProcessSpec,
    streams: Streams,
    running: &Running,
) -> io::Result<Started> {
    let path = match &call.supervisor {
        // Also correct if an upgrade has replaced or removed the file.
        Supervisor::ThisProgram => Path::new("/proc/self/exe"),
        Supervisor::Program(path) => path,
        Supervisor::None => return group::start(spec, streams, call.grace),
    };
    if !cfg!(target_os = "linux") {
        return group::start(spec, streams, call.grace);
    }
    let sandboxed = call.sandbox.as_ref().map(|sandbox| sandbox.apply(spec)).transpose()?;
    let (spec, confinement, reach) = match &sandboxed {
        Some(program) => (&program.spec, &program.confinement, program.reach.as_ref()),
        None => (spec, &Confinement::None, None),
    };
    let order = Order::encode(call.grace, confinement, &spec.program, &spec.args)?;
    let (ours, theirs) = UnixStream::pair()?;
    let (ends, ProgramEnds { stdin, stdout, stderr }) = streams.open()?;
    // A program that has a listener hands it over to the proxy by a socket.
    let (proxy, handover) = match reach {
        Some(reach) => {
            let (handover, theirs) = UnixStream::pair()?;
            (Some(DomainProxy::start(reach, handover)?), Some(theirs))
        }
        None => (None, None),
    };
    // The supervisor's standard input is its socket, so these files are sent to it.
    let handover = handover.as_ref().map(AsFd::as_fd);
    let passed: Vec<_> = handover.into_iter().chain(stdin.as_ref().map(AsFd::as_fd)).collect();
    let mut command = Command::new(path);
    command
        .arg0(SUPERVISOR_NAME)
        .args(&call.label)
        .env_clear()
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&spec.cwd)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(stdout)
        .stderr(stderr);
    let mut child = command.spawn().map_err(|error| with_folder(error, spec))?;
    // Closes this process's copies of the far ends, so that only the supervisor holds them.
    drop(command);
    let error = match send_order(&ours, &passed, &order, child.id(), running) {
        Ok((Report::Started { pid: leader }, reports)) => {
            let root = Root::Below(child.id());
            return Ok(Started {
                supervisor: Some(child),
                reports,
                control: ours,
                ends,
                leader,
                root,
                proxy,
            });
        }
        // The supervisor started no program, and exits.
        Ok((Report::Refused { errno }, _)) => io::Error::from_raw_os_error(errno),
        Ok((Report::NotConfined { why }, _)) => {
            io::Error::other(format!("the sandbox can't be set up: {why}"))
        }
        result => {
            // Not a supervisor, or one that was killed or stopped, perhaps by the program it had
            // just started; or one that has started a program which no thread would watch.
            end_in_its_place(child.id());
            let _ = child.kill();
            end_abandoned(child.id());
            result.err().unwrap_or_else(no_supervisor)
        }
    };
    drop(ours);
    let _ = child.wait();
    Err(error)
}

/// Sends the order, behind the files that go with it. Returns the supervisor's first report and a
/// reader for the others.
fn send_order(
    control: &UnixStream,
    passed: &[BorrowedFd<'_>],
    order: &[u8],
    supervisor: u32,
    running: &Running,
) -> io::Result<(Report, BufReader<UnixStream>)> {
    control.set_write_timeout(Some(START_TIMEOUT))?;
    control.set_read_timeout(Some(WAKE_INTERVAL))?;
    let deadline = Instant::now() + START_TIMEOUT;
    let explain = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => io::Error::new(
            io::ErrorKind::TimedOut,
            "the supervisor does not answer: its program must call supervise_if_asked() first in main",
        ),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => no_supervisor(),
        _ => error,
    };
    // Cloned before the order is sent: later there may be no descriptor left.
    let end_control = control.try_clone()?;
    let mut reports = BufReader::with_capacity(256, control.try_clone()?);
    // The supervisor starts the program at the last byte. The last byte must therefore not be sent
    // after the end of the call.
    let (head, last) = order.split_at(order.len().saturating_sub(1));
    descriptors::send(control, passed).map_err(explain)?;
    (&*control).write_all(head).map_err(explain)?;
    wait_for_room(control, deadline).map_err(explain)?;
    running.set_ordered(end_control, last).map_err(explain)?;
    let mut line = String::new();
    while let Err(error) = reports.read_line(&mut line) {
        if error.kind() != io::ErrorKind::WouldBlock || Instant::now() >= deadline {
            return Err(explain(error));
        }
        wake(supervisor);
    }
    control.set_read_timeout(None)?;
    Ok((Report::parse(&line).ok_or_else(no_supervisor)?, reports))
}

/// Waits until a few more bytes can be sent. No other thread sends, so the room stays.
fn wait_for_room(control: &UnixStream, deadline: Instant) -> io::Result<()> {
    loop {
        let remaining = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(remaining).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(control, PollFlags::OUT)], Some(&timeout)) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The error for a start after the end of the call.
pub(super) fn call_ended() -> io::Error {
    io::Error::other("the call has ended: no program can be started")
}

fn no_supervisor() -> io::Error {
    io::Error::other(
        "the supervisor ended before the program ran: it was killed, or its program does not call \
         supervise_if_asked() first in main",
    )
}

/// Continues a supervisor that was stopped.
pub(super) fn wake(supervisor: u32) {
    #[cfg(target_os = "linux")]
    super::abandoned::wake(supervisor);
    #[cfg(not(target_os = "linux"))]
    let _ = supervisor;
}

/// Ends everything below a supervisor that does not do so itself, then the supervisor.
pub(super) fn end_in_its_place(supervisor: u32) -> EndedProcesses {
    #[cfg(target_os = "linux")]
    return super::abandoned::end_in_its_place(supervisor);
    #[cfg(not(target_os = "linux"))]
    return EndedProcesses { not_ended: vec![supervisor], ..EndedProcesses::default() };
}

/// Ends the processes that a killed supervisor left behind.
pub(super) fn end_abandoned(supervisor: u32) -> EndedProcesses {
    #[cfg(target_os = "linux")]
    return super::abandoned::end_abandoned(supervisor);
    // Other systems have no supervisors.
    #[cfg(not(target_os = "linux"))]
    return EndedProcesses { not_ended: vec![supervisor], ..EndedProcesses::default() };
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::io::Read;

    use super::*;

    /// The supervisor starts the program with the last byte of the order.
    #[test]
    fn an_order_is_not_completed_when_the_call_ends_before_its_last_byte() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let order =
            Order::encode(Duration::ZERO, &Confinement::None, OsStr::new("true"), &[]).unwrap();
        let running = Running::new();
        running.end();
        assert!(send_order(&ours, &[], &order, std::process::id(), &running).is_err());
        drop(ours);
        let mut sent = Vec::new();
        theirs.read_to_end(&mut sent).unwrap();
        assert_eq!(sent, [&[0], &order[..order.len() - 1]].concat());
    }
}
