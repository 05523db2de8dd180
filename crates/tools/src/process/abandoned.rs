//! Ends processes in the place of a supervisor that its program may have killed or stopped.

use std::time::Instant;

use holdpoint_common::EndedProcesses;
use holdpoint_common::limits::ABANDON_AFTER;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::{id, pid, tree};

/// Ends the processes that a killed supervisor left behind: all of its session. Must be called
/// before the supervisor is reaped, while its id can't be reused.
pub(super) fn end_abandoned(supervisor: u32) -> EndedProcesses {
    let Some(session) = pid(supervisor) else { return EndedProcesses::default() };
    // The supervisor may not be completely gone.
    let ended =
        end_all(|| tree::session(session).into_iter().filter(|pid| *pid != session).collect());
    if ended != EndedProcesses::default() {
        tracing::warn!(
            supervisor,
            "a supervisor was killed: processes that left its session can't be found and ended"
        );
    }
    ended
}

/// Continues a supervisor that was stopped. Must be called before it is reaped.
pub(super) fn wake(supervisor: u32) {
    if let Some(supervisor) = pid(supervisor) {
        let _ = kill_process(supervisor, Signal::CONT);
    }
}

/// Ends everything below a supervisor that does not do so itself, then the supervisor. Must be
/// called before it is reaped.
pub(super) fn end_in_its_place(supervisor: u32) -> EndedProcesses {
    let Some(root) = pid(supervisor) else { return EndedProcesses::default() };
    let ended = end_all(|| tree::descendants(root));
    if ended != EndedProcesses::default() {
        tracing::warn!(
            supervisor,
            "a supervisor did not end its processes: they were ended in its place"
        );
    }
    let _ = kill_process(root, Signal::KILL);
    ended
}

/// Freezes and kills all processes that `find` returns, and waits for their end.
fn end_all(find: impl Fn() -> Vec<Pid>) -> EndedProcesses {
    let frozen = tree::freeze(&find);
    let pidfds: Vec<_> =
        frozen.iter().filter_map(|pid| pidfd_open(*pid, PidfdFlags::empty()).ok()).collect();
    for pid in &frozen {
        let _ = kill_process(*pid, Signal::KILL);
    }
    let deadline = Instant::now() + ABANDON_AFTER / 2;
    for pidfd in pidfds {
        let timeout = super::timespec(deadline.saturating_duration_since(Instant::now()));
        let _ = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&timeout));
    }
    let not_ended: Vec<u32> = find().into_iter().map(id).collect();
    let killed = u32::try_from(frozen.len().saturating_sub(not_ended.len())).unwrap_or(u32::MAX);
    EndedProcesses { terminated: 0, killed, not_ended }
}
