//! A terminal that runs the program directly and exposes every byte and mode.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use holdpoint_tools::testing::patience;
use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{LocalModes, Termios, tcgetattr};

/// An answering key counts this long after its ask appeared, and after a key that answers nothing.
pub(crate) const GUARD: Duration = Duration::from_millis(300);

/// The start and the end of a frame (synchronized output).
const BEGIN_FRAME: &[u8] = b"\x1b[?2026h";
const END_FRAME: &[u8] = b"\x1b[?2026l";

/// The output so far, as a screen and as bytes.
struct Shown {
    screen: vt100::Parser,
    bytes: Vec<u8>,
    /// How many of the bytes are on the screen.
    drawn: usize,
    /// The reader has ended.
    over: bool,
}

/// A terminal that runs a program.
pub(crate) struct Tty {
    shown: Arc<(Mutex<Shown>, Condvar)>,
    child: Box<dyn Child + Send + Sync>,
    /// Our end. Without it, the terminal is hung up.
    master: Option<(Box<dyn MasterPty + Send>, File)>,
    /// Dropping this ends the reader, so that no other copy of our end remains.
    #[allow(dead_code, reason = "dropped, it wakes the reader")]
    wake: Option<UnixStream>,
    before: Termios,
}

fn cells(count: u16) -> std::num::NonZero<u16> {
    std::num::NonZero::new(count).unwrap()
}

impl Shown {
    /// Records output. A frame is drawn only when it is complete, as on terminals that know the
    /// mode.
    fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let open = open_frame(&self.bytes[self.drawn..]);
        self.draw(open.map_or(self.bytes.len(), |at| self.drawn + at));
    }

    fn draw(&mut self, upto: usize) {
        self.screen.process(&self.bytes[self.drawn..upto]);
        self.drawn = upto;
    }

    fn end(&mut self) {
        self.draw(self.bytes.len());
        self.over = true;
    }
}

/// The start of a frame that has not ended, or of bytes that may become one.
fn open_frame(bytes: &[u8]) -> Option<usize> {
    let last = |wanted: &[u8]| bytes.windows(wanted.len()).rposition(|found| found == wanted);
    let begun = last(BEGIN_FRAME).filter(|begin| last(END_FRAME).is_none_or(|end| end < *begin));
    let half = || (1..BEGIN_FRAME.len()).rev().find(|most| bytes.ends_with(&BEGIN_FRAME[..*most]));
    begun.or_else(|| half().map(|length| bytes.len() - length))
}

impl Tty {
    /// Runs `command` on a terminal of 80 × 24.
    pub(crate) fn spawn(command: CommandBuilder) -> Self {
        Self::spawn_on(command, 80, 24)
    }

    /// Runs `command` on a terminal of this size.
    pub(crate) fn spawn_on(command: CommandBuilder, cols: u16, rows: u16) -> Self {
        let size = PtySize { rows, cols, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let keys = file(&*pair.master);
        let before = tcgetattr(&keys).unwrap();
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let screen = vt100::Parser::new(cells(rows), cells(cols), 0);
        let shown = Arc::new((
            Mutex::new(Shown { screen, bytes: Vec::new(), drawn: 0, over: false }),
            Condvar::new(),
        ));
        let (shared, mut output) = (Arc::clone(&shown), file(&*pair.master));
        let (wake, woken) = UnixStream::pair().unwrap();
        std::thread::spawn(move || {
            let mut bytes = [0; 16 * 1024];
            while readable(&output, &woken) {
                let Ok(read @ 1..) = output.read(&mut bytes) else { break };
                shared.0.lock().unwrap().take(&bytes[..read]);
                shared.1.notify_all();
            }
            shared.0.lock().unwrap().end();
            shared.1.notify_all();
        });
        Self { shown, child, master: Some((pair.master, keys)), wake: Some(wake), before }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// The file of the terminal, which the program reads and writes.
    pub(crate) fn path(&self) -> PathBuf {
        let (master, _) = self.master.as_ref().expect("the terminal is open");
        master.tty_name().expect("it has a name")
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.0.lock().unwrap()
    }

    /// The screen's text, without trailing blanks.
    pub(crate) fn text(&self) -> String {
        text_of(&self.shown())
    }

    /// The screen's text, with trailing blanks.
    pub(crate) fn contents(&self) -> String {
        self.shown().screen.screen().contents()
    }

    /// Inspects the screen, cell by cell.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&vt100::Screen) -> T) -> T {
        look(self.shown().screen.screen())
    }

    /// How often `text` is on the screen.
    pub(crate) fn count(&self, text: &str) -> usize {
        self.text().matches(text).count()
    }

    /// The raw output so far.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.shown().bytes.clone()
    }

