//! The terminal as a screen: entered, left, and left as it was found whatever ends the program.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use crossterm::Command;
use crossterm::cursor::{Hide, SetCursorStyle, Show};
use crossterm::event::{DisableBracketedPaste, DisableFocusChange, EnableBracketedPaste, EnableFocusChange};
use crossterm::style::ResetColor;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// How long whoever leaves in a hurry waits for a frame that is being written.
const PATIENCE: Duration = Duration::from_millis(200);

/// Keeps the terminal's title for later, and brings it back.
const PUSH_TITLE: &str = "\x1b[22;2t";
const POP_TITLE: &str = "\x1b[23;2t";

/// What stands between these is shown at once.
const BEGIN_FRAME: &[u8] = b"\x1b[?2026h";
const END_FRAME: &[u8] = b"\x1b[?2026l";

/// The screen. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Terminal(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    tty: File,
    /// How the terminal was, while it is ours.
    before: Option<Termios>,
    /// It is not to be entered any more.
    over: bool,
}

impl Terminal {
    /// The terminal behind this.
    pub(crate) fn new(tty: OwnedFd) -> Self {
        Self(Arc::new(Mutex::new(Inner { tty: tty.into(), before: None, over: false })))
    }

    /// Takes the screen: every key comes as it is pressed, and what is written stands where it is put.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn enter(&self) -> io::Result<()> {
        let mut inner = self.lock();
        if inner.over {
            return Ok(());
        }
        let now = tcgetattr(&inner.tty)?;
        let mut raw = now.clone();
        raw.make_raw();
        tcsetattr(&inner.tty, OptionalActions::Now, &raw)?;
        inner.before.get_or_insert(now);
        let mut codes = PUSH_TITLE.to_owned();
        for command in [&EnterAlternateScreen as &dyn Ansi, &Hide, &EnableBracketedPaste, &EnableFocusChange] {
            command.put(&mut codes);
        }
        inner.tty.write_all(codes.as_bytes())
    }

    /// Takes it again, if it was taken: whoever had it meanwhile may have changed it.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn enter_again(&self) -> io::Result<()> {
        let is_ours = self.lock().before.is_some();
        if is_ours { self.enter() } else { Ok(()) }
    }

    /// Gives the screen back, stops all that was started with us, as the terminal would, and takes the screen again
    /// when we go on.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn suspend(&self) -> io::Result<()> {
        self.leave();
        // The kernel picks the thread that asks, if it is the first one, which it is: this returns when we go on.
        let stopped = kill_current_process_group(Signal::TSTP);
        self.enter()?;
        stopped.map_err(Into::into)
    }

    /// Gives the screen back as it was. Does nothing where it is not ours.
    pub(crate) fn leave(&self) {
        let mut inner = self.lock();
        inner.leave();
    }

    /// The same, for good, also where a frame can't be written: for whoever ends the program.
    pub(crate) fn leave_for_good(&self) {
        let by = Instant::now() + PATIENCE;
        let mut inner = loop {
            match self.0.try_lock() {
                Ok(inner) => break inner,
                Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
                // Nobody reads what is written; then there is nobody to whom the screen would be given back.
                Err(TryLockError::WouldBlock) if Instant::now() > by => return,
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        inner.over = true;
        inner.leave();
    }

    /// Writes what is no part of a frame, for example the title.
    pub(crate) fn say(&self, codes: &str) -> io::Result<()> {
        let mut inner = self.lock();
        inner.write(codes.as_bytes())
    }

    /// What a panic does, in whichever thread: the terminal is given back before it is told, and the program ends.
    pub(crate) fn leave_on_panic(&self) {
        let terminal = self.clone();
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            terminal.leave_for_good();
            tell(panic);
            std::process::exit(101);
        }));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn leave(&mut self) {
        let Some(before) = self.before.take() else { return };
        let mut codes = String::new();
        let commands: [&dyn Ansi; 6] = [
            &DisableFocusChange,
            &DisableBracketedPaste,
            &ResetColor,
            &SetCursorStyle::DefaultUserShape,
            &LeaveAlternateScreen,
            &Show,
        ];
        commands.into_iter().for_each(|command| command.put(&mut codes));
        codes.push_str(POP_TITLE);
        // The terminal may be gone; then there is nothing to give back.
        let _ = self.tty.write_all(codes.as_bytes());
        let _ = tcsetattr(&self.tty, OptionalActions::Now, &before);
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        // A frame that comes too late would be written over the shell's.
        if self.before.is_none() {
            return Ok(());
        }
        self.tty.write_all(bytes)
    }
}

/// Frames are written through this, each in one piece.
#[derive(Debug)]
pub(crate) struct Frames {
    terminal: Terminal,
    frame: Vec<u8>,
}

impl Frames {
    pub(crate) fn new(terminal: Terminal) -> Self {
        Self { terminal, frame: Vec::with_capacity(16 * 1024) }
    }
}

impl Write for Frames {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.frame.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.frame.is_empty() {
            return Ok(());
        }
        // Shown as one, by terminals that can.
        self.frame.splice(0..0, BEGIN_FRAME.iter().copied());
        self.frame.extend_from_slice(END_FRAME);
        let written = self.terminal.lock().write(&self.frame);
        self.frame.clear();
        written
    }
}

/// A command of crossterm, as what it writes.
trait Ansi {
    fn put(&self, codes: &mut String);
}

impl<C: Command> Ansi for C {
    fn put(&self, codes: &mut String) {
        // Writing to a string does not fail.
        let _ = self.write_ansi(codes);
    }
}
