//! The terminal of a program that prints lines and reads keys.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustix::termios::{InputModes, LocalModes, QueueSelector, SpecialCodeIndex, Termios, tcflush};
use tokio::sync::Notify;

use super::Input;
use super::modes::{Modes, lock};
use super::reader::{self, Reader};

/// The user's terminal. Clones share the same state.
#[derive(Clone)]
pub(crate) struct KeyTerminal {
    tty: Arc<OwnedFd>,
    modes: Arc<Mutex<Modes>>,
    continued: Arc<Notify>,
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
        Some(Self { tty: Arc::new(tty), modes: Arc::default(), continued: Arc::default() })
    }

    /// Whether this process is in the terminal's foreground, so that input is for it and not for
    /// the shell.
    pub(crate) fn is_in_foreground(&self) -> bool {
        reader::is_in_foreground(&self.tty)
    }

    /// Starts reading. `take` is called with each input and the time it was read. A background
    /// process is stopped until it is in the foreground.
    pub(crate) fn keys(
        &self,
        take: impl FnMut(Input, Instant) + Send + 'static,
    ) -> io::Result<Keys> {
        self.take_keys()?;
        // From here on, dropping `keys` restores the terminal.
        let mut keys = Keys { reader: None, terminal: self.clone() };
        keys.reader = Some(Reader::start(Arc::clone(&self.tty), take, || {})?);
        Ok(keys)
    }

    /// Restores the terminal for good, before the program exits. Callable from any thread.
    pub(crate) fn leave(&self) {
        let mut modes = lock(&self.modes);
        modes.close();
        self.restore(&mut modes);
    }

    /// Restores the terminal while `stop` suspends the process. The lock keeps other threads from
    /// taking the terminal meanwhile.
    pub(crate) fn suspend_with(&self, stop: impl FnOnce()) {
        let mut modes = lock(&self.modes);
        let was_taken = modes.is_changed();
        self.restore(&mut modes);
        stop();
        if was_taken && self.is_in_foreground() {
            // Fails only if the terminal is gone; then there are no keys to read.
            let _ = modes.change(&self.tty, key_by_key);
        }
    }

    /// Called when the process resumes, or when a stop key did not stop it. Takes the terminal
    /// again, because another program may have changed its modes, and wakes [`Self::wait_resumed`].
    pub(crate) fn handle_resume(&self) {
        let mut modes = lock(&self.modes);
        if modes.is_changed() && self.is_in_foreground() {
            // Fails only if the terminal is gone; then there are no keys to read.
            let _ = modes.change(&self.tty, key_by_key);
        }
        self.continued.notify_one();
    }

    /// Waits until the process resumes.
    pub(crate) async fn wait_resumed(&self) {
        self.continued.notified().await;
    }

    /// Whether the terminal delivers keys one by one now.
    pub(crate) fn is_taken(&self) -> bool {
        lock(&self.modes).is_changed()
    }

    /// Delivers keys one by one, without echo. Signal keys and output processing stay as they are.
    pub(crate) fn take_keys(&self) -> io::Result<()> {
        lock(&self.modes).change(&self.tty, key_by_key)
    }

    /// Restores the modes, unless the process is in the background: changing them would stop it.
    fn restore(&self, modes: &mut Modes) {
        if let Some(before) = modes.take()
            && self.is_in_foreground()
        {
            before.restore(&self.tty);
        }
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
        self.terminal.restore(&mut lock(&self.terminal.modes));
    }
}

/// Makes the terminal deliver keys one by one.
fn key_by_key(modes: &mut Termios) {
    modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN;
    // A signal key must not flush earlier input: the rest of a half-read sequence would be taken
    // for keys.
    modes.local_modes |= LocalModes::NOFLSH;
    modes.input_modes -= InputModes::ICRNL | InputModes::IXON;
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
}

#[cfg(test)]
mod tests {
    use portable_pty::{PtySize, native_pty_system};
    use rustix::fs::{Mode, OFlags};
    use rustix::termios::tcgetattr;

    use super::*;

    /// A thread that leaves the terminal can race with an ask that is about to be shown. The ask
    /// must not take the terminal again.
    #[test]
    fn m_b10_a_left_terminal_is_not_switched_to_key_mode_again() {
        let pair = native_pty_system().openpty(PtySize::default()).unwrap();
        let path = pair.master.tty_name().unwrap();
        let tty =
            Arc::new(rustix::fs::open(path, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap());
        let terminal = KeyTerminal { tty, modes: Arc::default(), continued: Arc::default() };
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
}