    /// Whether the alternate screen is active.
    pub(crate) fn is_taken(&self) -> bool {
        self.shown().screen.screen().alternate_screen()
    }

    /// Waits until the terminal delivers keys one by one.
    #[track_caller]
    pub(crate) fn wait_taken(&self) {
        let modes = || tcgetattr(&self.master.as_ref().unwrap().1).unwrap().local_modes;
        let by = Instant::now() + patience();
        while modes().contains(LocalModes::ICANON) {
            assert!(Instant::now() < by, "the terminal is not taken:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits until the screen's text matches `wanted`.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, wanted: impl Fn(&str) -> bool) {
        assert!(self.becomes(wanted, patience()), "not {what} on the screen:\n{}", self.text());
    }

    /// Whether the screen shows `text` within this time.
    pub(crate) fn shows(&self, text: &str, within: Duration) -> bool {
        self.becomes(|screen| screen.contains(text), within)
    }

    fn becomes(&self, wanted: impl Fn(&str) -> bool, within: Duration) -> bool {
        let by = Instant::now() + within;
        let mut shown = self.shown();
        while !wanted(&text_of(&shown)) {
            let Some(left) = by.checked_duration_since(Instant::now()) else { return false };
            shown = self.shown.1.wait_timeout(shown, left).unwrap().0;
        }
        true
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        assert!(self.shows(text, patience()), "no {text:?} on the screen:\n{}", self.text());
    }

    pub(crate) fn press(&mut self, keys: impl AsRef<[u8]>) {
        self.master.as_mut().unwrap().1.write_all(keys.as_ref()).unwrap();
    }

    /// Waits for `text`. Returns the last time at which it was not on the screen, or `None` if it
    /// was there at once.
    #[track_caller]
    pub(crate) fn wait_from(&self, text: &str) -> Option<Instant> {
        let by = Instant::now() + patience();
        let mut absent = None;
        loop {
            let now = Instant::now();
            if self.shows(text, Duration::ZERO) {
                return absent;
            }
            assert!(now < by, "no {text:?} on the screen:\n{}", self.text());
            absent = Some(now);
            self.shows(text, Duration::from_millis(5));
        }
    }

    /// Presses a key once it counts, and waits for its effect. Presses it again if a stalled
    /// program took it as too early.
    #[track_caller]
    pub(crate) fn press_until(&mut self, key: &str, text: &str) {
        let by = Instant::now() + patience();
        std::thread::sleep(GUARD + Duration::from_millis(50));
        loop {
            self.press(key);
            if self.shows(text, Duration::from_secs(3)) {
                return;
            }
            assert!(Instant::now() < by, "{key:?} brought no {text:?}:\n{}", self.text());
        }
    }

    /// Changes the size of the terminal.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        if let (Some(columns), Some(rows)) =
            (std::num::NonZero::new(columns), std::num::NonZero::new(rows))
        {
            self.shown().screen.screen_mut().set_size(rows, columns);
        }
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        self.master.as_ref().unwrap().0.resize(size).unwrap();
    }

    pub(crate) fn signal(&self, signal: &str) {
        signal_to(self.pid(), signal);
    }

    /// Stops the program and waits until all of its threads are stopped.
    pub(crate) fn stop(&self) {
        self.signal("STOP");
        let by = Instant::now() + patience();
        let is_stopped = |task: std::io::Result<std::fs::DirEntry>| {
            // The state follows the name, which may contain anything.
            let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap();
            stat.rsplit_once(") ").unwrap().1.starts_with('T')
        };
        while !std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap().all(is_stopped) {
            assert!(Instant::now() < by, "the program is not stopped");
            std::thread::yield_now();
        }
    }

    /// Stops reading the program's output.
    pub(crate) fn stop_reading(&mut self) {
        self.wake = None;
    }

    /// Hangs up the terminal.
    pub(crate) fn hang_up(&mut self) {
        (self.master, self.wake) = (None, None);
    }

    /// Waits for the program to end.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let by = Instant::now() + patience();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < by, "the program does not end:\n{}", self.text());
            // There is no wait with a timeout.
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits until the program has ended and all of its output is on the screen. Checks the exit
    /// code and that the terminal is restored, byte for byte.
    #[track_caller]
    pub(crate) fn end(&mut self, code: u32) {
        let status = self.wait();
        // Another program in the terminal may keep it open.
        let _ =
            self.shown.1.wait_timeout_while(self.shown(), patience(), |shown| !shown.over).unwrap();
        assert_eq!(status.exit_code(), code, "{}", self.text());
        self.assert_restored();
    }

    /// Checks that the terminal's modes are as before, byte for byte.
    #[track_caller]
    pub(crate) fn assert_modes_restored(&self) {
        let now = tcgetattr(&self.master.as_ref().unwrap().1).unwrap();
        assert_eq!(format!("{now:?}"), format!("{:?}", self.before));
    }

    /// Checks that the terminal is restored: its modes, and everything that the program switched
    /// on.
    #[track_caller]
    pub(crate) fn assert_restored(&self) {
        self.assert_modes_restored();
        // The last output may still be in transit.
        let by = Instant::now() + patience();
        while !self.is_off() {
            assert!(Instant::now() < by, "left on: {:?}", String::from_utf8_lossy(&self.bytes()));
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether every private mode that was set has been reset since.
    fn is_off(&self) -> bool {
        let bytes = self.bytes();
        let text = String::from_utf8_lossy(&bytes);
        let last = |on: &str, off: &str| (text.rfind(on), text.rfind(off));
        // The cursor is the other way round: it must be shown again.
        let modes = ["1049", "2004", "1004", "1000", "1002", "1003", "1006", "2026"];
        let off = |mode: &&str| {
            let (on, off) = last(&format!("\x1b[?{mode}h"), &format!("\x1b[?{mode}l"));
            on.is_none() || off > on
        };
        let (shown, hidden) = last("\x1b[?25h", "\x1b[?25l");
        let (kitty, no_kitty) = last("\x1b[>5u", "\x1b[<u");
        let (xterm, no_xterm) = last("\x1b[>4;1m", "\x1b[>4m");
        let keys = (kitty.is_none() || no_kitty > kitty) && (xterm.is_none() || no_xterm > xterm);
        modes.iter().all(off) && keys && (hidden.is_none() || shown > hidden)
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        // Killing a program that has ended fails.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Our own descriptor for our end.
#[allow(unsafe_code, reason = "portable-pty gives its descriptor as a number")]
fn file(master: &dyn MasterPty) -> File {
    let master = unsafe { BorrowedFd::borrow_raw(master.as_raw_fd().unwrap()) };
    master.try_clone_to_owned().unwrap().into()
}

/// Waits for output. Returns false when the reader must stop.
fn readable(output: &File, woken: &UnixStream) -> bool {
    let mut fds = [PollFd::new(output, PollFlags::IN), PollFd::new(woken, PollFlags::IN)];
    loop {
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => {}
            polled => return polled.is_ok() && fds[1].revents().is_empty(),
        }
    }
}

/// The screen's text, line by line, without trailing blanks.
fn text_of(shown: &Shown) -> String {
    let text = shown.screen.screen().contents();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

pub(crate) fn signal_to(pid: u32, signal: &str) {
    assert!(
        std::process::Command::new("kill")
            .args(["-s", signal, &pid.to_string()])
            .status()
            .unwrap()
            .success()
    );
}

/// Repeats an attempt until it is conclusive: when the machine stalls, a key that must be early can
/// be late.
#[track_caller]
pub(crate) fn until_conclusive(mut attempt: impl FnMut() -> bool) {
    let by = Instant::now() + patience();
    while !attempt() {
        assert!(Instant::now() < by, "the machine stalled in every attempt");
    }
}

/// A key that should have been too early has answered an ask, which was not on the screen at
/// `absent`. That is right only if the key was late, and then the attempt is inconclusive.
#[track_caller]
pub(crate) fn pressed_late(absent: Option<Instant>, terminal: &Tty) -> bool {
    let late = absent.is_none_or(|absent| absent.elapsed() >= GUARD);
    assert!(late, "a key pressed too early answered:\n{}", terminal.text());
    false
}
