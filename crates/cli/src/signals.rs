//! Handles signals while a session is followed, even if the rest of the program is blocked.

pub(crate) mod screen;

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use holdpoint_common::TurnId;
use holdpoint_common::limits::ABANDON_AFTER;
use holdpoint_session::SessionHandle;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTOU};
use signal_hook::iterator::Signals;
use signal_hook::low_level::{emulate_default_handler, raise};
use tokio::sync::watch;

use crate::runtime::runtime;
use crate::sessions::stays_open_text;
use crate::terminal::KeyTerminal;

/// How long after the grace the program may take to leave on a signal. A tool that does not return
/// is abandoned after a second, and the receipt still has to be shown.
pub(crate) const EXIT_MARGIN: Duration = ABANDON_AFTER.saturating_add(Duration::from_secs(2));

/// The time allowed for writing the last line before an immediate exit, which follows as soon as
/// the line is written.
const LAST_LINE_TIMEOUT: Duration = Duration::from_secs(1);

/// The last line of a program that runs its session itself and is left before the turn has ended.
const LEFT_IN_PROCESS: &str =
    "left before the turn had ended; its tools are ended now, and the session is not kept";

/// The effect of signals on the followed session.
pub(crate) enum SignalAction {
    /// INT and TERM interrupt the session, and the program leaves when its turn has ended. After
    /// TERM it leaves within `exit_timeout`.
    Interrupts {
        session: SessionHandle,
        /// The longest time between TERM and the exit.
        exit_timeout: Duration,
        /// Whether the session runs in this process and ends with it. HUP then acts like TERM;
        /// otherwise HUP ends only the program.
        in_process: bool,
    },
    /// The program leaves, and the session continues.
    Detaches,
}

/// Records whether a signal has asked the program to leave. Clones share the same state.
#[derive(Clone, Default)]
pub(crate) struct ExitRequest(Arc<watch::Sender<SignalState>>);

/// The requests that signals have made so far.
#[derive(Default)]
struct SignalState {
    /// The signal that has asked the program to leave; 0 if there was none.
    signal: i32,
    /// The only turn that signals interrupt, once it is known. Before that they interrupt the open
    /// turn.
    turn: Option<TurnId>,
}

impl ExitRequest {
    /// The exit code of the signal: 128 plus its number. Of several signals the first counts,
    /// except that TERM always does.
    pub(crate) fn code(&self) -> Option<i32> {
        match self.0.borrow().signal {
            0 => None,
            signal => Some(128 + signal),
        }
    }

    /// Waits until a signal has asked the program to leave.
    pub(crate) async fn requested(&self) {
        // Never fails: `self` holds the sender.
        let _ = self.0.subscribe().wait_for(|state| state.signal != 0).await;
    }

    /// Makes signals interrupt this turn only. If a signal has arrived already, the turn is
    /// interrupted now.
    pub(crate) fn interrupt_only(&self, session: &SessionHandle, turn: TurnId) {
        self.0.send_modify(|state| state.turn = Some(turn));
        if self.code().is_some() {
            interrupt(session.clone(), Some(turn));
        }
    }

    /// Records a key that did the work of INT, so that the next INT counts as the second.
    pub(crate) fn record_interrupt(&self) {
        self.record(SIGINT);
    }

    /// Records a signal. Returns whether it is the first, and the turn that it interrupts.
    fn record(&self, signal: i32) -> (bool, Option<TurnId>) {
        let mut recorded = (false, None);
        self.0.send_if_modified(|state| {
            recorded = (state.signal == 0, state.turn);
            // The sender of TERM expects its exit code, even after other signals.
            let counts = state.signal == 0 || signal == SIGTERM;
            counts && std::mem::replace(&mut state.signal, signal) != signal
        });
        recorded
    }
}

