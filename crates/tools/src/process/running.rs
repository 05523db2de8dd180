//! The shared state of one started program, on which threads can wait.

use std::io::{self, PipeWriter, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use holdpoint_common::EndedProcesses;
use holdpoint_common::limits::ABANDON_AFTER;
use rustix::process::Pid;

use super::exit::Exit;
use super::start::call_ended;
use super::{id, pid, wire};

#[derive(Debug)]
pub(super) struct Running {
    state: Mutex<ProcessState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct ProcessState {
    /// The socket to the supervisor; `None` before it has started and after it is gone.
    control: Option<UnixStream>,
    /// Whether the owner has asked to end the program, even before its start.
    end_requested: bool,
    /// Closed when the owner asks to end the program, which wakes the watching thread.
    end_request_sender: Option<PipeWriter>,
    /// The process id of the program.
    leader: u32,
    /// Where to look for living processes.
    root: Root,
    /// Set when the program has ended.
    exit: Option<Exit>,
    /// Set when all processes that the program started have ended.
    ended: Option<EndedProcesses>,
    /// Whether the supervisor is gone too, or is no longer waited for.
    gone: bool,
}

/// Where to look for the processes of a started program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Root {
    /// No program has started.
    #[default]
    Nowhere,
    /// Below this supervisor.
    Below(u32),
    /// In this process group.
    Group(u32),
}

impl Running {
    pub(super) fn new() -> Self {
        Self { state: Mutex::default(), changed: Condvar::new() }
    }

    fn lock_state(&self) -> MutexGuard<'_, ProcessState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut ProcessState)) {
        change(&mut self.lock_state());
        self.changed.notify_all();
    }

    pub(super) fn is_ending(&self) -> bool {
        self.lock_state().end_requested
    }

    /// Sends the supervisor the last part of its order, for which the socket has room, unless the
    /// owner has asked to end the program. From now on, `control` carries the command to end.
    pub(super) fn set_ordered(&self, control: UnixStream, last: &[u8]) -> io::Result<()> {
        let mut state = self.lock_state();
        if state.end_requested {
            return Err(call_ended());
        }
        (&control).write_all(last)?;
        state.control = Some(control);
        Ok(())
    }

    /// `end_request_sender` is closed when the owner asks to end the program.
    pub(super) fn set_started(
        &self,
        control: UnixStream,
        end_request_sender: PipeWriter,
        leader: u32,
        root: Root,
    ) {
        self.update(|state| {
            let end_requested = state.end_requested;
            if end_requested {
                wire::send_end(&control);
            }
            let end_request_sender = (!end_requested).then_some(end_request_sender);
            *state = ProcessState {
                control: Some(control),
                end_request_sender,
                leader,
                root,
                end_requested,
                ..ProcessState::default()
            };
        });
    }

    pub(super) fn set_exit(&self, exit: Exit) {
        self.update(|state| state.exit = Some(exit));
    }

    pub(super) fn set_ended(&self, ended: EndedProcesses) {
        self.update(|state| {
            state.exit.get_or_insert(Exit::Unknown);
            state.ended = Some(ended);
        });
    }

    pub(super) fn set_gone(&self) {
        self.update(|state| {
            state.exit.get_or_insert(Exit::Unknown);
            state.ended.get_or_insert_default();
            state.control = None;
            state.end_request_sender = None;
            state.gone = true;
        });
    }

    pub(super) fn leader(&self) -> u32 {
        self.lock_state().leader
    }

    /// Begins to end the program, at once or as soon as it has started.
    pub(super) fn end(&self) {
        let mut state = self.lock_state();
        if !state.end_requested {
            state.end_requested = true;
            state.end_request_sender = None;
            state.control.iter().for_each(wire::send_end);
        }
    }

    pub(super) fn wait_exit(&self, deadline: Option<Instant>) -> Option<Exit> {
        self.wait(deadline, |state| state.exit.is_some()).exit
    }

    /// Waits for the count of ended processes. At the deadline, returns the current count.
    pub(super) fn wait_ended(&self, deadline: Instant) -> EndedProcesses {
        drop(self.wait(Some(deadline), |state| state.ended.is_some()));
        self.so_far()
    }

    /// Ends the program if it still runs, and waits for its processes: at most the grace and one
    /// second more.
    pub(super) fn finish(&self, grace: Duration) -> (Exit, EndedProcesses) {
        if self.wait_exit(Some(Instant::now())).is_none() {
            self.end();
        }
        let ended = self.wait_ended(Instant::now() + grace + ABANDON_AFTER);
        (self.wait_exit(Some(Instant::now())).unwrap_or(Exit::Unknown), ended)
    }

    pub(super) fn wait_gone(&self, deadline: Instant) {
        drop(self.wait(Some(deadline), |state| state.gone));
    }

    /// The final count of ended processes, once the supervisor is gone.
    pub(super) fn final_count(&self) -> Option<EndedProcesses> {
        let state = self.lock_state();
        state.ended.clone().filter(|_| state.gone)
    }

    /// The count of ended processes, or the processes that live now.
    pub(super) fn so_far(&self) -> EndedProcesses {
        let (ended, root) = {
            let state = self.lock_state();
            (state.ended.clone(), state.root)
        };
        // Looking for processes takes a moment, so the lock is released first.
        ended.unwrap_or_else(|| EndedProcesses {
            not_ended: root.living().into_iter().map(id).collect(),
            ..EndedProcesses::default()
        })
    }

    fn wait(
        &self,
        deadline: Option<Instant>,
        is_done: impl Fn(&ProcessState) -> bool,
    ) -> MutexGuard<'_, ProcessState> {
        let mut state = self.lock_state();
        while !is_done(&state) {
            let timeout = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            state = match timeout {
                Some(timeout) if timeout.is_zero() => break,
                Some(timeout) => {
                    let woken = self.changed.wait_timeout(state, timeout);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        state
    }
}

impl Root {
    #[cfg(target_os = "linux")]
    pub(super) fn living(self) -> Vec<Pid> {
        use super::tree;

        let living = match self {
            Self::Nowhere => None,
            Self::Below(supervisor) => pid(supervisor).map(tree::descendants),
            Self::Group(leader) => pid(leader).map(tree::group),
        };
        living.unwrap_or_default()
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn living(self) -> Vec<Pid> {
        match self {
            Self::Nowhere => Vec::new(),
            Self::Below(leader) | Self::Group(leader) => pid(leader).into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn no_program_starts_after_the_order_to_end() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let running = Running::new();
        running.end();
        assert!(running.set_ordered(ours, b"x").is_err());
        assert_eq!(theirs.read(&mut [0]).unwrap(), 0, "nothing was sent");
    }

    #[test]
    fn a_started_program_gets_the_end_on_its_control_socket() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let running = Running::new();
        running.set_ordered(ours, b"x").unwrap();
        running.end();
        let mut received = [0; 2];
        theirs.read_exact(&mut received).unwrap();
        assert_eq!(received, [b'x', wire::END]);
    }
}
