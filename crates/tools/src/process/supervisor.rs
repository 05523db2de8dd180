//! The supervisor process: starts one program, reaps every process below it, and ends them.

mod ending;

use std::error::Error;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use holdpoint_common::EndedProcesses;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, set_child_subreaper, set_parent_process_death_signal, setsid,
    wait,
};
use rustix::thread::set_name;
use signal_hook::low_level::pipe;

use self::ending::Ending;
use super::descriptors;
use super::exit::Exit;
use super::listener::run_in_front;
use super::wire::{Order, Report};
use super::{SETTLE, SUPERVISOR_NAME, id, timespec};
use crate::sandbox::{Confinement, Restrictions, open_mounted};

/// The delay before `poll` is tried again after an error.
const RETRY_DELAY: Duration = Duration::from_millis(10);

/// Runs until no process of the program is left, then exits.
pub(super) fn supervise() -> ! {
    // An error needs no message: without a socket there is no owner, and an owner sees the socket
    // close.
    std::process::exit(i32::from(run().is_err()))
}

fn run() -> io::Result<()> {
    // A daemon recognizes a supervisor by this name. `exec` has set the name of the file.
    set_name(&CString::new(SUPERVISOR_NAME)?)?;
    // Without a controlling terminal, no process below can open one. `setsid` fails only if the
    // supervisor leads a group, which then receives none of the owner's signals either.
    let _ = setsid();
    // Processes that lose their parent become children of the supervisor, wherever they have moved.
    set_child_subreaper(Some(getpid()))?;
    // Wakes a stopped supervisor when its owner dies, so that it notices.
    set_parent_process_death_signal(Some(Signal::CONT))?;

    let (wake, waker) = UnixStream::pair()?;
    wake.set_nonblocking(true)?;
    pipe::register(Signal::CHILD.as_raw(), waker)?;
    // Handled instead of ignored, because the program would inherit ignored signals.
    let (stop, stopper) = UnixStream::pair()?;
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        pipe::register(signal.as_raw(), stopper.try_clone()?)?;
    }

    // A copy that no program inherits. The original is standard input, which is replaced for the
    // program.
    let mut control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut passed = descriptors::receive(&control)?;
    let mut order = Order::read(&mut control)?;
    // If the owner has asked to end or is gone, the call is over before the program has started.
    let mut fds = [PollFd::new(&control, PollFlags::IN)];
    if poll(&mut fds, Some(&timespec(Duration::ZERO))).is_ok_and(|ready| ready > 0) {
        return Ok(());
    }
    let listens = matches!(order.confinement, Confinement::Bwrap { listens: true });
    let handover = (listens && !passed.is_empty()).then(|| passed.remove(0));
    let stdin = passed.pop();
    let (mounted, restrictions) = match set_up(&mut order, stdin.as_ref()) {
        Ok(set_up) => set_up,
        Err(error) => {
            Report::NotConfined { why: error.to_string() }.send_to(&control);
            return Ok(());
        }
    };
    let null = File::options().write(true).open("/dev/null")?;
    let mut command = Command::new(&order.program);
    command.args(&order.args).process_group(0);
    // The program in front of a sandboxed one inherits the standard input by its number.
    let (first, inherited) = if listens { (handover, stdin) } else { (stdin, None) };
    command.stdin(first.map_or_else(Stdio::null, Stdio::from));
    if let Some(restrictions) = restrictions {
        restrict(&mut command, restrictions, control.try_clone()?);
    }
    let started = command.spawn();
    // Otherwise the supervisor would hold the input open.
    drop((command, inherited, mounted));
    let leader = match started {
        Ok(child) => Pid::from_child(&child),
        Err(error) => {
            Report::Refused { errno: error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error()) }
                .send_to(&control);
            return Ok(());
        }
    };
    // Otherwise the supervisor would hold the output open.
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Report::Started { pid: id(leader) }.send_to(&control);

    Supervision {
        control: Some(control),
        wake,
        stop,
        leader,
        settle_deadline: None,
        ending: Ending::new(
            order.grace,
            matches!(order.confinement, Confinement::Bwrap { .. }).then_some(leader),
        ),
    }
    .run()
}

