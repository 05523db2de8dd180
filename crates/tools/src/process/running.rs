//! One started program as its owner sees it: what is known of it, and whoever waits for news.

use std::io::{self, PipeWriter, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use holdpoint_common::EndedProcesses;
use rustix::process::Pid;

use super::exit::Exit;
use super::start::over;
use super::{id, pid, wire};

/// One started program.
#[derive(Debug)]
pub(super) struct Running {
    known: Mutex<Known>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct Known {
    /// The way to its supervisor; none before it has started and after it is gone.
    control: Option<UnixStream>,
    /// It shall end; kept for when it has started.
    end: bool,
    /// Closed when it shall end, which wakes whoever watches over it.
    awaited: Option<PipeWriter>,
    /// The program's process.
    leader: u32,
    /// Where to look for what lives.
    root: Root,
    /// The program has ended.
    exit: Option<Exit>,
    /// All it has started has ended.
    ended: Option<EndedProcesses>,
    /// Its supervisor is gone too.
    gone: bool,
}

/// Where to look for the processes of a started program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Root {
    /// Nothing has started.
    #[default]
    Nowhere,
    /// Below this supervisor.
    Below(u32),
    /// In this process group.
    Group(u32),
}

impl Running {
    pub(super) fn new() -> Self {
        Self { known: Mutex::default(), news: Condvar::new() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, change: impl FnOnce(&mut Known)) {
        change(&mut self.known());
        self.news.notify_all();
    }

    /// Whether it shall end.
    pub(super) fn is_ending(&self) -> bool {
        self.known().end
    }

    /// Sends its supervisor the last of what to start, for which there is room, unless it shall end: from now on it is told
    /// this way.
    pub(super) fn set_ordered(&self, control: UnixStream, last: &[u8]) -> io::Result<()> {
        let mut known = self.known();
        if known.end {
            return Err(over());
        }
        (&control).write_all(last)?;
        known.control = Some(control);
        Ok(())
    }

    /// `awaited` is closed when it shall end.
    pub(super) fn set_started(&self, control: UnixStream, awaited: PipeWriter, leader: u32, root: Root) {
        self.tell(|known| {
            let end = known.end;
            if end {
                wire::send_end(&control);
            }
            let awaited = (!end).then_some(awaited);
            *known = Known { control: Some(control), awaited, leader, root, end, ..Known::default() };
        });
    }

    pub(super) fn set_exit(&self, exit: Exit) {
        self.tell(|known| known.exit = Some(exit));
    }

    pub(super) fn set_ended(&self, ended: EndedProcesses) {
        self.tell(|known| {
            known.exit.get_or_insert(Exit::Unknown);
            known.ended = Some(ended);
        });
    }

    pub(super) fn set_gone(&self) {
        self.tell(|known| {
            known.exit.get_or_insert(Exit::Unknown);
            known.ended.get_or_insert_default();
            known.control = None;
            known.awaited = None;
            known.gone = true;
        });
    }

    pub(super) fn leader(&self) -> u32 {
        self.known().leader
    }

    /// Begins to end it, at once or as soon as it has started.
    pub(super) fn end(&self) {
        let mut known = self.known();
        if !known.end {
            known.end = true;
            known.awaited = None;
            known.control.iter().for_each(wire::send_end);
        }
    }

    pub(super) fn wait_exit(&self, by: Option<Instant>) -> Option<Exit> {
        self.wait(by, |known| known.exit.is_some()).exit
    }

    /// What was ended; at the deadline, what is known.
    pub(super) fn wait_ended(&self, by: Instant) -> EndedProcesses {
        drop(self.wait(Some(by), |known| known.ended.is_some()));
        self.so_far()
    }

    pub(super) fn wait_gone(&self, by: Instant) {
        drop(self.wait(Some(by), |known| known.gone));
    }

    /// What was ended, once it is over.
    pub(super) fn gone(&self) -> Option<EndedProcesses> {
        let known = self.known();
        known.ended.clone().filter(|_| known.gone)
    }

    /// What was ended, or what lives now.
    pub(super) fn so_far(&self) -> EndedProcesses {
        let (ended, root) = {
            let known = self.known();
            (known.ended.clone(), known.root)
        };
        // Looking takes a moment: not while others wait for what is known.
        ended.unwrap_or_else(|| EndedProcesses {
            left: root.living().into_iter().map(id).collect(),
            ..EndedProcesses::default()
        })
    }

    fn wait(&self, by: Option<Instant>, done: impl Fn(&Known) -> bool) -> MutexGuard<'_, Known> {
        let mut known = self.known();
        while !done(&known) {
            known = match by.map(|by| by.saturating_duration_since(Instant::now())) {
                Some(left) if left.is_zero() => break,
                Some(left) => self.news.wait_timeout(known, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.news.wait(known).unwrap_or_else(PoisonError::into_inner),
            };
        }
        known
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
    fn what_shall_end_is_not_started_any_more() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let running = Running::new();
        running.end();
        assert!(running.set_ordered(ours, b"x").is_err());
        assert_eq!(theirs.read(&mut [0]).unwrap(), 0, "nothing of it was sent");
    }

    #[test]
    fn what_is_started_is_told_of_its_end_by_the_same_way() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let running = Running::new();
        running.set_ordered(ours, b"x").unwrap();
        running.end();
        let mut told = [0; 2];
        theirs.read_exact(&mut told).unwrap();
        assert_eq!(told, [b'x', wire::END]);
    }
}
