//! The terminal as a screen: entered, left, and left as it was found whatever ends the program.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use crossterm::Command;
use crossterm::cursor::{Hide, SetCursorStyle, Show};
use crossterm::event::{DisableBracketedPaste, DisableFocusChange, EnableBracketedPaste, EnableFocusChange};
use crossterm::style::ResetColor;
use crossterm::terminal::{Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{InputModes, LocalModes, OptionalActions, OutputModes, Termios, tcgetattr, tcsetattr};

/// How long whoever leaves in a hurry waits for a frame that is being written.
const PATIENCE: Duration = Duration::from_millis(200);

/// How long after it was lent signals of its keys may still come: they were sent before.
const LENT: Duration = Duration::from_secs(1);

/// Keeps the terminal's title for later, and brings it back.
const PUSH_TITLE: &str = "\x1b[22;2t";
const POP_TITLE: &str = "\x1b[23;2t";

/// Has terminals tell Enter from Shift+Enter: by kitty's protocol, by xterm's `modifyOtherKeys`. Terminals ignore the one that
/// they do not know.
const REPORT_MODIFIERS: &str = "\x1b[>5u\x1b[>4;1m";
const NO_MODIFIERS: &str = "\x1b[>4m\x1b[<u";

/// What stands between these is shown at once.
const BEGIN_FRAME: &[u8] = b"\x1b[?2026h";
const END_FRAME: &[u8] = b"\x1b[?2026l";

/// The screen. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Terminal(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    tty: File,
    /// Held by whoever writes, for as long as the terminal takes it.
    writing: Mutex<()>,
    /// How the terminal was, while it is ours.
    before: Mutex<Option<Termios>>,
    /// It is not to be entered any more.
    over: AtomicBool,
    lent: Mutex<Lent>,
}

/// Whether somebody else has it, who is sent the signals of its keys with us.
#[derive(Debug, Default)]
enum Lent {
    #[default]
    Never,
    Now,
    /// It was, up to then.
    Until(Instant),
}

impl Terminal {
    /// The terminal behind this.
    pub(crate) fn new(tty: OwnedFd) -> Self {
        let shared = Shared {
            tty: tty.into(),
            writing: Mutex::default(),
            before: Mutex::default(),
            over: AtomicBool::default(),
            lent: Mutex::default(),
        };
        Self(Arc::new(shared))
    }