/// Sets up the restrictions of the program. Returns the files that the program mounts, if it is
/// bubblewrap, and the restrictions that are only for the program and not for the supervisor.
fn set_up(
    order: &mut Order,
    stdin: Option<&OwnedFd>,
) -> Result<(Vec<OwnedFd>, Option<Restrictions>), Box<dyn Error>> {
    let restrictions = Restrictions::new(&order.confinement)?;
    let Confinement::Bwrap { listens } = order.confinement else {
        // With the same restrictions, the program could reach the supervisor.
        return Ok((Vec::new(), restrictions));
    };
    // Inherited by bubblewrap. The supervisor needs nothing that they refuse.
    restrictions.map_or(Ok(()), Restrictions::apply)?;
    let mut opened = open_mounted(&mut order.args)?;
    if listens {
        opened.push(run_in_front(&mut order.args, stdin)?);
    }
    Ok((opened, None))
}

/// Lets the program of a command restrict itself before it runs. An error is reported to the owner.
#[allow(unsafe_code, reason = "a function that runs between `fork` and `exec`")]
fn restrict(command: &mut Command, restrictions: Restrictions, control: UnixStream) {
    let mut restrictions = Some(restrictions);
    let apply = move || {
        let applied = restrictions.take().map_or(Ok(()), Restrictions::apply);
        applied.map_err(|error| {
            Report::NotConfined { why: error.to_string() }.send_to(&control);
            io::Error::other("not confined")
        })
    };
    // SAFETY: after a `fork`, only functions that are safe in signal handlers may be called if
    // other threads exist. The supervisor has one thread.
    unsafe {
        command.pre_exec(apply);
    }
}

struct Supervision {
    /// The socket to the owner; `None` once the owner is gone.
    control: Option<UnixStream>,
    /// Receives a byte when a child has ended.
    wake: UnixStream,
    /// Receives a byte when a signal asks the supervisor to end.
    stop: UnixStream,
    leader: Pid,
    /// The time until which the remaining processes may end by themselves, set when the program has
    /// ended.
    settle_deadline: Option<Instant>,
    ending: Ending,
}

impl Supervision {
    fn run(mut self) -> io::Result<()> {
        loop {
            if self.reap()? {
                self.send_report(&Report::Ended(self.ending.counts()));
                return Ok(());
            }
            let now = Instant::now();
            if self.settle_deadline.is_some_and(|deadline| now >= deadline) {
                self.ending.begin();
            }
            // A child lives. If no process was found, a process has lowered the limits of the
            // supervisor, so that it can't read `/proc`. Without a report, the owner ends them all.
            let found_some = |counts: &EndedProcesses| !counts.not_ended.is_empty();
            if let Some(counts) = self.ending.step(now).filter(found_some) {
                self.send_report(&Report::Ended(counts));
            }
            self.sleep();
        }
    }

    /// Reaps the children that have ended. Returns true if no child is left.
    fn reap(&mut self) -> io::Result<bool> {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.leader => {
                    self.send_report(&Report::Exited(Exit::from(ExitStatus::from_raw(
                        status.as_raw(),
                    ))));
                    self.settle_deadline = Some(Instant::now() + SETTLE);
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Ok(false),
                Err(Errno::CHILD) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until a child ends, the owner sends a byte or is gone, a signal arrives, or the next
    /// step is due.
    fn sleep(&mut self) {
        let until = self.ending.next_due().or(self.settle_deadline);
        let timeout = until.map(|until| timespec(until.saturating_duration_since(Instant::now())));
        let mut fds =
            vec![PollFd::new(&self.wake, PollFlags::IN), PollFd::new(&self.stop, PollFlags::IN)];
        fds.extend(self.control.iter().map(|control| PollFd::new(control, PollFlags::IN)));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            // A process has lowered the limits of the supervisor, which must not end before it.
            Err(_) => {
                std::thread::sleep(RETRY_DELAY);
                return;
            }
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        let mut bytes = [0; 64];
        if ready[0] {
            while self.wake.read(&mut bytes).is_ok_and(|read| read == bytes.len()) {}
        }
        if ready[1] {
            let _ = self.stop.read(&mut bytes);
            self.ending.begin();
        }
        if ready.get(2) == Some(&true) {
            // Every byte means to end, and so does the end of the stream.
            if self
                .control
                .as_mut()
                .is_some_and(|control| !control.read(&mut bytes).is_ok_and(|read| read > 0))
            {
                self.control = None;
            }
            self.ending.begin();
        }
    }

    fn send_report(&self, report: &Report) {
        if let Some(control) = &self.control {
            report.send_to(control);
        }
    }
}
