//! Signal handling while the screen is shown. A signal that ends the program restores the terminal
//! first, even if the rest of the program is blocked.

use std::io;

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;

use crate::terminal::ScreenTerminal;

/// A signal that the screen reacts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScreenSignal {
    /// The terminal was resized.
    Resized,
    /// The process was stopped and has resumed.
    Continued,
}

/// Starts a thread that handles signals. Ending the program leaves the session as it is.
///
/// # Errors
/// Fails if the handler or its thread can't be set up.
pub(crate) fn watch(
    terminal: ScreenTerminal,
    react: impl Fn(ScreenSignal) + Send + 'static,
) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGCONT])?;
    std::thread::Builder::new().name("holdpoint-signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            match signal {
                SIGWINCH => react(ScreenSignal::Resized),
                // The signal was meant for the program that has the terminal.
                SIGINT | SIGQUIT if terminal.ignores_key_signals() => {}
                SIGCONT => react(ScreenSignal::Continued),
                signal => {
                    terminal.leave_for_good();
                    std::process::exit(128 + signal);
                }
            }
        }
    })?;
    Ok(())
}
