//! Signals while a session is followed: whatever the rest of the program is doing, they are seen.

use std::io;
use std::time::Duration;

use holdpoint_common::limits::LEAVE_AFTER;
use holdpoint_session::SessionHandle;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::sync::watch;

use crate::runtime::runtime;
use crate::terminal::Terminal;

/// How long after the grace the program may take to leave when it is told to: a tool that does not come back is
/// left behind after a second, and the receipt is to be shown.
pub(crate) const BEYOND_GRACE: Duration = LEAVE_AFTER.saturating_add(Duration::from_secs(2));

/// What signals do.
pub(crate) enum Signalled {
    /// INT and TERM interrupt the session, and the program leaves when its turn has ended; TERM at the latest after so
    /// long.
    Interrupts {
        /// Which.
        session: SessionHandle,
        /// How long it may take.
        patience: Duration,
        /// HUP does so, too. If not, the program leaves, and the session goes on.
        hang_up: bool,
    },
    /// The program leaves, and the session goes on.
    Detaches,
}

/// Whether a signal has asked the program to leave.
#[derive(Clone)]
pub(crate) struct Leaving(watch::Receiver<i32>);

impl Leaving {
    /// The exit code that such a signal asked for: 128 and its number. Of several, that of the first, or of TERM.
    pub(crate) fn code(&self) -> Option<i32> {
        match *self.0.borrow() {
            0 => None,
            signal => Some(128 + signal),
        }
    }

    /// Waits until a signal has asked for it.
    pub(crate) async fn asked(&mut self) {
        if self.0.wait_for(|signal| *signal != 0).await.is_err() {
            // Nobody watches any more, so that nobody asks.
            std::future::pending::<()>().await;
        }
    }
}

/// Watches for INT, TERM and HUP from now on, on a thread of its own, so that a reader that does not read cannot keep
/// anything running. A second INT leaves at once. HUP stays ignored if it was (`nohup`).
pub(crate) fn watch(what: Signalled, terminal: Option<Terminal>) -> io::Result<Leaving> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    if !is_ignored(SIGHUP) {
        signals.add_signal(SIGHUP)?;
    }
    let (ask, asked) = watch::channel(0);
    let leaving = Leaving(asked);
    let asked = leaving.clone();
    let leave = move |code| {
        if let Some(terminal) = &terminal {
            terminal.restore();
        }
        // What tools run in this process is ended by their supervisors, which see that we are gone.
        std::process::exit(code)
    };
    std::thread::Builder::new().name("holdpoint-signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            let mut first = false;
            ask.send_if_modified(|asked| {
                first = *asked == 0;
                // Who ends us by TERM looks for its code, whatever came before.
                let counts = first || signal == SIGTERM;
                counts && std::mem::replace(asked, signal) != signal
            });
            let code = asked.code().unwrap_or(128 + signal);
            if signal == SIGINT && !first {
                leave(code);
            }
            match &what {
                Signalled::Detaches if signal != SIGINT => leave(code),
                // Whoever follows the session sees it.
                Signalled::Detaches => {}
                Signalled::Interrupts { hang_up: false, .. } if signal == SIGHUP => leave(code),
                Signalled::Interrupts { session, patience, .. } => {
                    if signal != SIGINT {
                        let (leave, patience) = (leave.clone(), *patience);
                        let waited = std::thread::Builder::new().spawn(move || {
                            std::thread::sleep(patience);
                            leave(code);
                        });
                        if waited.is_err() {
                            tracing::warn!("no thread to leave in time");
                        }
                    }
                    interrupt(session.clone());
                }
            }
        }
    })?;
    Ok(leaving)
}

/// Interrupts a session on a thread of its own: the rest of the program may be where nothing else of it moves, and a
/// daemon that hangs says nothing.
fn interrupt(session: SessionHandle) {
    let sent = std::thread::Builder::new().name("holdpoint-interrupt".to_owned()).spawn(move || {
        // If it is gone there is nothing to interrupt; if its turn has not begun, whoever prompts it looks whether we
        // are leaving.
        let sent = runtime().map(|runtime| runtime.block_on(session.interrupt(None)).map(drop));
        tracing::debug!(?sent, "interrupted by a signal");
    });
    if sent.is_err() {
        tracing::warn!("no thread to interrupt");
    }
}

/// Whether whoever started us wants a signal ignored.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask & (1 << (signal - 1)) != 0
}
