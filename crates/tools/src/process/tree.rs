//! The process tree below one process, read from `/proc`.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

/// The living processes below `root`, parents before their children. Zombies are left out.
///
/// This is a snapshot: a process that is started meanwhile may be missing. A caller that needs all
/// of them walks until it finds no new process, and waits for its children to be gone.
pub(super) fn descendants(root: Pid) -> Vec<Pid> {
    let mut found = Vec::new();
    let mut seen = HashSet::from([root]);
    let mut level = vec![root];
    while !level.is_empty() {
        let mut next = Vec::new();
        for parent in level {
            let Some(children) = children(parent) else { return scan_descendants(root) };
            next.extend(children.into_iter().filter(|child| seen.insert(*child)));
        }
        // A dead process has no children: they were passed to its reaper.
        next.retain(|pid| is_alive(*pid));
        found.extend(&next);
        level = next;
    }
    found
}

/// The children of `parent`, including zombies. `None` if this kernel does not list them.
pub(super) fn children(parent: Pid) -> Option<Vec<Pid>> {
    let parent = parent.as_raw_pid();
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { return Some(Vec::new()) };
    let mut found = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => found.extend(list.split_whitespace().filter_map(pid)),
            // The kernel has no such file, or the thread is gone.
            Err(_) if thread.path().exists() => return None,
            Err(_) => {}
        }
    }
    Some(found)
}

/// Stops all processes that `find` returns, until it returns no new ones, so that none can be
/// started meanwhile. Returns the stopped processes.
pub(super) fn freeze(find: impl Fn() -> Vec<Pid>) -> HashSet<Pid> {
    let mut frozen = HashSet::new();
    // A bound, in case a program starts others faster than they are found.
    for _ in 0..100 {
        let fresh: Vec<Pid> = find().into_iter().filter(|pid| frozen.insert(*pid)).collect();
        if fresh.is_empty() {
            break;
        }
        for pid in fresh {
            let _ = kill_process(pid, Signal::STOP);
        }
    }
    frozen
}

/// Whether the process exists and is not a zombie. If only its first thread has ended, it looks
/// like a zombie but lives on in its other threads.
pub(super) fn is_alive(pid: Pid) -> bool {
    stat(pid).is_some_and(|stat| stat.alive)
}

/// The members of a session, without zombies.
pub(super) fn session(id: Pid) -> Vec<Pid> {
    all_processes()
        .filter(|(_, stat)| stat.alive && stat.session == id.as_raw_pid())
        .map(|(pid, _)| pid)
        .collect()
}

/// The members of a process group, without zombies.
pub(super) fn group(id: Pid) -> Vec<Pid> {
    all_processes()
        .filter(|(_, stat)| stat.alive && stat.group == id.as_raw_pid())
        .map(|(pid, _)| pid)
        .collect()
}

fn scan_descendants(root: Pid) -> Vec<Pid> {
    let all: Vec<_> = all_processes().filter(|(_, stat)| stat.alive).collect();
    let mut found = Vec::new();
    let mut level = vec![root];
    while !level.is_empty() {
        let below = |stat: &Stat| level.iter().any(|parent| parent.as_raw_pid() == stat.parent);
        let next: Vec<Pid> =
            all.iter().filter(|(_, stat)| below(stat)).map(|(pid, _)| *pid).collect();
        found.extend(&next);
        level = next;
    }
    found
}

/// The part of `/proc/PID/stat` that this crate uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stat {
    /// The name of the process, at most 15 bytes. Only the process itself can change it.
    pub(super) name: Vec<u8>,
    alive: bool,
    /// The parent; 0 for a process without one in this namespace.
    pub(super) parent: i32,
    group: i32,
    session: i32,
    /// When the process started, in clock ticks after boot. The number of an ended process may be
    /// used again, but not in the same tick.
    pub(super) started: u64,
}

fn all_processes() -> impl Iterator<Item = (Pid, Stat)> {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    folders
        .filter_map(|folder| pid(folder.file_name().to_str()?))
        .filter_map(|pid| Some((pid, stat(pid)?)))
}

fn stat(pid: Pid) -> Option<Stat> {
    read_stat(pid).ok().flatten()
}

/// Reads the state of a process; `None` if it does not exist any more, or belongs to another user
/// and is hidden.
pub(super) fn read_stat(pid: Pid) -> io::Result<Option<Stat>> {
    // One read returns the whole line, which is never this long. `fs::read` takes seven.
    let mut line = [0; 4096];
    let file = File::open(format!("/proc/{}/stat", pid.as_raw_pid()));
    match file.and_then(|mut file| file.read(&mut line)) {
        Ok(bytes) => Ok(parse(&line[..bytes])),
        // The meaning of `hidepid` decides whether a hidden process seems to exist.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
            ) || error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Parses `pid (name) state parent group session …`. The name may contain any bytes, including
/// parentheses. The state is that of the first thread. Of the later fields, the 20th is the number
/// of threads and the 22nd the time of the start. A process without threads has ended, and its
/// other fields are 0.
fn parse(stat: &[u8]) -> Option<Stat> {
    let open = stat.iter().position(|byte| *byte == b'(')?;
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let name = stat.get(open + 1..close)?.to_vec();
    let mut fields = str::from_utf8(&stat[close + 1..]).ok()?.split_whitespace();
    let state = fields.next()?;
    let mut number = || fields.next()?.parse::<i32>().ok();
    let (parent, group, session) = (number()?, number()?, number()?);
    let threads = fields.nth(13)?.parse::<u32>().ok()?;
    let started = fields.nth(1)?.parse().ok()?;
    let alive = match state {
        "Z" => threads > 1,
        state => state != "X",
    };
    (threads > 0).then_some(Stat { name, alive, parent, group, session, started })
}

fn pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_can_not_fake_the_process_state() {
        let stat = |name: &str, state: &str, threads: u32| {
            let line =
                format!("17 ({name}) {state} 4 5 6 0 -1 4 0 0 0 0 0 0 0 0 20 0 {threads} 0 99 8");
            parse(line.as_bytes())
        };
        let faked = stat("a) Z 1 (b", "S", 1).unwrap();
        assert!(faked.alive);
        assert_eq!(faked.name, b"a) Z 1 (b");
        assert_eq!((faked.parent, faked.group, faked.session, faked.started), (4, 5, 6, 99));
        assert!(parse(b"17 (\xff\n) S 4 5 6 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 99 8").is_some());
        assert!(!stat("bash", "Z", 1).unwrap().alive);
        assert!(
            stat("bash", "Z", 2).unwrap().alive,
            "the first thread has ended, another one runs"
        );
        assert_eq!(stat("bash", "X", 0), None);
        assert_eq!(parse(b"17 (bash) S 4 5 6"), None);
        assert_eq!(parse(b"17"), None);
    }

    #[test]
    fn both_methods_of_listing_descendants_agree() {
        let mut child = std::process::Command::new("bash")
            .args(["-c", "sleep 60 & (sleep 60 & wait) & echo; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Read::read(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let root = Pid::from_child(&child);
        let mut walked = descendants(root);
        while walked.len() < 3 {
            walked = descendants(root);
        }
        let mut scanned = scan_descendants(root);
        for pid in &walked {
            rustix::process::kill_process(*pid, rustix::process::Signal::KILL).unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        walked.sort_by_key(|pid| pid.as_raw_pid());
        scanned.sort_by_key(|pid| pid.as_raw_pid());
        assert_eq!(walked, scanned);
    }
}
