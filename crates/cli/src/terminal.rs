//! The terminal's keys, read one by one while an ask is open, and the terminal as it was before.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcsetattr,
};
use unicode_segmentation::UnicodeSegmentation;

/// How long one look for an event takes: in no time, crossterm finds none.
///
/// Its feature `use-dev-tty` matters: the other way of reading waits for edges, and loses the one of a key that comes with a
/// change of the size.
const LOOK: Duration = Duration::from_millis(1);
/// Looks after which there is no event.
const LOOKS: usize = 3;

/// The terminal that the user sits at. Clones are the same.
#[derive(Clone)]
pub(crate) struct Terminal {
    tty: Arc<OwnedFd>,
    before: Arc<Mutex<Before>>,
}

/// What is known of how it was.
#[derive(Default)]
struct Before {
    /// How it was before keys were read one by one, while they are.
    modes: Option<Termios>,
    /// It is not to be taken any more.
    over: bool,
}

/// A key, as far as anything here listens to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Enter,
    Esc,
    Backspace,
    /// With no other modifier than Shift.
    Char(char),
    /// With Ctrl alone.
    Ctrl(char),
}

/// Takes back the last character that was typed: what a person sees as one may be made of several code points. Whether
/// there was one.
pub(crate) fn take_back(typed: &mut String) -> bool {
    let last = typed.graphemes(true).next_back().map(str::len);
    typed.truncate(typed.len() - last.unwrap_or_default());
    last.is_some()
}

/// Reads keys until it is dropped, which also puts the terminal back.
pub(crate) struct Keys {
    /// Its end wakes the thread.
    wake: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    terminal: Terminal,
}

impl Terminal {
    /// The terminal on standard input, else the one that controls this process; none in a pipe or a service.
    pub(crate) fn find() -> Option<Self> {
        let stdin = io::stdin();
        let tty = match stdin.is_terminal() {
            true => stdin.as_fd().try_clone_to_owned().ok()?,
            false => File::options().read(true).write(true).open("/dev/tty").ok()?.into(),
        };
        Some(Self { tty: Arc::new(tty), before: Arc::default() })
    }

    /// Begins to read keys: each is told as it is read, with the moment of it.
    pub(crate) fn keys(&self, mut tell: impl FnMut(Key, Instant) + Send + 'static) -> io::Result<Keys> {
        let (wake, woken) = UnixStream::pair()?;
        self.take_keys()?;
        // From here on the terminal is put back whatever happens.
        let mut keys = Keys { wake: Some(wake), thread: None, terminal: self.clone() };
        let tty = Arc::clone(&self.tty);
        let thread = std::thread::Builder::new().name("holdpoint-keys".to_owned()).spawn(move || {
            // A terminal that is gone has no more keys.
            let _ = read_events(&tty, &woken, |event| {
                if let Some(key) = key(&event) {
                    tell(key, Instant::now());
                }
                true
            });
        })?;
        keys.thread = Some(thread);
        Ok(keys)
    }

    /// Restores the terminal for good, before the program exits. Callable from any thread.
    pub(crate) fn leave(&self) {
        let mut before = self.before();
        before.over = true;
        self.put_back(&mut before);
    }

    fn put_back(&self, before: &mut Before) {
        if let Some(modes) = before.modes.take() {
            // The terminal may be gone; then there is nothing to put back.
            let _ = tcsetattr(&*self.tty, OptionalActions::Now, &modes);
        }
    }

    /// Nothing is left half done under this lock.
    fn before(&self) -> MutexGuard<'_, Before> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keys come one by one, unechoed, Ctrl+C among them; what is written looks as ever.
    fn take_keys(&self) -> io::Result<()> {
        let mut before = self.before();
        if before.over {
            return Ok(());
        }
        let now = tcgetattr(&*self.tty)?;
        let mut raw = now.clone();
        raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
        raw.input_modes -= InputModes::ICRNL | InputModes::IXON;
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&*self.tty, OptionalActions::Now, &raw)?;
        before.modes.get_or_insert(now);
        Ok(())
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            // A reader that failed has nothing more to do.
            let _ = thread.join();
        }
        // What was typed at the ask and not read yet was not meant for the shell.
        let _ = tcflush(&*self.terminal.tty, QueueSelector::IFlush);
        self.terminal.put_back(&mut self.terminal.before());
    }
}

