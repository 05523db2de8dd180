//! The thread that reads a terminal's input.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

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
    Woken,
    Gone,
}

fn read(tty: &OwnedFd, woken: &UnixStream, mut take: impl FnMut(Input, Instant)) -> io::Result<Ended> {
    let mut decoder = Decoder::new(Instant::now());
    let (mut bytes, mut inputs) = ([0; 4096], Vec::new());
    loop {
        match wait(tty, woken, decoder.due())? {
            Ready::Input if !is_in_foreground(tty) => {
                // It is another process's: reading it would stop this one.
                if let Ready::Woken = wait_away(woken)? {
                    return Ok(Ended::Woken);
                }
            }
            Ready::Input => match rustix::io::read(tty, &mut bytes) {
                Ok(0) => return Ok(Ended::Gone),
                Ok(count) => decoder.feed(&bytes[..count], Instant::now(), &mut inputs),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            },
            Ready::Silence => decoder.settle(&mut inputs),
            Ready::Woken => return Ok(Ended::Woken),
            Ready::Gone => return Ok(Ended::Gone),
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

/// Waits for input, which goes before silence: a thread that was suspended meanwhile has not heard any.
fn wait(tty: &OwnedFd, woken: &UnixStream, due: Option<Instant>) -> io::Result<Ready> {
    loop {
        let left = due.map(|due| due.saturating_duration_since(Instant::now()));
        let left = left.map(Timespec::try_from).transpose().map_err(|_| Errno::INVAL)?;
        let mut fds = [PollFd::new(tty, PollFlags::IN), PollFd::new(woken, PollFlags::IN)];
        match poll(&mut fds, left.as_ref()) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(0) => return Ok(Ready::Silence),
            Ok(_) if !fds[1].revents().is_empty() => return Ok(Ready::Woken),
            Ok(_) if fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) => {
                return Ok(Ready::Gone);
            }
            Ok(_) => return Ok(Ready::Input),
        }
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
