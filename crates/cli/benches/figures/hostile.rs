//! Hostile clients of the daemon: oversized requests, too many connections, a killed client.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use holdpoint_common::PolicyMode;

use crate::api::DaemonWorld;
use crate::floors::Floor;
use crate::table::{Amount, Samples, Table};

const ROUNDS: usize = 20;
/// The maximum size of a request's body in bytes.
const MOST: usize = 10 * 1024 * 1024;
/// Connections that send half a request and stay: more than the daemon serves at once.
const HALF_OPEN: usize = 500;
/// How long other clients keep connecting and leaving.
const STORM: Duration = Duration::from_secs(5);

const STATUS: &[u8] = b"GET /v1/status HTTP/1.1\r\nhost: holdpoint\r\ncontent-length: 0\r\n\r\n";

pub(crate) fn measure(table: &Table) {
    if !table.wants(
        "hostile",
        &["request too large", "status during a storm", "client killed to detached"],
    ) {
        return;
    }
    let world = DaemonWorld::new();
    let session = world.runtime.block_on(world.open("rehearsal", PolicyMode::Ask));
    let prompts =
        format!("POST /v1/sessions/{}/prompts HTTP/1.1\r\nhost: holdpoint\r\n", session.id());
    let declared = format!("{prompts}content-length: {}\r\n\r\n", MOST + 1);
    let chunked = format!("{prompts}transfer-encoding: chunked\r\n\r\n");
    let chunk = [b"100000\r\n", &vec![b' '; 1 << 20][..], b"\r\n"].concat();
    for (what, head, more) in [
        ("a declared length", declared.as_str(), &b""[..]),
        ("a body without end", &chunked, &chunk),
        ("a header without end", "GET /v1/status HTTP/1.1\r\nx: ", &[b'x'; 4096]),
    ] {
        let refused = Samples::of(ROUNDS, || refused(&world.place.socket(), head.as_bytes(), more));
        table.figure_beside(
            Floor::RoundTrip,
            &format!("request too large by {what}, slowest (t-S3)"),
            refused.slowest(),
            Amount::ms(1_000),
        );
    }
    let storm = storm(&world.place.socket());
    table.figure_beside(
        Floor::RoundTrip,
        "status during a storm of connections, p99 (t-S5)",
        storm.p99(),
        Amount::ms(200),
    );
    let detached = Samples::of(ROUNDS, || killed(&world));
    table.figure_beside(
        Floor::RoundTrip,
        "client killed to detached, slowest (t-S11)",
        detached.slowest(),
        Amount::ms(5_000),
    );
}

/// The time from the first byte to the refusal. `more` is repeated after the head until the daemon
/// answers or closes.
fn refused(socket: &Path, head: &[u8], more: &[u8]) -> Duration {
    let since = Instant::now();
    let mut line = RawConnection::open(socket).unwrap();
    line.send(head).unwrap();
    while !more.is_empty() && !line.has_answer() && line.send(more).is_ok() {}
    // A connection that is closed before its answer is read is refused, too.
    let status = line.answer().unwrap_or(400);
    let took = since.elapsed();
    assert!((400..500).contains(&status), "{status}");
    took
}

/// Times requests over one connection while many others are half open and more keep connecting.
fn storm(socket: &Path) -> Samples {
    let mut kept = RawConnection::open(socket).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut took = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let since = Instant::now();
                // Among many idle connections, the daemon may have closed this one.
                while kept.send(STATUS).and_then(|()| kept.answer()).ok() != Some(200) {
                    kept = RawConnection::open(socket).unwrap();
                }
                took.push(since.elapsed());
            }
            took
        });
        let half_open: Vec<_> = (0..HALF_OPEN)
            .map(|_| {
                let mut line = RawConnection::open(socket).unwrap();
                // The daemon closes surplus connections.
                let _ = line.send(&STATUS[..STATUS.len() / 2]);
                line
            })
            .collect();
        let by = Instant::now() + STORM;
        while Instant::now() < by {
            drop(RawConnection::open(socket));
        }
        over.store(true, Ordering::Relaxed);
        let took = asking.join().unwrap();
        drop(half_open);
        Samples::new(took)
    })
}

/// The time from the client's SIGKILL until its session has no client.
fn killed(world: &DaemonWorld) -> Duration {
    let session = world.runtime.block_on(world.open("rehearsal", PolicyMode::Ask));
    let id = session.id().as_str();
    let clients = || world.runtime.block_on(world.sessions.look(id)).unwrap().clients;
    let mut client =
        world.place.command(&["logs", "--follow", id]).stdout(Stdio::null()).spawn().unwrap();
    while clients() == 0 {
        std::thread::yield_now();
    }
    let since = Instant::now();
    client.kill().unwrap();
    while clients() > 0 {
        std::thread::yield_now();
    }
    let took = since.elapsed();
    client.wait().unwrap();
    world.runtime.block_on(session.close()).unwrap();
    took
}

/// A connection for raw HTTP requests, one after the other.
struct RawConnection(BufReader<UnixStream>);

impl RawConnection {
    fn open(socket: &Path) -> io::Result<Self> {
        UnixStream::connect(socket).map(|stream| Self(BufReader::new(stream)))
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    fn has_answer(&self) -> bool {
        rustix::io::ioctl_fionread(self.0.get_ref()).is_ok_and(|bytes| bytes > 0)
    }

    /// Reads an answer with a length. Returns its status.
    fn answer(&mut self) -> io::Result<u16> {
        let (mut status, mut length, mut line) = (0, 0, String::new());
        loop {
            line.clear();
            if self.0.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let lower = line.trim_end().to_ascii_lowercase();
            if let Some(rest) = lower.strip_prefix("http/1.1 ") {
                status = rest[..3].parse().unwrap();
            } else if let Some(rest) = lower.strip_prefix("content-length: ") {
                length = rest.parse().unwrap();
            } else if lower.is_empty() {
                break;
            }
        }
        self.0.read_exact(&mut vec![0; length])?;
        Ok(status)
    }
}
