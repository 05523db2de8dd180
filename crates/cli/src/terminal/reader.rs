//! The thread that reads the terminal's input.

use std::io::{self, Read};
#[cfg(target_os = "linux")]
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use rustix::event::epoll;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;

use super::decode::{Decoder, Input};

/// The interval of foreground checks while the terminal has input for another process.
const FOREGROUND_INTERVAL: Duration = Duration::from_secs(1);

/// Reads until it is dropped.
pub(crate) struct Reader {
    /// Dropping this end wakes the thread.
    wake: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    /// Starts the thread. `take` is called with each input and the time it was read; `gone` once
    /// the terminal is closed or fails.
    ///
    /// # Errors
    /// Fails if the thread can't be started.
    pub(crate) fn start(
        tty: Arc<OwnedFd>,
        take: impl FnMut(Input, Instant) + Send + 'static,
        gone: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let (wake, woken) = UnixStream::pair()?;
        let read = move || {
            // A read error means the terminal is gone.
            if !matches!(read(&tty, &woken, take), Ok(Ended::Woken)) {
                gone();
            }
        };
        let thread = std::thread::Builder::new().name("holdpoint-keys".to_owned()).spawn(read)?;
        Ok(Self { wake: Some(wake), thread: Some(thread) })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            // A panicked thread has nothing left to clean up.
            let _ = thread.join();
        }
    }
}

enum Ended {
    Woken,
    Gone,
}

enum Ready {
    Input,
    /// The decoder's deadline passed without input.
    Silence,
    /// The process was stopped while it waited, and has resumed.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux reports it"))]
    Continued,
    Woken,
    Gone,
}

fn read(
    tty: &OwnedFd,
    woken: &UnixStream,
    mut take: impl FnMut(Input, Instant),
) -> io::Result<Ended> {
    let mut decoder = Decoder::new(Instant::now());
    let waits = Waits::new(tty, woken)?;
    let mut bytes = [0; 4096];
    let mut inputs = Vec::new();
    loop {
        match waits.until(decoder.due())? {
            Ready::Input if !is_in_foreground(tty) => {
                // The input is for another process, and reading it would stop this one.
                while !is_in_foreground(tty) {
                    if let Ready::Woken = wait_in_background(woken)? {
                        return Ok(Ended::Woken);
                    }
                }
                inputs.push(Input::Foreground);
            }
            Ready::Input => {}
            Ready::Continued => inputs.push(Input::Continued),
            Ready::Silence => decoder.flush_pending(&mut inputs),
            Ready::Woken => return Ok(Ended::Woken),
            Ready::Gone => return Ok(Ended::Gone),
        }
        // Input typed while the process was stopped is passed on in the same batch.
        if is_readable(tty)? && is_in_foreground(tty) {
            match rustix::io::read(tty, &mut bytes) {
                Ok(0) => return Ok(Ended::Gone),
                Ok(count) => decoder.feed(&bytes[..count], Instant::now(), &mut inputs),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let now = Instant::now();
        inputs.drain(..).for_each(|input| take(input, now));
    }
}

/// Whether this process is in the terminal's foreground.
pub(super) fn is_in_foreground(tty: &OwnedFd) -> bool {
    // A terminal that does not control this process has no foreground group.
    tcgetpgrp(tty).map_or(true, |group| group == getpgrp())
}

/// The file descriptors that the thread waits on.
struct Waits<'a> {
    tty: &'a OwnedFd,
    woken: &'a UnixStream,
    #[cfg(target_os = "linux")]
    epoll: OwnedFd,
}

impl<'a> Waits<'a> {
    fn new(tty: &'a OwnedFd, woken: &'a UnixStream) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        let epoll = {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            epoll::add(&epoll, tty, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
            epoll::add(&epoll, woken, epoll::EventData::new_u64(1), epoll::EventFlags::IN)?;
            epoll
        };
        Ok(Self {
            tty,
            woken,
            #[cfg(target_os = "linux")]
            epoll,
        })
    }

    /// Waits for an event. A resume is reported before input, and input before silence: a thread
    /// that was suspended past the deadline has not yet seen the pending input.
    #[cfg(target_os = "linux")]
    fn until(&self, due: Option<Instant>) -> io::Result<Ready> {
        // A stop interrupts `epoll_wait` but not `poll`, even when no signal handler is installed.
        match epoll::wait(&self.epoll, &mut [MaybeUninit::uninit(); 2], time_until(due)?.as_ref()) {
            Err(Errno::INTR) => Ok(Ready::Continued),
            Err(error) => Err(error.into()),
            Ok(([], _)) => Ok(Ready::Silence),
            Ok(_) => match self.ready(Some(Timespec::default())) {
                // Another process may have read the input already.
                Ok(Some(ready)) => Ok(ready),
                Ok(None) | Err(Errno::INTR) => Ok(Ready::Input),
                Err(error) => Err(error.into()),
            },
        }
    }

    /// As on Linux, but a resume is not detected.
    #[cfg(not(target_os = "linux"))]
    fn until(&self, due: Option<Instant>) -> io::Result<Ready> {
        loop {
            match self.ready(time_until(due)?) {
                Err(Errno::INTR) => {}
                ready => return Ok(ready?.unwrap_or(Ready::Silence)),
            }
        }
    }

    /// Polls both descriptors for up to `within`; the wake-up has priority.
    fn ready(&self, within: Option<Timespec>) -> rustix::io::Result<Option<Ready>> {
        let mut fds =
            [PollFd::new(self.tty, PollFlags::IN), PollFd::new(self.woken, PollFlags::IN)];
        Ok(match poll(&mut fds, within.as_ref())? {
            0 => None,
            _ if !fds[1].revents().is_empty() => Some(Ready::Woken),
            _ if fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) => {
                Some(Ready::Gone)
            }
            _ => Some(Ready::Input),
        })
    }
}

/// The time left until `due`.
fn time_until(due: Option<Instant>) -> rustix::io::Result<Option<Timespec>> {
    let left = due.map(|due| due.saturating_duration_since(Instant::now()));
    left.map(Timespec::try_from).transpose().map_err(|_| Errno::INVAL)
}

/// Whether a read of the terminal would not block.
fn is_readable(tty: &OwnedFd) -> io::Result<bool> {
    match poll(&mut [PollFd::new(tty, PollFlags::IN)], Some(&Timespec::default())) {
        Err(Errno::INTR) => Ok(false),
        polled => Ok(polled? > 0),
    }
}

/// Waits for [`FOREGROUND_INTERVAL`] or the wake-up, without polling the terminal.
fn wait_in_background(woken: &UnixStream) -> io::Result<Ready> {
    woken.set_read_timeout(Some(FOREGROUND_INTERVAL))?;
    match (&mut &*woken).read(&mut [0]) {
        Ok(_) => Ok(Ready::Woken),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Ready::Silence),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Ready::Silence),
        Err(error) => Err(error),
    }
}
