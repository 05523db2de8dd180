//! Signals while the screen is shown: whatever the rest of the program is doing, the terminal is given back.

use std::io;

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;
use tokio::sync::mpsc;

use super::run::Heard;
use super::terminal::Terminal;

/// Watches from now on, on a thread of its own. Those that end the program leave the session as it is.
///
/// # Errors
/// They can't be watched.
pub(super) fn watch(terminal: Terminal, hear: mpsc::Sender<Heard>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGCONT])?;
    std::thread::Builder::new().name("holdpoint-signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            match signal {
                // If there is no room, something else is drawn, and at the size of then.
                SIGWINCH => _ = hear.try_send(Heard::Resized),
                // Whoever has the terminal is sent it, too, and it means them.
                SIGINT | SIGQUIT if terminal.is_lent() => {}
                SIGCONT => _ = hear.try_send(Heard::Continued),
                signal => {
                    terminal.leave_for_good();
                    std::process::exit(128 + signal);
                }
            }
        }
    })?;
    Ok(())
}
