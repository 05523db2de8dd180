//! The terminal as a full screen: entering it, leaving it, and restoring it however the program
//! ends.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};

use crossterm::Command;
use crossterm::cursor::{Hide, SetCursorStyle, Show};
use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, EnableBracketedPaste, EnableFocusChange,
};
use crossterm::style::ResetColor;
use crossterm::terminal::{Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::Termios;

use super::modes::{Modes, lock};

/// How long [`ScreenTerminal::leave_for_good`] waits for a frame that is being written.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(200);

/// How long signals from another program's keys may still arrive after that program has returned
/// the terminal.
const LATE_SIGNALS: Duration = Duration::from_secs(1);

/// Save and restore the terminal's title.
const PUSH_TITLE: &str = "\x1b[22;2t";
const POP_TITLE: &str = "\x1b[23;2t";

/// Make the terminal distinguish Shift+Enter from Enter, by kitty's protocol and by xterm's
/// `modifyOtherKeys`. Terminals ignore the one that they do not know.
const REPORT_MODIFIERS: &str = "\x1b[>5u\x1b[>4;1m";
const NO_MODIFIERS: &str = "\x1b[>4m\x1b[<u";

/// The start and end of a synchronized update, which is shown in one step.
const BEGIN_FRAME: &[u8] = b"\x1b[?2026h";
const END_FRAME: &[u8] = b"\x1b[?2026l";

/// The screen's terminal. Clones share the same state.
#[derive(Debug, Clone)]
pub(crate) struct ScreenTerminal(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    tty: File,
    /// Held while bytes are written to the terminal.
    writing: Mutex<()>,
    /// The modes of the terminal, changed from `enter` to `leave`.
    modes: Mutex<Modes>,
    lent: Mutex<Lent>,
}

/// Whether another program has the terminal. Signals from its keys reach this process, too.
#[derive(Debug, Default)]
enum Lent {
    #[default]
    Never,
    Now,
    /// The terminal was lent until this moment.
    Until(Instant),
}

impl ScreenTerminal {
    pub(crate) fn new(tty: OwnedFd) -> Self {
        let shared = Shared {
            tty: tty.into(),
            writing: Mutex::default(),
            modes: Mutex::default(),
            lent: Mutex::default(),
        };
        Self(Arc::new(shared))
    }

    /// Enters the screen: the alternate buffer and raw mode, so that keys arrive one by one.
    ///
    /// # Errors
    /// Fails if the terminal is gone.
    pub(crate) fn enter(&self) -> io::Result<()> {
        let _writing = lock(&self.0.writing);
        let first = {
            let mut modes = lock(&self.0.modes);
            if modes.is_closed() {
                return Ok(());
            }
            let first = !modes.is_changed();
            modes.change(&self.0.tty, Termios::make_raw)?;
            first
        };
        let mut codes = String::new();
        if first {
            codes.push_str(PUSH_TITLE);
        }
        // A screen that was killed may have left its frame in the alternate buffer.
        let clear = &Clear(ClearType::All);
        for command in [
            &EnterAlternateScreen as &dyn Ansi,
            clear,
            &Hide,
            &EnableBracketedPaste,
            &EnableFocusChange,
        ] {
            command.put(&mut codes);
        }
        if first && reports_modifiers() {
            codes.push_str(REPORT_MODIFIERS);
        }
        (&self.0.tty).write_all(codes.as_bytes())
    }

    /// Enters again, if the screen is entered: another program may have changed the terminal.
    ///
    /// # Errors
    /// Fails if the terminal is gone.
    pub(crate) fn enter_again(&self) -> io::Result<()> {
        let is_ours = lock(&self.0.modes).is_changed();
        if is_ours { self.enter() } else { Ok(()) }
    }

    /// Leaves the screen while `borrower` runs, then enters it again.
    ///
    /// # Errors
    /// Fails if the terminal is gone.
    pub(crate) fn lend<T>(&self, borrower: impl FnOnce() -> T) -> io::Result<T> {
        *lock(&self.0.lent) = Lent::Now;
        self.leave();
        let done = borrower();
        *lock(&self.0.lent) = Lent::Until(Instant::now());
        self.enter().map(|()| done)
    }

    /// Whether a signal from a key is for the program that has, or just had, the terminal: Ctrl+C
    /// in an editor is the editor's.
    pub(crate) fn ignores_key_signals(&self) -> bool {
        match *lock(&self.0.lent) {
            Lent::Never => false,
            Lent::Now => true,
            Lent::Until(then) => then.elapsed() < LATE_SIGNALS,
        }
    }

    /// Leaves the screen, stops this process group as Ctrl+Z does in a terminal, and enters the
    /// screen again when the process resumes.
    ///
    /// # Errors
    /// Fails if the terminal is gone.
    pub(crate) fn suspend(&self) -> io::Result<()> {
        self.leave();
        // This runs on the main thread, to which the kernel delivers the signal first, so the call
        // returns only after the process resumes.
        let stopped = kill_current_process_group(Signal::TSTP);
        self.enter()?;
        stopped.map_err(Into::into)
    }

    /// Leaves the screen and restores the terminal. Does nothing if the screen is not entered.
    pub(crate) fn leave(&self) {
        let _writing = lock(&self.0.writing);
        self.restore(true);
    }

    /// Leaves for good, before the program ends. If a frame is stuck because the terminal is not
    /// being read, only the modes are restored.
    pub(crate) fn leave_for_good(&self) {
        lock(&self.0.modes).close();
        let deadline = Instant::now() + LEAVE_TIMEOUT;
        loop {
            match self.0.writing.try_lock() {
                Ok(_writing) => return self.restore(true),
                Err(TryLockError::Poisoned(_)) => return self.restore(true),
                Err(TryLockError::WouldBlock) if Instant::now() > deadline => {
                    return self.restore(false);
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// Restores the modes and, if `write`, the screen.
    fn restore(&self, write: bool) {
        let Some(before) = lock(&self.0.modes).take() else { return };
        let mut codes = String::new();
        let commands: [&dyn Ansi; 6] = [
            &DisableFocusChange,
            &DisableBracketedPaste,
            &ResetColor,
            &SetCursorStyle::DefaultUserShape,
            &LeaveAlternateScreen,
            &Show,
        ];
        if reports_modifiers() {
            codes.push_str(NO_MODIFIERS);
        }
        commands.into_iter().for_each(|command| command.put(&mut codes));
        codes.push_str(POP_TITLE);
        // Fails only if the terminal is gone; then there is nothing to restore.
        if write {
            let _ = (&self.0.tty).write_all(codes.as_bytes());
        }
        before.restore(&self.0.tty);
    }

    /// Writes codes outside of a frame, for example the title.
    pub(crate) fn write_codes(&self, codes: &str) -> io::Result<()> {
        self.write(codes.as_bytes())
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let _writing = lock(&self.0.writing);
        // A frame after leaving would overwrite the shell's output.
        if !lock(&self.0.modes).is_changed() {
            return Ok(());
        }
        (&self.0.tty).write_all(bytes)
    }

    /// Installs a panic hook for all threads. It restores the terminal, prints the panic and exits.
    pub(crate) fn leave_on_panic(&self) {
        let terminal = self.clone();
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            terminal.leave_for_good();
            previous(panic);
            std::process::exit(101);
        }));
    }
}

/// Whether the terminal may be sent [`REPORT_MODIFIERS`]: the Linux console would take it for
/// colours.
fn reports_modifiers() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term != "linux")
}

