//! What to do where a supervisor was killed: its program may have killed it.

use std::time::Instant;

use holdpoint_common::EndedProcesses;
use holdpoint_common::limits::LEAVE_AFTER;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::tree;

/// Ends what the supervisor of that id has left: all of its session. To be called before it is reaped, while
/// nobody else can have its id.
pub(super) fn end_abandoned(supervisor: u32) -> EndedProcesses {
    let Some(session) = i32::try_from(supervisor).ok().and_then(Pid::from_raw) else {
        return EndedProcesses::default();
    };
    let mut frozen: Vec<Pid> = Vec::new();
    loop {
        let fresh: Vec<Pid> = tree::session(session).into_iter().filter(|pid| !frozen.contains(pid)).collect();
        if fresh.is_empty() {
            break;
        }
        for pid in fresh {
            let _ = kill_process(pid, Signal::STOP);
            frozen.push(pid);
        }
    }
    if frozen.is_empty() {
        return EndedProcesses::default();
    }
    tracing::warn!(supervisor, "a supervisor was killed: what has left its session can't be found and ended");
    let ends: Vec<_> = frozen.iter().filter_map(|pid| pidfd_open(*pid, PidfdFlags::empty()).ok()).collect();
    for pid in &frozen {
        let _ = kill_process(*pid, Signal::KILL);
    }
    let by = Instant::now() + LEAVE_AFTER / 2;
    for end in ends {
        let left = super::timespec(by.saturating_duration_since(Instant::now()));
        let _ = poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&left));
    }
    let left: Vec<u32> = tree::session(session).into_iter().map(|pid| pid.as_raw_pid().unsigned_abs()).collect();
    let killed = u32::try_from(frozen.len().saturating_sub(left.len())).unwrap_or(u32::MAX);
    EndedProcesses { terminated: 0, killed, left }
}
