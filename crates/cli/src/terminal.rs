//! Reads the terminal's input key by key, and restores the terminal's modes afterwards.

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

/// The user's terminal. Clones share the same state.
#[derive(Clone)]
pub(crate) struct KeyTerminal {
    tty: Arc<OwnedFd>,
    before: Arc<Mutex<SavedModes>>,
    continued: Arc<Notify>,
}

/// The terminal's modes before this process changed them.
#[derive(Default)]
struct SavedModes {
    /// The original modes, while keys are read one by one.
    modes: Option<Termios>,
    /// Set when the program leaves the terminal for good: it is never switched to key mode again.
    over: bool,
}

/// Reads input until it is dropped, then restores the terminal.
pub(crate) struct Keys {
    reader: Option<Reader>,
    terminal: KeyTerminal,
}

impl KeyTerminal {
    /// Finds the terminal on standard input, else the controlling terminal. Returns `None` in a
    /// pipe or a service.
    pub(crate) fn find() -> Option<Self> {
        let stdin = io::stdin();
        let tty = match stdin.is_terminal() {
            true => stdin.as_fd().try_clone_to_owned().ok()?,
            false => File::options().read(true).write(true).open("/dev/tty").ok()?.into(),
        };
        Some(Self { tty: Arc::new(tty), before: Arc::default(), continued: Arc::default() })
    }

    /// Whether this process is in the terminal's foreground, so that input is for it and not for
    /// the shell.
    pub(crate) fn is_in_foreground(&self) -> bool {
        reader::is_in_foreground(&self.tty)
    }

    /// Starts reading. `take` is called with each input and the time it was read. A background
    /// process is stopped until it is in the foreground.
    pub(crate) fn keys(&self, take: impl FnMut(Input, Instant) + Send + 'static) -> io::Result<Keys> {
        self.take_keys()?;
        // From here on, dropping `keys` restores the terminal.
        let mut keys = Keys { reader: None, terminal: self.clone() };
        keys.reader = Some(Reader::start(Arc::clone(&self.tty), take, || {})?);
        Ok(keys)
    }

    /// Restores the terminal for good, before the program exits. Callable from any thread.
    pub(crate) fn leave(&self) {
        let mut before = self.before();
        before.over = true;
        self.restore(&mut before);
    }

    /// Restores the terminal while `stop` suspends the process. The lock keeps other threads from
    /// taking the terminal meanwhile.
    pub(crate) fn suspended(&self, stop: impl FnOnce()) {
        let mut before = self.before();
        let was_taken = before.modes.is_some();
        self.restore(&mut before);
        stop();
        if was_taken && self.is_in_foreground() {
            // Fails only if the terminal is gone; then there are no keys to read.
            let _ = self.take(&mut before);
        }
    }

    /// Called when the process resumes, or when a stop key did not stop it. Takes the terminal
    /// again, because another program may have changed its modes, and wakes [`Self::wait_resumed`].
    pub(crate) fn resumed(&self) {
        let mut before = self.before();
        if before.modes.is_some() && self.is_in_foreground() {
            // Fails only if the terminal is gone; then there are no keys to read.
            let _ = self.take(&mut before);
        }
        self.continued.notify_one();
    }

    /// Waits until the process resumes.
    pub(crate) async fn wait_resumed(&self) {
        self.continued.notified().await;
    }

    /// Whether the terminal delivers keys one by one now.
    pub(crate) fn is_taken(&self) -> bool {
        self.before().modes.is_some()
    }

    /// Restores the modes, unless the process is in the background: changing them would stop it.
    fn restore(&self, before: &mut SavedModes) {
        if let Some(modes) = before.modes.take()
            && self.is_in_foreground()
        {
            // Fails only if the terminal is gone; then there is nothing to restore.
            let _ = tcsetattr(&*self.tty, OptionalActions::Now, &modes);
        }
    }

    /// Ignores poisoning: no critical section leaves the data inconsistent.
    fn before(&self) -> MutexGuard<'_, SavedModes> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers keys one by one, without echo. Signal keys and output processing stay as they are.
    pub(crate) fn take_keys(&self) -> io::Result<()> {
        self.take(&mut self.before())
    }

    fn take(&self, before: &mut SavedModes) -> io::Result<()> {
        if before.over {
            return Ok(());
        }
        let now = tcgetattr(&*self.tty)?;
        let mut raw = now.clone();
        raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN;
        // A signal key must not flush earlier input: the rest of a half-read sequence would be
        // taken for keys.
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
        // Discards keys that were pressed for this program. In the background, all input is the
        // shell's.
        if self.terminal.is_in_foreground() {
            let _ = tcflush(&*self.terminal.tty, QueueSelector::IFlush);
        }
        self.terminal.restore(&mut self.terminal.before());
    }
}

/// Converts a key event to a key of a form.
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

/// Reads all of standard input as text. Longer input is cut a little above `most` bytes, so the
/// caller's length check still rejects it.
pub(crate) fn read_stdin(most: usize) -> io::Result<String> {
    read_text(io::stdin().lock(), most)
}

fn read_text(from: impl Read, most: usize) -> io::Result<String> {
    let mut bytes = Vec::new();
    // Room for one more character.
    from.take(most as u64 + 4).read_to_end(&mut bytes)?;
    let cut = match std::str::from_utf8(&bytes) {
        // Reading stopped in the middle of the last character.
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

    /// A thread that leaves the terminal can race with an ask that is about to be shown. The ask
    /// must not take the terminal again.
    #[test]
    fn m_b10_a_left_terminal_is_not_switched_to_key_mode_again() {
        let pair = native_pty_system().openpty(PtySize::default()).unwrap();
        let path = pair.master.tty_name().unwrap();
        let tty = Arc::new(rustix::fs::open(path, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap());
        let terminal = KeyTerminal { tty, before: Arc::default(), continued: Arc::default() };
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
    fn cutting_long_input_keeps_it_over_the_limit() {
        for text in ["a", "é", "漢", "🦀"].map(|character| character.repeat(100)) {
            for most in 0..text.len() {
                let read = read_text(text.as_bytes(), most).unwrap();
                assert!(read.len() > most && text.starts_with(&read), "{most} of {text}");
            }
            assert_eq!(read_text(text.as_bytes(), text.len()).unwrap(), text);
        }
        // Text that ends in the middle of a character is invalid.
        assert!(read_text(&"漢".as_bytes()[..2], 100).is_err());
        assert!(read_text(&[0xff; 200][..], 100).is_err());
    }
}
