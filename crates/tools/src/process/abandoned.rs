//! What to do where a supervisor does not do it: its program may have killed it, or stopped it.

use std::time::Instant;

use holdpoint_common::EndedProcesses;
use holdpoint_common::limits::LEAVE_AFTER;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::{id, pid, tree};

/// Ends what the supervisor of that id has left: all of its session. To be called before it is reaped, while
/// nobody else can have its id.
pub(super) fn end_abandoned(supervisor: u32) -> EndedProcesses {
    let Some(session) = pid(supervisor) else { return EndedProcesses::default() };
    // It may itself not be quite gone.
    let ended = end_all(|| tree::session(session).into_iter().filter(|pid| *pid != session).collect());
    if ended != EndedProcesses::default() {
        tracing::warn!(supervisor, "a supervisor was killed: what has left its session can't be found and ended");
    }
    ended
}

/// Lets a supervisor go on that was stopped. To be called before it is reaped.
pub(super) fn wake(supervisor: u32) {
    if let Some(supervisor) = pid(supervisor) {
        let _ = kill_process(supervisor, Signal::CONT);
    }
}

/// Ends all that is below a supervisor that does not do it, then the supervisor. To be called before it is reaped.
pub(super) fn end_in_its_place(supervisor: u32) -> EndedProcesses {
    let Some(root) = pid(supervisor) else { return EndedProcesses::default() };
    let ended = end_all(|| tree::descendants(root));
    if ended != EndedProcesses::default() {
        tracing::warn!(supervisor, "a supervisor did not end what is below it: that was done in its place");
    }
    let _ = kill_process(root, Signal::KILL);
    ended
}

/// Freezes and kills all that are found, and waits for their end.
fn end_all(find: impl Fn() -> Vec<Pid>) -> EndedProcesses {
    let frozen = tree::freeze(&find);
    let ends: Vec<_> = frozen.iter().filter_map(|pid| pidfd_open(*pid, PidfdFlags::empty()).ok()).collect();
    for pid in &frozen {
        let _ = kill_process(*pid, Signal::KILL);
    }
    let by = Instant::now() + LEAVE_AFTER / 2;
    for end in ends {
        let left = super::timespec(by.saturating_duration_since(Instant::now()));
        let _ = poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&left));
    }
    let left: Vec<u32> = find().into_iter().map(id).collect();
    let killed = u32::try_from(frozen.len().saturating_sub(left.len())).unwrap_or(u32::MAX);
    EndedProcesses { terminated: 0, killed, left }
}
