//! Signal handling while the screen is shown. A signal that ends the program restores the terminal
//! first, even if the rest of the program is blocked.

use std::io;

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;
use tokio::sync::mpsc;

use super::run::TerminalEvent;
use super::terminal::ScreenTerminal;

/// Starts a thread that handles signals. Ending the program leaves the session as it is.
///
/// # Errors
/// Fails if the handler or its thread can't be set up.
pub(super) fn watch(terminal: ScreenTerminal, events: mpsc::Sender<TerminalEvent>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGCONT])?;
    std::thread::Builder::new().name("holdpoint-signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            match signal {
                // If the channel is full, another frame is due anyway and uses the new size.
                SIGWINCH => _ = events.try_send(TerminalEvent::Resized),
                // The signal was meant for the program that has the terminal.
                SIGINT | SIGQUIT if terminal.is_lent() => {}
                SIGCONT => _ = events.try_send(TerminalEvent::Continued),
                signal => {
                    terminal.leave_for_good();
                    std::process::exit(128 + signal);
                }
            }
        }
    })?;
    Ok(())
}