    /// Takes the screen: every key comes as it is pressed, and what is written stands where it is put.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn enter(&self) -> io::Result<()> {
        let _writing = lock(&self.0.writing);
        if self.0.over.load(Ordering::SeqCst) {
            return Ok(());
        }
        let now = tcgetattr(&self.0.tty)?;
        let mut raw = now.clone();
        raw.make_raw();
        let first = lock(&self.0.before).is_none();
        lock(&self.0.before).get_or_insert_with(|| sane(now));
        tcsetattr(&self.0.tty, OptionalActions::Now, &raw)?;
        let mut codes = String::new();
        if first {
            codes.push_str(PUSH_TITLE);
        }
        // One that was left behind there by somebody who was killed is not to be seen any more.
        let clear = &Clear(ClearType::All);
        for command in [&EnterAlternateScreen as &dyn Ansi, clear, &Hide, &EnableBracketedPaste, &EnableFocusChange] {
            command.put(&mut codes);
        }
        if first && reports_modifiers() {
            codes.push_str(REPORT_MODIFIERS);
        }
        (&self.0.tty).write_all(codes.as_bytes())
    }

    /// Takes it again, if it was taken: whoever had it meanwhile may have changed it.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn enter_again(&self) -> io::Result<()> {
        let is_ours = lock(&self.0.before).is_some();
        if is_ours { self.enter() } else { Ok(()) }
    }

    /// Gives the screen to another program for as long as this takes, and takes it again.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn lend<T>(&self, to: impl FnOnce() -> T) -> io::Result<T> {
        *lock(&self.0.lent) = Lent::Now;
        self.leave();
        let done = to();
        *lock(&self.0.lent) = Lent::Until(Instant::now());
        self.enter().map(|()| done)
    }

    /// Whether a signal that a key sends is for another program: Ctrl+C in an editor is the editor's.
    pub(crate) fn is_lent(&self) -> bool {
        match *lock(&self.0.lent) {
            Lent::Never => false,
            Lent::Now => true,
            Lent::Until(then) => then.elapsed() < LENT,
        }
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
        let _writing = lock(&self.0.writing);
        self.give_back(true);
    }

    /// The same, for good: for whoever ends the program. Where a frame can't be written, for nobody reads, only the
    /// terminal's modes are put back.
    pub(crate) fn leave_for_good(&self) {
        self.0.over.store(true, Ordering::SeqCst);
        let by = Instant::now() + PATIENCE;
        loop {
            match self.0.writing.try_lock() {
                Ok(_writing) => return self.give_back(true),
                Err(TryLockError::Poisoned(_)) => return self.give_back(true),
                Err(TryLockError::WouldBlock) if Instant::now() > by => return self.give_back(false),
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    fn give_back(&self, write: bool) {
        let Some(before) = lock(&self.0.before).take() else { return };
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
        // The terminal may be gone; then there is nothing to give back.
        if write {
            let _ = (&self.0.tty).write_all(codes.as_bytes());
        }
        let _ = tcsetattr(&self.0.tty, OptionalActions::Now, &before);
    }

    /// Writes what is no part of a frame, for example the title.
    pub(crate) fn say(&self, codes: &str) -> io::Result<()> {
        self.write(codes.as_bytes())
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let _writing = lock(&self.0.writing);
        // A frame that comes too late would be written over the shell's.
        if lock(&self.0.before).is_none() {
            return Ok(());
        }
        (&self.0.tty).write_all(bytes)
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
}

/// Whether the terminal can be asked for modifiers: the Linux console would take the request for colours.
fn reports_modifiers() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term != "linux")
}

/// How the terminal is to be left that was found like this: a screen that was killed has left it without lines and echo.
fn sane(mut found: Termios) -> Termios {
    if !found.local_modes.contains(LocalModes::ICANON) {
        found.input_modes |= InputModes::ICRNL | InputModes::IXON;
        found.output_modes |= OutputModes::OPOST;
        found.local_modes |= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
    }
    found
}

/// Nothing is left half done under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The bytes of a frame, collected until it is whole: the cursor is placed after the rest, and would be seen to jump. Clones are
/// the same.
#[derive(Debug, Clone)]
pub(crate) struct Frames {
    terminal: Terminal,
    frame: Arc<Mutex<Vec<u8>>>,
}

impl Frames {
    pub(crate) fn new(terminal: Terminal) -> Self {
        Self { terminal, frame: Arc::new(Mutex::new(Vec::with_capacity(16 * 1024))) }
    }

    /// Writes the frame, in one piece.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn show(&self) -> io::Result<()> {
        let mut frame = lock(&self.frame);
        if frame.is_empty() {
            return Ok(());
        }
        // Shown as one, by terminals that can.
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

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use holdpoint_tools::testing::{again, part, rounds};
    use portable_pty::CommandBuilder;

    use super::super::tty::Tty;
    use super::*;

    /// The threads that panic.
    const THREADS: [&str; 5] = ["main", "plain", "task", "blocking", "frame"];

    /// Takes the screen and panics: in a terminal, in a process of its own.
    fn panic_in(thread: &str) -> ! {
        let terminal = Terminal::new(io::stdout().as_fd().try_clone_to_owned().unwrap());
        terminal.leave_on_panic();
        terminal.enter().unwrap();
        terminal.say("taken").unwrap();
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
    fn t_y1_a_panic_in_any_thread_gives_the_terminal_back() {
        if let Some(thread) = part() {
            panic_in(&thread);
        }
        let rounds = rounds(1, 100);
        for thread in THREADS.iter().cycle().take(THREADS.len() * rounds) {
            let other = again(thread);
            let mut program = CommandBuilder::new(other.get_program());
            program.args(other.get_args());
            other.get_envs().filter_map(|(name, value)| Some((name, value?))).for_each(|(n, v)| program.env(n, v));
            program.env("RUST_BACKTRACE", "0");
            let mut tty = Tty::spawn(program);
            if *thread == "frame" {
                // Nothing can be written then, and the program ends all the same.
                assert_eq!(tty.wait().exit_code(), 101, "{thread}");
                tty.has_modes_of_before();
                continue;
            }
            tty.end(101);
            tty.wait_for("on purpose");
        }
    }
}
