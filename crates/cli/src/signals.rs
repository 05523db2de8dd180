//! Signals while a session is open: they interrupt, whatever the rest of the program is doing.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use holdpoint_common::limits::LEAVE_AFTER;
use holdpoint_session::SessionHandle;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::runtime;

use crate::terminal::Terminal;

/// How long after the grace the program may take to leave when it is told to: a tool that does not come back is
/// left behind after a second, and the receipt is to be shown.
pub(crate) const BEYOND_GRACE: Duration = LEAVE_AFTER.saturating_add(Duration::from_secs(2));

/// Whether a signal has asked the program to leave.
#[derive(Clone, Default)]
pub(crate) struct Leaving(Arc<AtomicI32>);

impl Leaving {
    /// The exit code that the first such signal asked for: 128 and its number.
    pub(crate) fn code(&self) -> Option<i32> {
        match self.0.load(Ordering::SeqCst) {
            0 => None,
            signal => Some(128 + signal),
        }
    }
}

/// Watches for INT, TERM and HUP from now on, on a thread of its own, so that a reader that does not read
/// cannot keep anything running: the first one interrupts the session, a second INT leaves at once.
///
/// `patience` bounds how long the rest of the program may take to leave after TERM or HUP. HUP stays ignored if
/// it was (`nohup`).
pub(crate) fn watch(
    session: SessionHandle,
    terminal: Option<Terminal>,
    patience: Duration,
    runtime: runtime::Handle,
) -> io::Result<Leaving> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    if !is_ignored(SIGHUP) {
        signals.add_signal(SIGHUP)?;
    }
    let leaving = Leaving::default();
    let asked = leaving.clone();
    let leave = move |code| {
        if let Some(terminal) = &terminal {
            terminal.restore();
        }
        // What tools run is ended by their supervisors, which see that we are gone.
        std::process::exit(code)
    };
    std::thread::Builder::new().name("holdpoint-signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            let first = asked.0.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst).is_ok();
            if signal == SIGINT && !first {
                leave(asked.code().unwrap_or(128 + SIGINT));
            }
            // If it is gone there is nothing to interrupt; if its turn has not begun, whoever prompts it looks
            // whether we are leaving.
            let _ = runtime.block_on(session.interrupt(None));
            if signal != SIGINT {
                let leave = leave.clone();
                let asked = asked.clone();
                let waited = std::thread::Builder::new().spawn(move || {
                    std::thread::sleep(patience);
                    leave(asked.code().unwrap_or(128 + signal));
                });
                if waited.is_err() {
                    tracing::warn!("no thread to leave in time");
                }
            }
        }
    })?;
    Ok(leaving)
}

/// Whether whoever started us wants a signal ignored.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask & (1 << (signal - 1)) != 0
}
