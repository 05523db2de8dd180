//! The thread that receives a supervisor's reports, and takes over from one that was killed.

use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Sender, bounded};
use holdpoint_common::EndedProcesses;

use super::reports::Reports;
use super::running::Running;
use super::start;
use super::started::{Started, Watched};
use super::wire::Report;
use crate::sandbox::DomainProxy;

/// The size of the thread's stack in bytes: it reads lines and, at worst, `/proc`.
const STACK: usize = 256 * 1024;

/// The thread that watches a program. It is created before the program starts, so that no step can
/// fail once the program runs.
pub(super) struct Watcher {
    running: Arc<Running>,
    grace: Duration,
    end_request: PipeReader,
    end_request_sender: PipeWriter,
    ended_signal: UnixStream,
    program_sender: Sender<WatchedProgram>,
}

/// The supervisor of a program, its reports, and the proxy that ends with it.
type WatchedProgram = (Option<Child>, Reports, Option<DomainProxy>);

/// Spawns the thread, which waits for a program to watch and ends if the start fails.
pub(super) fn spawn_watcher(grace: Duration, running: Arc<Running>) -> io::Result<Watcher> {
    let (ended_signal, ended_sender) = UnixStream::pair()?;
    let (end_request, end_request_sender) = io::pipe()?;
    let (program_sender, program_receiver) = bounded::<WatchedProgram>(1);
    let watched = Arc::clone(&running);
    thread::Builder::new().name("holdpoint-watch".into()).stack_size(STACK).spawn(move || {
        let running = watched;
        let Ok((mut supervisor, mut reports, mut proxy)) = program_receiver.recv() else {
            return;
        };
        let mut ended = false;
        while let Some(report) = reports.next() {
            match report {
                Report::Exited(exit) => {
                    running.set_exit(exit);
                    let _ = (&ended_sender).write(&[0]);
                }
                Report::Ended(all) => {
                    ended = true;
                    reports.clear_deadline();
                    // Also for a process that can't be ended.
                    proxy = None;
                    // The supervisor continues to try to end the remaining processes, but the call
                    // does not wait: for it, the supervisor counts as gone.
                    let left = !all.not_ended.is_empty();
                    running.set_ended(all);
                    let _ = ended_sender.shutdown(std::net::Shutdown::Both);
                    if left {
                        running.set_gone();
                    }
                }
                // These are only ever the first report, which `start` has already read.
                Report::Started { .. } | Report::Refused { .. } | Report::NotConfined { .. } => {}
            }
        }
        if !ended {
            let mut all = std::mem::take(&mut reports.ended);
            if let Some(supervisor) = &supervisor {
                let abandoned = start::end_abandoned(supervisor.id());
                // Both lists may name the same process.
                all.not_ended.retain(|pid| !abandoned.not_ended.contains(pid));
                all.add(abandoned);
            }
            running.set_ended(all);
        }
        drop((ended_sender, proxy));
        if let Some(supervisor) = &mut supervisor {
            let _ = supervisor.wait();
        }
        running.set_gone();
    })?;
    Ok(Watcher { running, grace, end_request, end_request_sender, ended_signal, program_sender })
}

impl Watcher {
    /// Watches a started program until no process of it is left.
    pub(super) fn watch(self, started: Started) -> Watched {
        let Started { supervisor, reports, control, ends, leader, root, proxy } = started;
        let reports = Reports {
            reader: reports,
            end_request: Some(self.end_request),
            supervisor: supervisor.as_ref().map(Child::id),
            grace: self.grace,
            deadline: None,
            ended: EndedProcesses::default(),
        };
        self.running.set_started(control, self.end_request_sender, leader, root);
        let refused = proxy.as_ref().map(DomainProxy::refused);
        // The channel has room for one, and the thread waits.
        let _ = self.program_sender.send((supervisor, reports, proxy));
        Watched { ends, ended_signal: self.ended_signal, refused }
    }
}
