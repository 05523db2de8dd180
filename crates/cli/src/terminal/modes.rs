//! The modes of the terminal: changed while this program has it, and restored however the program
//! ends.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::termios::{
    InputModes, LocalModes, OptionalActions, OutputModes, Termios, tcgetattr, tcsetattr,
};

/// The modes of a terminal before this process changed them.
#[derive(Debug, Default)]
pub(super) struct Modes {
    /// The original modes, while they are changed.
    before: Option<Termios>,
    /// Whether the program has left the terminal for good: its modes are never changed again.
    is_closed: bool,
}

impl Modes {
    /// Changes the modes, if the program has not left the terminal for good. Later changes
    /// keep the modes from before the first one, because another program may have changed them in
    /// between.
    ///
    /// # Errors
    /// Fails if the terminal is gone.
    pub(super) fn change(
        &mut self,
        tty: impl AsFd,
        change: impl FnOnce(&mut Termios),
    ) -> io::Result<()> {
        if self.is_closed {
            return Ok(());
        }
        let now = tcgetattr(&tty)?;
        let mut changed = now.clone();
        change(&mut changed);
        tcsetattr(&tty, OptionalActions::Now, &changed)?;
        self.before.get_or_insert_with(|| line_mode(now));
        Ok(())
    }

    /// Whether the modes are changed.
    pub(super) fn is_changed(&self) -> bool {
        self.before.is_some()
    }

    /// Whether the program has left the terminal for good.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Prevents any later change.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
    }

    /// The original modes, which the caller restores; `None` if they are not changed.
    pub(super) fn take(&mut self) -> Option<OriginalModes> {
        self.before.take().map(OriginalModes)
    }
}

/// Modes to restore.
#[must_use]
pub(super) struct OriginalModes(Termios);

impl OriginalModes {
    pub(super) fn restore(self, tty: impl AsFd) {
        // Fails only if the terminal is gone; then there is nothing to restore.
        let _ = tcsetattr(tty, OptionalActions::Now, &self.0);
    }
}

/// The modes to restore later. A program that was killed may have left the terminal without line
/// mode and echo, so they are turned on again.
fn line_mode(mut found: Termios) -> Termios {
    if !found.local_modes.contains(LocalModes::ICANON) {
        found.input_modes |= InputModes::ICRNL | InputModes::IXON;
        found.output_modes |= OutputModes::OPOST;
        found.local_modes |=
            LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
    }
    found
}

/// Ignores poisoning: no critical section leaves the data inconsistent.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
