//! The terminal: its input, and the terminal as it was before it was read key by key.

mod decode;
mod reader;

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use holdpoint_session::form;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcsetattr,
};
use tokio::sync::Notify;

pub(crate) use self::decode::Input;
pub(crate) use self::reader::Reader;

/// The terminal that the user sits at. Clones are the same.
#[derive(Clone)]
pub(crate) struct Terminal {
    tty: Arc<OwnedFd>,
    before: Arc<Mutex<Before>>,
    continued: Arc<Notify>,
}

/// What is known of how it was.
#[derive(Default)]
struct Before {
    /// How it was before keys were read one by one, while they are.
    modes: Option<Termios>,
    /// It is not to be taken any more.
    over: bool,
}

/// Reads input until it is dropped, which also puts the terminal back.
pub(crate) struct Keys {
    reader: Option<Reader>,
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
        Some(Self { tty: Arc::new(tty), before: Arc::default(), continued: Arc::default() })
    }

    /// Whether its input is meant for this process, and not for the shell that has put it into the background.
    pub(crate) fn is_in_foreground(&self) -> bool {
        reader::is_in_foreground(&self.tty)
    }

    /// Begins to read: `take` is called with each input and when it was read. A process in the background is stopped
    /// until it is in the foreground.
    pub(crate) fn keys(&self, take: impl FnMut(Input, Instant) + Send + 'static) -> io::Result<Keys> {
        self.take_keys()?;
        // From here on the terminal is put back whatever happens.
        let mut keys = Keys { reader: None, terminal: self.clone() };
        keys.reader = Some(Reader::start(Arc::clone(&self.tty), take, || {})?);
        Ok(keys)
    }

    /// Restores the terminal for good, before the program exits. Callable from any thread.
    pub(crate) fn leave(&self) {
        let mut before = self.before();
        before.over = true;
        self.put_back(&mut before);
    }

    /// Restores the terminal for as long as the process is stopped by this. Nothing takes it meanwhile.
    pub(crate) fn suspended(&self, stop: impl FnOnce()) {
        let mut before = self.before();
        let was_taken = before.modes.is_some();
        self.put_back(&mut before);
        stop();
        if was_taken && self.is_in_foreground() {
            // A terminal that has gone meanwhile has no keys.
            let _ = self.take(&mut before);
        }
    }

    /// The process goes on, or a key that stops it has not: [`Self::continues`] ends. Another program may have
    /// changed the terminal meanwhile.
    pub(crate) fn goes_on(&self) {
        let mut before = self.before();
        if before.modes.is_some() && self.is_in_foreground() {
            // A terminal that has gone meanwhile has no keys.
            let _ = self.take(&mut before);
        }
        self.continued.notify_one();
    }

    /// Waits until the process goes on.
    pub(crate) async fn continues(&self) {
        self.continued.notified().await;
    }

    /// Whether keys are read one by one now.
    pub(crate) fn is_taken(&self) -> bool {
        self.before().modes.is_some()
    }

    /// A process in the background leaves the modes to the one that has the terminal: to change them would stop it.
    fn put_back(&self, before: &mut Before) {
        if let Some(modes) = before.modes.take()
            && self.is_in_foreground()
        {
            // The terminal may be gone; then there is nothing to put back.
            let _ = tcsetattr(&*self.tty, OptionalActions::Now, &modes);
        }
    }

    /// Nothing is left half done under this lock.
    fn before(&self) -> MutexGuard<'_, Before> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keys are read one by one and not echoed. Those that send signals still do; the output looks as ever.
    pub(crate) fn take_keys(&self) -> io::Result<()> {
        self.take(&mut self.before())
    }

    fn take(&self, before: &mut Before) -> io::Result<()> {
        if before.over {
            return Ok(());
        }
        let now = tcgetattr(&*self.tty)?;
        let mut raw = now.clone();
        raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN;
        // A key that sends a signal drops nothing that came before it: half a sequence would make its rest keys.
        raw.local_modes |= LocalModes::NOFLSH;
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
        self.reader = None;
        // Keys pressed for this program are not left to the shell; in the background, all input is the shell's.
        if self.terminal.is_in_foreground() {
            let _ = tcflush(&*self.terminal.tty, QueueSelector::IFlush);
        }
        self.terminal.put_back(&mut self.terminal.before());
    }
}

/// A key as forms know it.
pub(crate) fn form_key(key: &KeyEvent) -> form::Key {
    let shift_at_most = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
    match key.code {
        KeyCode::Esc => form::Key::Esc,
        KeyCode::Char(character) if shift_at_most => form::Key::Char(character),
        KeyCode::Char(character) if key.modifiers == KeyModifiers::CONTROL => form::Key::Ctrl(character),
        KeyCode::BackTab if shift_at_most => form::Key::BackTab,
        _ if !key.modifiers.is_empty() => form::Key::Other,
        KeyCode::Enter => form::Key::Enter,
        KeyCode::Tab => form::Key::Tab,
        KeyCode::Left => form::Key::Left,
        KeyCode::Right => form::Key::Right,
        KeyCode::Home => form::Key::Home,
        KeyCode::End => form::Key::End,
        KeyCode::Backspace => form::Key::Backspace,
        KeyCode::Delete => form::Key::Delete,
        _ => form::Key::Other,
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

    /// Whoever leaves puts the terminal back while an ask is about to be shown: that takes it no more.
    #[test]
    fn m_b10_a_terminal_that_is_left_is_not_taken_again() {
        let pair = native_pty_system().openpty(PtySize::default()).unwrap();
        let path = pair.master.tty_name().unwrap();
        let tty = Arc::new(rustix::fs::open(path, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap());
        let terminal = Terminal { tty, before: Arc::default(), continued: Arc::default() };
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
