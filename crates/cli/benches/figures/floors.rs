//! The costs of the machine itself.

use std::fmt;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::time::{ClockId, clock_gettime};

use crate::api::{RATE, SECONDS, STREAMS};
use crate::support::{line_of, pidfds, wait_all};
use crate::table::{Amount, Samples, Table};

/// A cost of the machine itself, with which figures are compared.
#[derive(Clone, Copy)]
pub(crate) enum Floor {
    /// One thread wakes another.
    Hop,
    /// A byte goes to another thread over a socket, and one returns.
    RoundTrip,
    /// A program starts and ends.
    Spawn,
    /// A group of processes is killed and gone.
    Kill,
    /// A page is appended to a file and synced to the disk.
    Sync,
}

/// The samples of each floor.
pub(crate) struct Floors {
    hop: Samples,
    round_trip: Samples,
    spawn: Samples,
    kill: Samples,
    sync: Samples,
}

impl Floors {
    pub(crate) fn measure() -> Self {
        let spawn = Samples::of(200, || {
            let since = Instant::now();
            Command::new("/bin/true").status().unwrap();
            since.elapsed()
        });
        Self { hop: hop(), round_trip: round_trip(), spawn, kill: group(), sync: sync() }
    }

    pub(crate) fn of(&self, floor: Floor) -> Duration {
        match floor {
            Floor::Hop => &self.hop,
            Floor::RoundTrip => &self.round_trip,
            Floor::Spawn => &self.spawn,
            Floor::Kill => &self.kill,
            Floor::Sync => &self.sync,
        }
        .middle()
    }
}

impl fmt::Display for Floor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hop => "hops",
            Self::RoundTrip => "round trips",
            Self::Spawn => "spawns",
            Self::Kill => "kills",
            Self::Sync => "syncs",
        })
    }
}

pub(crate) fn measure(table: &Table) {
    if !table.wants("floors", &[]) {
        return;
    }
    let floors = table.floors();
    table.note("hop: thread to thread, p50", floors.hop.median());
    table.note("   … p99", floors.hop.p99());
    table.note("round trip: thread to thread and back over a socket", floors.round_trip.median());
    table.note("spawn: /bin/true started and reaped", floors.spawn.median());
    table.note("kill: a group of four gone", floors.kill.median());
    table.note("sync: 4 KiB appended to a file and synced", floors.sync.median());
    for threads in [1, 3] {
        let what = format!("a piece read and written by {threads} thread(s) in a row, CPU");
        table.note(&what, Amount::Time(relay(threads, STREAMS)));
    }
}

/// The CPU time that a row of threads uses for each piece, if each thread only reads it from the
/// one before and writes it to the next. The streams are as fast as those of the group `trickle`.
pub(crate) fn relay(threads: usize, streams: usize) -> Duration {
    let pairs: Vec<(Vec<_>, Vec<_>)> =
        (0..=threads).map(|_| (0..streams).map(|_| UnixStream::pair().unwrap()).unzip()).collect();
    let (mut enters, mut leaves): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let (first, last) = (enters.remove(0), leaves.pop().unwrap());
    let relays = leaves.into_iter().zip(enters).map(|(from, to)| {
        std::thread::spawn(move || {
            pass_on(&from, |at, piece| (&to[at]).write_all(piece).unwrap());
            let used = clock_gettime(ClockId::ThreadCPUTime);
            Duration::new(used.tv_sec.try_into().unwrap(), used.tv_nsec.try_into().unwrap())
        })
    });
    let relays: Vec<_> = relays.collect();
    let reads = std::thread::spawn(move || {
        let mut pieces = 0;
        pass_on(&last, |_, _| pieces += 1);
        pieces
    });
    for _ in 0..RATE * SECONDS {
        for stream in &first {
            std::thread::sleep(Duration::from_secs(1) / u32::try_from(RATE * streams).unwrap());
            (&*stream).write_all(&[b'x'; 200]).unwrap();
        }
    }
    drop(first);
    let used: Duration = relays.into_iter().map(|relay| relay.join().unwrap()).sum();
    used / reads.join().unwrap()
}

/// Passes the data of these streams to `take`, until all of them have ended.
fn pass_on(streams: &[UnixStream], mut take: impl FnMut(usize, &[u8])) {
    let mut open: Vec<usize> = (0..streams.len()).collect();
    let mut piece = [0; 4096];
    while !open.is_empty() {
        let mut polled: Vec<_> =
            open.iter().map(|at| PollFd::new(&streams[*at], PollFlags::IN)).collect();
        poll(&mut polled, None).unwrap();
        let ready: Vec<_> = polled.iter().map(|stream| !stream.revents().is_empty()).collect();
        let mut ready = ready.into_iter();
        open.retain(|at| {
            if !ready.next().unwrap() {
                return true;
            }
            let bytes = (&streams[*at]).read(&mut piece).unwrap();
            if bytes > 0 {
                take(*at, &piece[..bytes]);
            }
            bytes > 0
        });
    }
}

/// Half of a round trip between two threads that block.
fn hop() -> Samples {
    let (there, requests) = mpsc::channel::<()>();
    let (answers, back) = mpsc::channel();
    let echo =
        std::thread::spawn(move || requests.into_iter().for_each(|()| answers.send(()).unwrap()));
    let hop = Samples::of(5_000, || {
        let since = Instant::now();
        there.send(()).unwrap();
        back.recv().unwrap();
        since.elapsed() / 2
    });
    drop(there);
    echo.join().unwrap();
    hop
}

fn round_trip() -> Samples {
    let (near, far) = UnixStream::pair().unwrap();
    let echo = std::thread::spawn(move || {
        let mut byte = [0];
        while (&far).read(&mut byte).unwrap() > 0 {
            (&far).write_all(&byte).unwrap();
        }
    });
    let round_trip = Samples::of(5_000, || {
        let since = Instant::now();
        (&near).write_all(b"x").unwrap();
        (&near).read_exact(&mut [0]).unwrap();
        since.elapsed()
    });
    drop(near);
    echo.join().unwrap();
    round_trip
}

fn group() -> Samples {
    Samples::of(100, || {
        let mut leader = Command::new("bash")
            .args(["-c", crate::trees::PLAIN])
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let watched = pidfds(&line_of(leader.stdout.take().unwrap(), "PIDS "));
        let since = Instant::now();
        kill_process_group(Pid::from_child(&leader), Signal::KILL).unwrap();
        wait_all(&watched);
        let gone = since.elapsed();
        leader.wait().unwrap();
        gone
    })
}

fn sync() -> Samples {
    let mut file = tempfile::tempfile().unwrap();
    Samples::of(50, || {
        let since = Instant::now();
        file.write_all(&[b'x'; 4096]).unwrap();
        file.sync_data().unwrap();
        since.elapsed()
    })
}
