//! Signals while a session is followed: whatever the rest of the program is doing, they are seen.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use holdpoint_common::TurnId;
use holdpoint_common::limits::LEAVE_AFTER;
use holdpoint_session::SessionHandle;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTOU};
use signal_hook::iterator::Signals;
use signal_hook::low_level::{emulate_default_handler, raise};
use tokio::sync::watch;

use crate::runtime::runtime;
use crate::sessions::stays;
use crate::terminal::Terminal;

/// How long after the grace the program may take to leave when it is told to: a tool that does not come back is
/// left behind after a second, and the receipt is to be shown.
pub(crate) const BEYOND_GRACE: Duration = LEAVE_AFTER.saturating_add(Duration::from_secs(2));

/// How long writing the last line may take when the program leaves at once. It leaves as soon as the line is written.
const LAST_WORDS: Duration = Duration::from_secs(1);

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

/// Whether a signal has asked the program to leave. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Leaving(Arc<watch::Sender<Asked>>);

/// What signals have asked for.
#[derive(Default)]
struct Asked {
    /// The signal that has asked the program to leave; 0 if none has.
    signal: i32,
    /// The only turn that signals interrupt, once it is known; until then whichever is open.
    turn: Option<TurnId>,
}

impl Leaving {
    /// The exit code that such a signal asked for: 128 and its number. Of several, that of the first, or of TERM.
    pub(crate) fn code(&self) -> Option<i32> {
        match self.0.borrow().signal {
            0 => None,
            signal => Some(128 + signal),
        }
    }

    /// Waits until a signal has asked for it.
    pub(crate) async fn asked(&self) {
        // Never fails: `self` holds the sender.
        let _ = self.0.subscribe().wait_for(|asked| asked.signal != 0).await;
    }

    /// Signals interrupt this turn from now on, and no later one; if one has come already, it is interrupted now.
    pub(crate) fn interrupts_only(&self, session: &SessionHandle, turn: TurnId) {
        self.0.send_modify(|asked| asked.turn = Some(turn));
        if self.code().is_some() {
            interrupt(session.clone(), Some(turn));
        }
    }

    /// A key has done what INT does, so that the next one is the second.
    pub(crate) fn interrupted(&self) {
        self.take(SIGINT);
    }

    /// Takes a signal. Returns whether it is the first, and the turn that it interrupts.
    fn take(&self, signal: i32) -> (bool, Option<TurnId>) {
        let mut taken = (false, None);
        self.0.send_if_modified(|now| {
            taken = (now.signal == 0, now.turn);
            // Who ends us by TERM looks for its code, whatever came before.
            let counts = now.signal == 0 || signal == SIGTERM;
            counts && std::mem::replace(&mut now.signal, signal) != signal
        });
        taken
    }
}

/// Watches for INT, TERM and HUP from now on, on a thread of its own, so that a reader that does not read cannot keep
/// anything running. A second INT leaves at once, and says which session stays. HUP stays ignored if it was (`nohup`).
pub(crate) fn watch(what: Signalled, terminal: Option<Terminal>) -> io::Result<Leaving> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    if !is_ignored(SIGHUP) {
        signals.add_signal(SIGHUP)?;
    }
    // Those keys do as ever, but leave no terminal behind whose keys are read one by one. A shell does so where something else stops us.
    for signal in [SIGQUIT, SIGTSTP, SIGCONT].into_iter().filter(|signal| terminal.is_some() && !is_ignored(*signal)) {
        signals.add_signal(signal)?;
    }
    let leaving = Leaving::default();
    let asked = leaving.clone();
    let of_keys = terminal.clone();
    let leave = move |code| {
        if let Some(terminal) = &terminal {
            terminal.leave();
        }
        // What tools run in this process is ended by their supervisors, which see that we are gone.
        std::process::exit(code)
    };
    std::thread::Builder::new().name("holdpoint-signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            if let (Some(terminal), SIGQUIT | SIGTSTP) = (&of_keys, signal) {
                terminal.suspended(|| {
                    // Stops as TSTP would, had it no handler: not where no shell would let it go on.
                    let done = if signal == SIGTSTP { raise(SIGTTOU) } else { emulate_default_handler(signal) };
                    tracing::debug!(?done, signal, "the program goes on");
                });
            }
            if let (Some(terminal), SIGQUIT | SIGTSTP | SIGCONT) = (&of_keys, signal) {
                terminal.goes_on();
                continue;
            }
            let (first, turn) = asked.take(signal);
            let code = asked.code().unwrap_or(128 + signal);
            if signal == SIGINT && !first {
                if let Signalled::Interrupts { session, hang_up: false, .. } = &what {
                    say(stays(session));
                }
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
                    interrupt(session.clone(), turn);
                }
            }
        }
    })?;
    Ok(leaving)
}

/// Writes a line to standard error on a thread of its own, and waits for it only a moment: a reader that does not read keeps
/// nobody.
fn say(line: String) {
    let (said, heard) = mpsc::channel();
    let says = std::thread::Builder::new().name("holdpoint-last-words".to_owned()).spawn(move || {
        let mut err = io::stderr();
        // Something else may stand on the line, `^C` at least.
        let begin = if err.is_terminal() { "\n" } else { "" };
        let _ = err.write_all(format!("{begin}{line}\n").as_bytes());
        let _ = said.send(());
    });
    if says.is_ok() {
        let _ = heard.recv_timeout(LAST_WORDS);
    }
}

/// Interrupts a turn, or whichever is open, on a thread of its own: the rest of the program may be where nothing else of it
/// moves, and a daemon that hangs says nothing.
fn interrupt(session: SessionHandle, turn: Option<TurnId>) {
    let sent = std::thread::Builder::new().name("holdpoint-interrupt".to_owned()).spawn(move || {
        // If the session is gone there is nothing to interrupt; if its turn has not begun, the follower interrupts it when
        // it begins.
        let sent = runtime().map(|runtime| runtime.block_on(session.interrupt(turn)).map(drop));
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