/// Calls `tell` with each event as it is read, until `tell` returns false, the other end of `woken` closes, or the terminal
/// is gone.
pub(crate) fn read_events(tty: &OwnedFd, woken: &UnixStream, mut tell: impl FnMut(Event) -> bool) -> io::Result<()> {
    while readable(tty, woken)? {
        while is_there(|| event::poll(LOOK)) {
            if !tell(event::read()?) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Whether there is an event.
///
/// crossterm reads 1 KiB at a time and buffers the events in it, but checks the timeout before it checks the buffer: it
/// finds no event if the thread is suspended for a whole timeout. The terminal has no more input then, and nothing would
/// wake the thread for the buffered events: so one look is not enough.
fn is_there(mut look: impl FnMut() -> io::Result<bool>) -> bool {
    (0..LOOKS).any(|_| matches!(look(), Ok(true)))
}

/// Waits for a key: true if there may be one, false if it is time to stop.
fn readable(tty: &OwnedFd, woken: &UnixStream) -> io::Result<bool> {
    loop {
        let mut fds = [PollFd::new(tty, PollFlags::IN), PollFd::new(woken, PollFlags::IN)];
        match poll(&mut fds, None) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => {
                let gone = fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
                return Ok(!gone && fds[1].revents().is_empty());
            }
        }
    }
}

fn key(event: &Event) -> Option<Key> {
    let Event::Key(key) = event else { return None };
    Key::of(key)
}

impl Key {
    /// The key that was pressed, if it is one of these.
    pub(crate) fn of(key: &KeyEvent) -> Option<Self> {
        if key.kind != KeyEventKind::Press {
            return None;
        }
        let shift_at_most = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
        match key.code {
            KeyCode::Enter if key.modifiers.is_empty() => Some(Self::Enter),
            KeyCode::Esc => Some(Self::Esc),
            KeyCode::Backspace => Some(Self::Backspace),
            KeyCode::Char(character) if shift_at_most => Some(Self::Char(character)),
            KeyCode::Char(character) if key.modifiers == KeyModifiers::CONTROL => Some(Self::Ctrl(character)),
            _ => None,
        }
    }
}

/// All of standard input as text, or so much more than `most` bytes that whoever judges the length sees that there was
/// more.
pub(crate) fn read_stdin(most: usize) -> io::Result<String> {
    read_text(io::stdin().lock(), most)
}

fn read_text(from: impl Read, most: usize) -> io::Result<String> {
    let mut bytes = Vec::new();
    // A character more.
    from.take(most as u64 + 4).read_to_end(&mut bytes)?;
    let cut = match std::str::from_utf8(&bytes) {
        // The last one was split here.
        Err(error) if error.error_len().is_none() && error.valid_up_to() > most => error.valid_up_to(),
        _ => bytes.len(),
    };
    bytes.truncate(cut);
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use portable_pty::{PtySize, native_pty_system};
    use rustix::fs::{Mode, OFlags};

    use super::*;

    #[test]
    fn an_event_that_a_look_misses_is_found_by_the_next() {
        for (looks, found) in [(&[true][..], true), (&[false, false, true], true), (&[false, false, false], false)] {
            let mut looks = looks.iter();
            assert_eq!(is_there(|| Ok(*looks.next().unwrap())), found);
            assert_eq!(looks.len(), 0);
        }
    }

    /// Whoever leaves puts the terminal back while an ask is about to be shown: that takes it no more.
    #[test]
    fn m_b10_a_terminal_that_is_left_is_not_taken_again() {
        let pair = native_pty_system().openpty(PtySize::default()).unwrap();
        let path = pair.master.tty_name().unwrap();
        let tty = Arc::new(rustix::fs::open(path, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap());
        let terminal = Terminal { tty, before: Arc::default() };
        let modes = || format!("{:?}", tcgetattr(&*terminal.tty).unwrap());
        let before = modes();
        let first = terminal.keys(|_, _| {}).unwrap();
        assert_ne!(modes(), before);
        terminal.leave();
        let second = terminal.keys(|_, _| {}).unwrap();
        assert_eq!(modes(), before);
        drop((first, second));
        assert_eq!(modes(), before);
    }

    #[test]
    fn a_text_that_is_too_long_is_so_wherever_its_characters_are_split() {
        for text in ["a", "é", "漢", "🦀"].map(|character| character.repeat(100)) {
            for most in 0..text.len() {
                let read = read_text(text.as_bytes(), most).unwrap();
                assert!(read.len() > most && text.starts_with(&read), "{most} of {text}");
            }
            assert_eq!(read_text(text.as_bytes(), text.len()).unwrap(), text);
        }
        // What ends in the middle of a character is no text.
        assert!(read_text(&"漢".as_bytes()[..2], 100).is_err());
        assert!(read_text(&[0xff; 200][..], 100).is_err());
    }
}