/// Starts to watch for INT, TERM and HUP on a thread of its own, so that a blocked reader of our
/// output can't keep anything running. A second INT leaves at once. HUP stays ignored if it was
/// ignored before (`nohup`).
pub(crate) fn watch(
    action: SignalAction,
    terminal: Option<KeyTerminal>,
) -> io::Result<ExitRequest> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    if !is_ignored(SIGHUP) {
        signals.add_signal(SIGHUP)?;
    }
    // These signals keep their effect, but the terminal is restored first. When the process is
    // stopped in another way, the shell restores the terminal.
    for signal in [SIGQUIT, SIGTSTP, SIGCONT]
        .into_iter()
        .filter(|signal| terminal.is_some() && !is_ignored(*signal))
    {
        signals.add_signal(signal)?;
    }
    let exit_request = ExitRequest::default();
    let recorded = exit_request.clone();
    let key_terminal = terminal.clone();
    let leave = move |code| {
        if let Some(terminal) = &terminal {
            terminal.leave();
        }
        // Tools that run in this process are ended by their supervisors, which notice its exit.
        std::process::exit(code)
    };
    std::thread::Builder::new().name("holdpoint-signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            if let (Some(terminal), SIGQUIT | SIGTSTP) = (&key_terminal, signal) {
                terminal.suspend_with(|| {
                    // Like an unhandled TSTP, TTOU stops the process only if a shell can continue
                    // it.
                    let raised = if signal == SIGTSTP {
                        raise(SIGTTOU)
                    } else {
                        emulate_default_handler(signal)
                    };
                    tracing::debug!(done = ?raised, signal, "the program continues");
                });
            }
            if let (Some(terminal), SIGQUIT | SIGTSTP | SIGCONT) = (&key_terminal, signal) {
                terminal.handle_resume();
                continue;
            }
            let (is_first, turn) = recorded.record(signal);
            let code = recorded.code().unwrap_or(128 + signal);
            if signal == SIGINT && !is_first {
                match &action {
                    SignalAction::Interrupts { session, in_process: false, .. } => {
                        print_last_line(stays_open_text(session));
                    }
                    SignalAction::Interrupts { .. } => print_last_line(LEFT_IN_PROCESS.to_owned()),
                    SignalAction::Detaches => {}
                }
                leave(code);
            }
            match &action {
                SignalAction::Detaches if signal != SIGINT => leave(code),
                // The follower reacts to the INT in `ExitRequest`.
                SignalAction::Detaches => {}
                SignalAction::Interrupts { in_process: false, .. } if signal == SIGHUP => {
                    leave(code)
                }
                SignalAction::Interrupts { session, exit_timeout, .. } => {
                    if signal != SIGINT {
                        let (leave, exit_timeout) = (leave.clone(), *exit_timeout);
                        let timer = std::thread::Builder::new().spawn(move || {
                            std::thread::sleep(exit_timeout);
                            leave(code);
                        });
                        if timer.is_err() {
                            tracing::warn!("no thread for the time limit");
                        }
                    }
                    interrupt(session.clone(), turn);
                }
            }
        }
    })?;
    Ok(exit_request)
}

/// Writes a line to standard error on a thread of its own and waits only briefly, so that a blocked
/// reader can't delay the exit.
fn print_last_line(line: String) {
    let (sender, receiver) = mpsc::channel();
    let writer =
        std::thread::Builder::new().name("holdpoint-last-words".to_owned()).spawn(move || {
            let mut err = io::stderr();
            // The line may have text on it already, at least `^C`.
            let line_break = if err.is_terminal() { "\n" } else { "" };
            let _ = err.write_all(format!("{line_break}{line}\n").as_bytes());
            let _ = sender.send(());
        });
    if writer.is_ok() {
        let _ = receiver.recv_timeout(LAST_LINE_TIMEOUT);
    }
}

/// Interrupts this turn, or the open one, on a thread of its own: the rest of the program may be
/// blocked, and a daemon that hangs does not answer.
fn interrupt(session: SessionHandle, turn: Option<TurnId>) {
    let sent =
        std::thread::Builder::new().name("holdpoint-interrupt".to_owned()).spawn(move || {
            // Fails if the session is gone, which leaves no turn to interrupt. A turn that has not
            // begun is interrupted by the follower when it begins.
            let sent = runtime().map(|runtime| runtime.block_on(session.interrupt(turn)).map(drop));
            tracing::debug!(?sent, "interrupted by a signal");
        });
    if sent.is_err() {
        tracing::warn!("no thread for the interrupt");
    }
}

/// Whether the parent process wanted this signal to be ignored.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask & (1 << (signal - 1)) != 0
}
