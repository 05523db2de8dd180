//! The thread that hears what a supervisor reports, and stands in for one that was killed.

use std::io::{self, BufRead, PipeReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

use holdpoint_common::EndedProcesses;

use super::running::Running;
use super::start::Started;
use super::wire::Report;

/// Bytes of the thread's stack: it reads lines and, at worst, `/proc`.
const STACK: usize = 256 * 1024;

/// Watches over a started program until nothing of it is left. Returns its output, and a socket that gets a
/// byte when the program has ended and is closed when its tree has.
pub(super) fn watch(started: Started, running: Arc<Running>) -> io::Result<(PipeReader, UnixStream)> {
    let Started { mut supervisor, mut reports, control, output, leader, root } = started;
    let (over, tell_over) = UnixStream::pair()?;
    running.set_started(control, leader, root);
    let watched = Arc::clone(&running);
    let watcher = thread::Builder::new().name("holdpoint-watch".into()).stack_size(STACK).spawn(move || {
        let running = watched;
        let mut ended = false;
        let mut line = String::new();
        while reports.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            match Report::parse(&line) {
                Some(Report::Exited(exit)) => {
                    running.set_exit(exit);
                    let _ = (&tell_over).write(&[0]);
                }
                Some(Report::Ended(all)) => {
                    ended = true;
                    // What could not be ended keeps its supervisor: it goes on trying, we go on without it.
                    let left = !all.left.is_empty();
                    running.set_ended(all);
                    let _ = tell_over.shutdown(std::net::Shutdown::Both);
                    if left {
                        running.set_gone();
                    }
                }
                Some(Report::Started { .. } | Report::Refused { .. }) | None => {}
            }
            line.clear();
        }
        if !ended {
            running.set_ended(abandoned(supervisor.as_ref().map(std::process::Child::id)));
        }
        drop(tell_over);
        if let Some(supervisor) = &mut supervisor {
            let _ = supervisor.wait();
        }
        running.set_gone();
    });
    if let Err(error) = watcher {
        // The closure is gone and with it our reading end; once the control is closed too, the supervisor
        // ends the tree by itself.
        running.set_gone();
        return Err(error);
    }
    Ok((output, over))
}

/// Ends what a killed supervisor has left: all of its session. What has left the session can't be found.
#[cfg(target_os = "linux")]
fn abandoned(supervisor: Option<u32>) -> EndedProcesses {
    use rustix::process::{Pid, Signal, kill_process};

    use super::tree;

    let Some(session) = supervisor.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) else {
        return EndedProcesses::default();
    };
    tracing::warn!(supervisor = session.as_raw_pid(), "a supervisor was killed; what left its session can't be found");
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
    let ends: Vec<_> = frozen
        .iter()
        .filter_map(|pid| rustix::process::pidfd_open(*pid, rustix::process::PidfdFlags::empty()).ok())
        .collect();
    for pid in &frozen {
        let _ = kill_process(*pid, Signal::KILL);
    }
    let by = std::time::Instant::now() + holdpoint_common::limits::LEAVE_AFTER / 2;
    for end in ends {
        use rustix::event::{PollFd, PollFlags, poll};
        let left = super::timespec(by.saturating_duration_since(std::time::Instant::now()));
        let _ = poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&left));
    }
    let left: Vec<u32> = tree::session(session).into_iter().map(|pid| pid.as_raw_pid().unsigned_abs()).collect();
    let killed = u32::try_from(frozen.len().saturating_sub(left.len())).unwrap_or(u32::MAX);
    EndedProcesses { terminated: 0, killed, left }
}

#[cfg(not(target_os = "linux"))]
fn abandoned(_: Option<u32>) -> EndedProcesses {
    EndedProcesses::default()
}
