//! Runs a program without a supervisor, in its own process group, watched by threads of this
//! process.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::bounded;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::exit::Exit;
use super::running::Root;
use super::started::{Started, with_folder};
use super::streams::{ProgramEnds, Streams};
use super::wire::Report;
use super::{GIVE_UP, ProcessSpec, SETTLE, end_counts, id, timespec};
use crate::environment::program_anywhere;

/// How often a group is polled while it ends: the system does not report the end of a group.
const GROUP_POLL_INTERVAL: Duration = Duration::from_millis(2);

pub(super) fn start(spec: &ProcessSpec, streams: Streams, grace: Duration) -> io::Result<Started> {
    let (ours, theirs) = UnixStream::pair()?;
    let (exited, exited_sender) = UnixStream::pair()?;
    let (ends, ProgramEnds { stdin, stdout, stderr }) = streams.open()?;
    let reports = BufReader::new(ours.try_clone()?);
    // This thread starts before the program, so that the program's end is awaited even if a later
    // step fails.
    let (child_sender, child_receiver) = bounded(1);
    let waiter = thread::Builder::new().name("holdpoint-wait".into()).stack_size(64 * 1024);
    waiter.spawn(move || child_receiver.recv().map(|child| wait(child, &exited_sender)))?;
    let mut command = Command::new(find_program(spec));
    command
        .args(&spec.args)
        .env_clear()
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&spec.cwd)
        .stdin(stdin.map_or_else(Stdio::null, Stdio::from))
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0);
    let child = command.spawn().map_err(|error| with_folder(error, spec))?;
    drop(command);
    let leader = child.id();
    let pid = Pid::from_child(&child);
    // The channel has room for one, and the thread waits.
    let _ = child_sender.send(child);
    let watcher = thread::Builder::new().name("holdpoint-group".into()).stack_size(256 * 1024);
    if let Err(error) = watcher.spawn(move || watch_group(theirs, exited, pid, grace)) {
        let _ = kill_process_group(pid, Signal::KILL);
        return Err(error);
    }
    let root = Root::Group(leader);
    Ok(Started { supervisor: None, reports, control: ours, ends, leader, root, proxy: None })
}

/// Looks up the program here, because `Command` would otherwise fork, which is slow in a large
/// process, instead of spawning.
fn find_program(spec: &ProcessSpec) -> OsString {
    if spec.program.as_bytes().contains(&b'/') {
        return spec.program.clone();
    }
    program_anywhere(&spec.program, &spec.env).map_or_else(|| spec.program.clone(), OsString::from)
}

fn wait(mut child: Child, sender: &UnixStream) {
    let exit = child.wait().map_or(Exit::Unknown, Exit::from);
    Report::Exited(exit).send_to(sender);
}

/// Ends the group when the program has ended, or when the owner asks for it or is gone.
fn watch_group(control: UnixStream, exited: UnixStream, group: Pid, grace: Duration) {
    let mut watcher = GroupWatcher { control, exited: Some(exited), group };
    watcher.wait_ended_or_asked();
    let (mut sent_term, mut killed) = (HashSet::new(), HashSet::new());
    // Processes that the program left may end by themselves first, unless the owner wants them
    // ended.
    if watcher.exited.is_some() || !watcher.wait_empty(Instant::now() + SETTLE) {
        sent_term.extend(members(group));
        let _ = kill_process_group(group, Signal::TERM);
        let _ = kill_process_group(group, Signal::CONT);
        if !watcher.wait_empty(Instant::now() + grace) {
            killed.extend(members(group));
            let _ = kill_process_group(group, Signal::KILL);
            watcher.wait_empty(Instant::now() + GIVE_UP);
        }
    }
    Report::Ended(end_counts(&sent_term, &killed, members(group))).send_to(&watcher.control);
}

struct GroupWatcher {
    control: UnixStream,
    /// Receives how the program ended; `None` once that was forwarded.
    exited: Option<UnixStream>,
    group: Pid,
}

impl GroupWatcher {
    /// Waits until the program has ended, or the owner asks to end it.
    fn wait_ended_or_asked(&mut self) {
        let Some(exited) = &self.exited else { return };
        let mut fds =
            [PollFd::new(exited, PollFlags::IN), PollFd::new(&self.control, PollFlags::IN)];
        while poll(&mut fds, None).is_err_and(|error| error == rustix::io::Errno::INTR) {}
        if !fds[0].revents().is_empty() {
            self.forward_exit();
        }
    }

    fn forward_exit(&mut self) {
        let mut line = String::new();
        let was_read =
            self.exited.take().is_some_and(|mut exited| exited.read_to_string(&mut line).is_ok());
        if let Some(report) = Report::parse(&line).filter(|_| was_read) {
            report.send_to(&self.control);
        }
    }

    /// Waits until the group is empty, and forwards how the program ended as soon as that is known.
    /// Returns `false` at the deadline.
    fn wait_empty(&mut self, deadline: Instant) -> bool {
        loop {
            let has_exited = match &self.exited {
                None => false,
                Some(exited) => {
                    let mut fds = [PollFd::new(exited, PollFlags::IN)];
                    poll(&mut fds, Some(&timespec(GROUP_POLL_INTERVAL)))
                        .is_ok_and(|ready| ready > 0)
                }
            };
            if has_exited {
                self.forward_exit();
            }
            if self.exited.is_none() && members(self.group).is_empty() {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            if self.exited.is_none() {
                let _ = poll(&mut [], Some(&timespec(GROUP_POLL_INTERVAL)));
            }
        }
    }
}

/// The members of the group. Where the system can't list them, its leader if the group has any.
fn members(group: Pid) -> Vec<Pid> {
    if test_kill_process_group(group).is_err() {
        return Vec::new();
    }
    Root::Group(id(group)).living()
}