/// Collects a frame's bytes until it is complete. The cursor is positioned last and would visibly
/// jump otherwise. Clones share the same buffer.
#[derive(Debug, Clone)]
pub(crate) struct Frames {
    terminal: ScreenTerminal,
    frame: Arc<Mutex<Vec<u8>>>,
}

impl Frames {
    pub(crate) fn new(terminal: ScreenTerminal) -> Self {
        Self { terminal, frame: Arc::new(Mutex::new(Vec::with_capacity(16 * 1024))) }
    }

    /// Writes the collected frame in one piece.
    ///
    /// # Errors
    /// Fails if the terminal is gone.
    pub(crate) fn show(&self) -> io::Result<()> {
        let mut frame = lock(&self.frame);
        if frame.is_empty() {
            return Ok(());
        }
        // A synchronized update, on terminals that support it.
        frame.splice(0..0, BEGIN_FRAME.iter().copied());
        frame.extend_from_slice(END_FRAME);
        let written = self.terminal.write(&frame);
        frame.clear();
        written
    }
}

impl Write for Frames {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.frame).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A crossterm command that writes its codes to a string.
trait Ansi {
    fn put(&self, codes: &mut String);
}

impl<C: Command> Ansi for C {
    fn put(&self, codes: &mut String) {
        // Writing to a string does not fail.
        let _ = self.write_ansi(codes);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use holdpoint_tools::testing::{again, part, rounds};
    use portable_pty::CommandBuilder;

    use super::*;
    use crate::tty::Tty;

    /// Where the program panics: on the thread of the test, on another one, in a task, in a
    /// blocking task, or while a frame is being written.
    const CASES: [&str; 5] = ["main", "plain", "task", "blocking", "frame"];

    /// Enters the screen and panics, in a process of its own with its own terminal.
    fn panic_in(thread: &str) -> ! {
        let terminal = ScreenTerminal::new(io::stdout().as_fd().try_clone_to_owned().unwrap());
        terminal.leave_on_panic();
        terminal.enter().unwrap();
        terminal.write_codes("taken").unwrap();
        let fail = || panic!("on purpose");
        let runtime = crate::runtime::runtime().unwrap();
        match thread {
            "main" => fail(),
            "plain" => _ = std::thread::spawn(fail).join(),
            "task" => _ = runtime.block_on(async { tokio::spawn(async move { fail() }).await }),
            "blocking" => _ = runtime.block_on(async { tokio::task::spawn_blocking(fail).await }),
            _ => {
                // While a frame is being written.
                let _frame = lock(&terminal.0.writing);
                fail();
            }
        }
        std::process::exit(0);
    }

    #[test]
    fn t_y1_a_panic_in_any_thread_restores_the_terminal() {
        if let Some(thread) = part() {
            panic_in(&thread);
        }
        let rounds = rounds(1, 100);
        for thread in CASES.iter().cycle().take(CASES.len() * rounds) {
            let other = again(thread);
            let mut program = CommandBuilder::new(other.get_program());
            program.args(other.get_args());
            other
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?)))
                .for_each(|(n, v)| program.env(n, v));
            program.env("RUST_BACKTRACE", "0");
            let mut tty = Tty::spawn(program);
            if *thread == "frame" {
                // The blocked frame prevents any output, but the program still ends.
                assert_eq!(tty.wait().exit_code(), 101, "{thread}");
                tty.assert_modes_restored();
                continue;
            }
            tty.end(101);
            tty.wait_for("on purpose");
        }
    }
}
