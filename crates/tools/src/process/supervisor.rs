//! The supervising process: starts one program, reaps all that comes of it, and ends it.

mod ending;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, set_child_subreaper, set_parent_process_death_signal, setsid, wait,
};
use signal_hook::low_level::pipe;

use self::ending::Ending;
use super::exit::Exit;
use super::wire::{Order, Report};
use super::{SETTLE, id, timespec};

/// Serves until nothing is left of the program, then exits.
pub(super) fn supervise() -> ! {
    // Nobody reads an error: without a socket there is no owner, and an owner sees that it was closed.
    std::process::exit(i32::from(run().is_err()))
}

fn run() -> io::Result<()> {
    // No controlling terminal: whatever runs below can't open it. Refused only where we lead a group, which
    // then has none of the owner's signals either.
    let _ = setsid();
    // What loses its parent becomes our child, wherever it has gone.
    set_child_subreaper(Some(getpid()))?;
    // Whoever has stopped us does not keep us from seeing that the owner is gone.
    set_parent_process_death_signal(Some(Signal::CONT))?;

    let (wake, waker) = UnixStream::pair()?;
    wake.set_nonblocking(true)?;
    pipe::register(Signal::CHILD.as_raw(), waker)?;
    // Handled, not ignored: a program would inherit that they are ignored.
    let (stop, stopper) = UnixStream::pair()?;
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        pipe::register(signal.as_raw(), stopper.try_clone()?)?;
    }

    // A copy that no program inherits; the original is replaced in the program and useless to it.
    let mut control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let order = Order::read(&mut control)?;
    // The owner has said more, or is gone: it is over before it has begun.
    let mut more = [PollFd::new(&control, PollFlags::IN)];
    if poll(&mut more, Some(&timespec(Duration::ZERO))).is_ok_and(|ready| ready > 0) {
        return Ok(());
    }
    let null = File::options().write(true).open("/dev/null")?;
    let started = Command::new(&order.program).args(&order.args).stdin(Stdio::null()).process_group(0).spawn();
    let leader = match started {
        Ok(child) => Pid::from_child(&child),
        Err(error) => {
            Report::Refused { errno: error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error()) }.tell(&control);
            return Ok(());
        }
    };
    // We would hold the pipe open for whoever reads the output.
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Report::Started { pid: id(leader) }.tell(&control);

    Supervision { control: Some(control), wake, stop, leader, settled: None, ending: Ending::new(order.grace) }.run()
}

struct Supervision {
    /// The owner; none once it is gone.
    control: Option<UnixStream>,
    /// Gets a byte when a child has ended.
    wake: UnixStream,
    /// Gets a byte when a signal asks us to end.
    stop: UnixStream,
    leader: Pid,
    /// The program has ended; until then what it left may end by itself.
    settled: Option<Instant>,
    ending: Ending,
}

impl Supervision {
    fn run(mut self) -> io::Result<()> {
        loop {
            if self.reap()? {
                self.tell(&Report::Ended(self.ending.counts()));
                return Ok(());
            }
            let now = Instant::now();
            if self.settled.is_some_and(|settled| now >= settled) {
                self.ending.begin();
            }
            if let Some(counts) = self.ending.go_on(now) {
                self.tell(&Report::Ended(counts));
            }
            self.sleep()?;
        }
    }

    /// Reaps what has ended; true if there is nothing left.
    fn reap(&mut self) -> io::Result<bool> {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.leader => {
                    self.tell(&Report::Exited(Exit::from(ExitStatus::from_raw(status.as_raw()))));
                    self.settled = Some(Instant::now() + SETTLE);
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Ok(false),
                Err(Errno::CHILD) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until a child ends, the owner speaks or is gone, a signal comes, or it is time for more.
    fn sleep(&mut self) -> io::Result<()> {
        let until = self.ending.next().or(self.settled);
        let timeout = until.map(|until| timespec(until.saturating_duration_since(Instant::now())));
        let mut fds = vec![PollFd::new(&self.wake, PollFlags::IN), PollFd::new(&self.stop, PollFlags::IN)];
        fds.extend(self.control.iter().map(|control| PollFd::new(control, PollFlags::IN)));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let happened: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        let mut bytes = [0; 64];
        if happened[0] {
            while self.wake.read(&mut bytes).is_ok_and(|read| read == bytes.len()) {}
        }
        if happened[1] {
            let _ = self.stop.read(&mut bytes)?;
            self.ending.begin();
        }
        if happened.get(2) == Some(&true) {
            // Whatever is said means: end. So does that nobody is there any more.
            if self.control.as_mut().is_some_and(|control| !control.read(&mut bytes).is_ok_and(|read| read > 0)) {
                self.control = None;
            }
            self.ending.begin();
        }
        Ok(())
    }

    fn tell(&self, report: &Report) {
        if let Some(control) = &self.control {
            report.tell(control);
        }
    }
}
