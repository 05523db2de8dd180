//! The thread that hears what a supervisor reports, and stands in for one that was killed.

use std::io::{self, PipeReader, Write};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use holdpoint_common::EndedProcesses;

use super::reports::Reports;
use super::running::Running;
use super::start;
use super::started::Started;
use super::wire::Report;

/// Bytes of the thread's stack: it reads lines and, at worst, `/proc`.
const STACK: usize = 256 * 1024;

/// Watches over a started program until nothing of it is left. Returns its output, and a socket that gets a
/// byte when the program has ended and is closed when its tree has.
pub(super) fn watch(started: Started, grace: Duration, running: Arc<Running>) -> io::Result<(PipeReader, UnixStream)> {
    let Started { mut supervisor, reports, control, output, leader, root } = started;
    let (over, tell_over) = UnixStream::pair()?;
    let (asked, awaited) = io::pipe()?;
    let mut reports = Reports {
        from: reports,
        asked: Some(asked),
        supervisor: supervisor.as_ref().map(Child::id),
        grace,
        by: None,
        ended: EndedProcesses::default(),
    };
    running.set_started(control, awaited, leader, root);
    let watched = Arc::clone(&running);
    let watcher = thread::Builder::new().name("holdpoint-watch".into()).stack_size(STACK).spawn(move || {
        let running = watched;
        let mut ended = false;
        while let Some(report) = reports.next() {
            match report {
                Report::Exited(exit) => {
                    running.set_exit(exit);
                    let _ = (&tell_over).write(&[0]);
                }
                Report::Ended(all) => {
                    ended = true;
                    reports.rest();
                    // What could not be ended keeps its supervisor: it goes on trying, we go on without it.
                    let left = !all.left.is_empty();
                    running.set_ended(all);
                    let _ = tell_over.shutdown(std::net::Shutdown::Both);
                    if left {
                        running.set_gone();
                    }
                }
                Report::Started { .. } | Report::Refused { .. } => {}
            }
        }
        if !ended {
            let mut all = std::mem::take(&mut reports.ended);
            if let Some(supervisor) = &supervisor {
                let abandoned = start::end_abandoned(supervisor.id());
                all.left.retain(|pid| !abandoned.left.contains(pid));
                all.add(abandoned);
            }
            running.set_ended(all);
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
