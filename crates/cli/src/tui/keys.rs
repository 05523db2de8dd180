//! The thread that reads keys, pastes and changes of focus, and can be told to stop: for an editor, or a shell.

mod split;

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;

use crossterm::event::Event;

pub(crate) use self::split::Split;
use super::message::{Message, Moment};
use crate::terminal::read_events;

/// Reads until it is dropped.
pub(crate) struct Input {
    /// Its end wakes the thread.
    wake: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Input {
    /// Begins to read. `tell` is given each as it is read; `gone` is called when there is nothing more to come.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(crate) fn start(
        tty: Arc<OwnedFd>,
        mut tell: impl FnMut(Message, Moment) -> bool + Send + 'static,
        gone: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let (wake, woken) = UnixStream::pair()?;
        let read = move || {
            let _ = read_events(&tty, &woken, |event| {
                let message = match event {
                    Event::Key(key) => Message::Key(key),
                    Event::Paste(text) => Message::Paste(text),
                    Event::FocusGained => Message::Focus(true),
                    Event::FocusLost => Message::Focus(false),
                    // The size comes by its signal, and the mouse is the terminal's.
                    Event::Resize(..) | Event::Mouse(_) => return true,
                };
                tell(message, Moment::now())
            });
            // Told to stop, its end of the pair is closed; else there is nothing more to read.
            let told = woken.set_nonblocking(true).is_ok() && matches!((&woken).read(&mut [0]), Ok(0));
            if !told {
                gone();
            }
        };
        let thread = std::thread::Builder::new().name("holdpoint-keys".to_owned()).spawn(read)?;
        Ok(Self { wake: Some(wake), thread: Some(thread) })
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            // A reader that failed has nothing more to do.
            let _ = thread.join();
        }
    }
}
