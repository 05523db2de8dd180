//! Without a supervisor: a program in a process group of its own, watched by threads of ours.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, BufReader, Read};
use std::os::fd::OwnedFd;
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
use super::started::{Started, in_folder};
use super::wire::Report;
use super::{GIVE_UP, ProcessSpec, SETTLE, counted, id, timespec};
use crate::environment::program_anywhere;

/// How often a group is looked at while it ends: the system tells nobody when a group is gone.
const LOOK: Duration = Duration::from_millis(2);

pub(super) fn start(spec: &ProcessSpec, grace: Duration) -> io::Result<Started> {
    let (ours, theirs) = UnixStream::pair()?;
    let (exited, tell_exited) = UnixStream::pair()?;
    let (output, to_output) = io::pipe()?;
    let reports = BufReader::new(ours.try_clone()?);
    // Before there is a program: who waits for its end is there, whatever fails then.
    let (give, given) = bounded(1);
    let waiter = thread::Builder::new().name("holdpoint-wait".into()).stack_size(64 * 1024);
    waiter.spawn(move || given.recv().map(|child| wait(child, &tell_exited)))?;
    let mut command = Command::new(find(spec));
    command
        .args(&spec.args)
        .env_clear()
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&spec.cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::from(to_output.try_clone()?))
        .stderr(Stdio::from(OwnedFd::from(to_output)))
        .process_group(0);
    let child = command.spawn().map_err(|error| in_folder(error, spec))?;
    drop(command);
    let leader = child.id();
    let pid = Pid::from_child(&child);
    // There is room for it, and the thread waits.
    let _ = give.send(child);
    let keeper = thread::Builder::new().name("holdpoint-group".into()).stack_size(256 * 1024);
    if let Err(error) = keeper.spawn(move || keep(theirs, exited, pid, grace)) {
        let _ = kill_process_group(pid, Signal::KILL);
        return Err(error);
    }
    let root = Root::Group(leader);
    Ok(Started { supervisor: None, reports, control: ours, output, leader, root })
}

/// Looked up here, since `Command` would fork, which is slow in a large program, instead of spawning.
fn find(spec: &ProcessSpec) -> OsString {
    if spec.program.as_bytes().contains(&b'/') {
        return spec.program.clone();
    }
    program_anywhere(&spec.program, &spec.env).map_or_else(|| spec.program.clone(), OsString::from)
}

fn wait(mut child: Child, tell: &UnixStream) {
    let exit = child.wait().map_or(Exit::Unknown, Exit::from);
    Report::Exited(exit).tell(tell);
}

/// Ends the group when the program has ended, the owner says so, or is gone.
fn keep(control: UnixStream, exited: UnixStream, group: Pid, grace: Duration) {
    let mut keeper = Keeper { control, exited: Some(exited), group };
    keeper.until_over();
    let (mut told, mut killed) = (HashSet::new(), HashSet::new());
    // What the program left may end by itself; what the owner wants ended may not.
    if keeper.exited.is_some() || !keeper.gone_by(Instant::now() + SETTLE) {
        told.extend(members(group));
        let _ = kill_process_group(group, Signal::TERM);
        let _ = kill_process_group(group, Signal::CONT);
        if !keeper.gone_by(Instant::now() + grace) {
            killed.extend(members(group));
            let _ = kill_process_group(group, Signal::KILL);
            keeper.gone_by(Instant::now() + GIVE_UP);
        }
    }
    Report::Ended(counted(&told, &killed, members(group))).tell(&keeper.control);
}

struct Keeper {
    control: UnixStream,
    /// Tells how the program ended; none once it was passed on.
    exited: Option<UnixStream>,
    group: Pid,
}

impl Keeper {
    /// Waits until the program has ended, or the owner says that it shall.
    fn until_over(&mut self) {
        let Some(exited) = &self.exited else { return };
        let mut fds = [PollFd::new(exited, PollFlags::IN), PollFd::new(&self.control, PollFlags::IN)];
        while poll(&mut fds, None).is_err_and(|error| error == rustix::io::Errno::INTR) {}
        if !fds[0].revents().is_empty() {
            self.pass_on();
        }
    }

    fn pass_on(&mut self) {
        let mut line = String::new();
        let told = self.exited.take().is_some_and(|mut exited| exited.read_to_string(&mut line).is_ok());
        if let Some(report) = Report::parse(&line).filter(|_| told) {
            report.tell(&self.control);
        }
    }

    /// Waits until nobody is left in the group, and passes on how the program ended as soon as that is known.
    fn gone_by(&mut self, by: Instant) -> bool {
        loop {
            let over = match &self.exited {
                None => false,
                Some(exited) => {
                    let mut fds = [PollFd::new(exited, PollFlags::IN)];
                    poll(&mut fds, Some(&timespec(LOOK))).is_ok_and(|ready| ready > 0)
                }
            };
            if over {
                self.pass_on();
            }
            if self.exited.is_none() && members(self.group).is_empty() {
                return true;
            }
            if Instant::now() >= by {
                return false;
            }
            if self.exited.is_none() {
                let _ = poll(&mut [], Some(&timespec(LOOK)));
            }
        }
    }
}

/// Who is in the group now; where the system can't be asked, its leader if anyone is.
fn members(group: Pid) -> Vec<Pid> {
    if test_kill_process_group(group).is_err() {
        return Vec::new();
    }
    Root::Group(id(group)).living()
}
