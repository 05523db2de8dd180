//! The program in a terminal of its own, with a screen to read and keys to press.

use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, PtySize, native_pty_system};

use crate::world::{PATIENCE, World, program};

/// A terminal with a shell's line in it: the program, then what it left of the terminal.
pub(crate) struct Terminal {
    screen: Arc<(Mutex<vt100::Parser>, Condvar)>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    _master: Box<dyn portable_pty::MasterPty + Send>,
}

/// The keys of a Confirm.
pub(crate) const ASKED: &str = "[Y] Approve [N] Deny (Esc to interrupt)";

fn size(cells: u16) -> std::num::NonZero<u16> {
    std::num::NonZero::new(cells).unwrap()
}

impl Terminal {
    /// Runs the program with these arguments.
    pub(crate) fn run(world: &World, args: &[&str]) -> Self {
        Self::start(world, args, &[], 40)
    }

    /// The same, with so many rows, and these variables as well.
    pub(crate) fn start(world: &World, args: &[&str], env: &[(&str, &str)], rows: u16) -> Self {
        let pair = native_pty_system().openpty(PtySize { rows, cols: 120, pixel_width: 0, pixel_height: 0 }).unwrap();
        let mut command = CommandBuilder::new("bash");
        command.args(["-c", "\"$@\"; echo \"exit=$?\"; stty -a | tr ' ;' '\\n\\n' | grep -x -e '-*icanon' -e '-*echo' -e '-*isig'; echo over", "bash"]);
        command.arg(program());
        command.args(args);
        command.cwd(world.path("work"));
        command.env_clear();
        for (name, value) in world.env() {
            command.env(name, value);
        }
        command.env("TERM", "xterm-256color");
        for (name, value) in env {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let screen = Arc::new((Mutex::new(vt100::Parser::new(size(rows), size(120), 0)), Condvar::new()));
        let (shown, mut output) = (Arc::clone(&screen), pair.master.try_clone_reader().unwrap());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = output.read(&mut bytes) {
                shown.0.lock().unwrap().process(&bytes[..read]);
                shown.1.notify_all();
            }
        });
        Self { screen, keys: pair.master.take_writer().unwrap(), child, _master: pair.master }
    }

    /// What is on the screen.
    pub(crate) fn text(&self) -> String {
        self.screen.0.lock().unwrap().screen().contents()
    }

    /// Waits until the screen is like this.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, wanted: impl Fn(&str) -> bool) {
        assert!(self.becomes(wanted, PATIENCE), "not {what} on the screen:\n{}", self.text());
    }

    /// Whether the screen has this within that time.
    pub(crate) fn shows(&self, text: &str, within: Duration) -> bool {
        self.becomes(|screen| screen.contains(text), within)
    }

    fn becomes(&self, wanted: impl Fn(&str) -> bool, within: Duration) -> bool {
        let by = Instant::now() + within;
        let mut screen = self.screen.0.lock().unwrap();
        while !wanted(&screen.screen().contents()) {
            let Some(left) = by.checked_duration_since(Instant::now()) else { return false };
            screen = self.screen.1.wait_timeout(screen, left).unwrap().0;
        }
        true
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        assert!(self.shows(text, PATIENCE), "no {text:?} on the screen:\n{}", self.text());
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Presses a key until it has had its effect: one that comes too early does not count.
    #[track_caller]
    pub(crate) fn press_until(&mut self, key: &str, text: &str) {
        let by = Instant::now() + PATIENCE;
        while !self.shows(text, Duration::from_millis(50)) {
            assert!(Instant::now() < by, "{key:?} brought no {text:?}:\n{}", self.text());
            self.press(key);
        }
    }

    /// The program ended with that code and the terminal is as it was.
    #[track_caller]
    pub(crate) fn end(&mut self, code: i32) {
        self.wait_for("over");
        let text = self.text();
        assert!(text.contains(&format!("exit={code}\n")), "{text}");
        assert!(text.contains("\nisig\nicanon\necho\nover"), "the terminal is not as it was:\n{text}");
        self.child.wait().unwrap();
    }
}
