//! The thread that reads a terminal's input.

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

/// Between two looks at whether this process is in the foreground again, while the terminal has input for another one.
const AWAY: Duration = Duration::from_secs(1);

/// Reads until it is dropped.
pub(crate) struct Reader {
    /// Its end wakes the thread.
    wake: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    /// Begins to read. `take` is called with each input and when it was read; `gone` once the terminal has no more.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(crate) fn start(
        tty: Arc<OwnedFd>,
        take: impl FnMut(Input, Instant) + Send + 'static,
        gone: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let (wake, woken) = UnixStream::pair()?;
        let read = move || {
            // A terminal that fails has no more input.
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
            // A reader that panicked has nothing more to do.
            let _ = thread.join();
        }
    }
}

/// How reading ended.
enum Ended {
    Woken,
    Gone,
}

/// Why waiting ended.
enum Ready {
    Input,
    /// The silence has lasted until then.
    Silence,
    /// The process was stopped while it waited, and goes on.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux says so"))]
    Continued,
    Woken,
    Gone,
}

fn read(tty: &OwnedFd, woken: &UnixStream, mut take: impl FnMut(Input, Instant)) -> io::Result<Ended> {
    let mut decoder = Decoder::new(Instant::now());
    let waits = Waits::new(tty, woken)?;
    let (mut bytes, mut inputs) = ([0; 4096], Vec::new());
    loop {
        match waits.until(decoder.due())? {
            Ready::Input if !is_in_foreground(tty) => {
                // It is another process's: reading it would stop this one.
                while !is_in_foreground(tty) {
                    if let Ready::Woken = wait_away(woken)? {
                        return Ok(Ended::Woken);
                    }
                }
                inputs.push(Input::Foreground);
            }
            Ready::Input => {}
            Ready::Continued => inputs.push(Input::Continued),
            Ready::Silence => decoder.settle(&mut inputs),
            Ready::Woken => return Ok(Ended::Woken),
            Ready::Gone => return Ok(Ended::Gone),
        }
        // Input that was typed while the process was stopped is read at the same time as that.
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

/// Whether input of the terminal is meant for this process.
pub(super) fn is_in_foreground(tty: &OwnedFd) -> bool {
    // A terminal that does not control this process has no foreground to be in.
    tcgetpgrp(tty).map_or(true, |group| group == getpgrp())
}

/// The terminal and what wakes the thread, to be waited for.
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

    /// Waits for input, which goes before silence: a thread that was suspended meanwhile has not heard any. That the process
    /// was stopped goes before input.
    #[cfg(target_os = "linux")]
    fn until(&self, due: Option<Instant>) -> io::Result<Ready> {
        // A stop interrupts this wait, and not that of `poll`, also without a handler for any signal.
        match epoll::wait(&self.epoll, &mut [MaybeUninit::uninit(); 2], left(due)?.as_ref()) {
            Err(Errno::INTR) => Ok(Ready::Continued),
            Err(error) => Err(error.into()),
            Ok(([], _)) => Ok(Ready::Silence),
            Ok(_) => match self.ready(Some(Timespec::default())) {
                // If nothing is there, another process has read it.
                Ok(Some(ready)) => Ok(ready),
                Ok(None) | Err(Errno::INTR) => Ok(Ready::Input),
                Err(error) => Err(error.into()),
            },
        }
    }

    /// The same, without a sign that the process was stopped.
    #[cfg(not(target_os = "linux"))]
    fn until(&self, due: Option<Instant>) -> io::Result<Ready> {
        loop {
            match self.ready(left(due)?) {
                Err(Errno::INTR) => {}
                ready => return Ok(ready?.unwrap_or(Ready::Silence)),
            }
        }
    }

    /// The first of both that is ready within this time.
    fn ready(&self, within: Option<Timespec>) -> rustix::io::Result<Option<Ready>> {
        let mut fds = [PollFd::new(self.tty, PollFlags::IN), PollFd::new(self.woken, PollFlags::IN)];
        Ok(match poll(&mut fds, within.as_ref())? {
            0 => None,
            _ if !fds[1].revents().is_empty() => Some(Ready::Woken),
            _ if fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) => Some(Ready::Gone),
            _ => Some(Ready::Input),
        })
    }
}

/// How long it is until then.
fn left(due: Option<Instant>) -> rustix::io::Result<Option<Timespec>> {
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

/// Waits a while without looking at the terminal.
fn wait_away(woken: &UnixStream) -> io::Result<Ready> {
    woken.set_read_timeout(Some(AWAY))?;
    match (&mut &*woken).read(&mut [0]) {
        Ok(_) => Ok(Ready::Woken),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Ready::Silence),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Ready::Silence),
        Err(error) => Err(error),
    }
}
