//! The protocol between a process and its supervisor: the program to start, the command to end, and
//! the reports.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use holdpoint_common::EndedProcesses;
use rustix::net::{SendFlags, send};

use super::exit::Exit;
use crate::sandbox::Confinement;

/// The one command: end everything.
pub(super) const END: u8 = b'E';

/// The most bytes of a program with its arguments: more than any system runs.
const MAX_PROGRAM: usize = 16 * 1024 * 1024;

/// The program that a supervisor starts, in the supervisor's own folder and environment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) grace: Duration,
    pub(super) confinement: Confinement,
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
}

impl Order {
    /// Encodes a length of four bytes, then the grace in milliseconds, the restrictions, the program
    /// and its arguments, with zero bytes between them.
    pub(super) fn encode(
        grace: Duration,
        confinement: &Confinement,
        program: &OsStr,
        args: &[OsString],
    ) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; 4];
        bytes.extend(grace.as_millis().to_string().bytes());
        let restrictions = confinement.encode();
        let [restrictions, args] =
            [&restrictions[..], args].map(|parts| parts.iter().map(OsString::as_os_str));
        for part in restrictions.chain([program]).chain(args) {
            if part.as_bytes().contains(&0) {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "a zero byte in a program or its arguments",
                ));
            }
            bytes.push(0);
            bytes.extend(part.as_bytes());
        }
        let length = u32::try_from(bytes.len() - 4)
            .ok()
            .filter(|length| *length as usize <= MAX_PROGRAM)
            .ok_or_else(|| io::Error::from(io::ErrorKind::ArgumentListTooLong))?;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        Ok(bytes)
    }

    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "supervisors are for Linux"))]
    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_PROGRAM {
            return Err(invalid());
        }
        let mut bytes = vec![0; length];
        from.read_exact(&mut bytes)?;
        let mut parts = bytes.split(|byte| *byte == 0);
        let grace = parts
            .next()
            .and_then(|grace| str::from_utf8(grace).ok()?.parse().ok())
            .ok_or_else(invalid)?;
        let confinement = Confinement::decode(&mut parts).ok_or_else(invalid)?;
        let mut parts = parts.map(|part| OsString::from_vec(part.to_vec()));
        let program = parts.next().ok_or_else(invalid)?;
        let grace = Duration::from_millis(grace);
        Ok(Self { grace, confinement, program, args: parts.collect() })
    }
}

/// A message from a supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Report {
    /// The program runs.
    Started { pid: u32 },
    /// The program could not be started: the system's error number.
    Refused { errno: i32 },
    /// The program was not started, because the sandbox could not be set up: the reason, in one
    /// line.
    NotConfined { why: String },
    /// The program has ended; processes that it started may live.
    Exited(Exit),
    /// Every process is gone, except for those in `not_ended`.
    Ended(EndedProcesses),
}

impl Report {
    fn line(&self) -> String {
        match self {
            Self::Started { pid } => format!("started {pid}\n"),
            Self::Refused { errno } => format!("refused {errno}\n"),
            Self::NotConfined { why } => format!("not-confined {}\n", why.replace('\n', " ")),
            Self::Exited(Exit::Code(code)) => format!("exited {code}\n"),
            Self::Exited(Exit::Signal(signal)) => format!("signalled {signal}\n"),
            Self::Exited(Exit::Unknown) => "lost\n".to_owned(),
            Self::Ended(ended) => {
                let mut line = format!("ended {} {}", ended.terminated, ended.killed);
                for pid in &ended.not_ended {
                    line.push_str(&format!(" {pid}"));
                }
                line.push('\n');
                line
            }
        }
    }

    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let kind = words.next()?;
        Some(match kind {
            "started" => Self::Started { pid: words.next()?.parse().ok()? },
            "refused" => Self::Refused { errno: words.next()?.parse().ok()? },
            "not-confined" => {
                let why = line.trim_end().split_once(' ').map_or("", |(_, why)| why);
                Self::NotConfined { why: why.to_owned() }
            }
            "exited" => Self::Exited(Exit::Code(words.next()?.parse().ok()?)),
            "signalled" => Self::Exited(Exit::Signal(words.next()?.parse().ok()?)),
            "lost" => Self::Exited(Exit::Unknown),
            "ended" => Self::Ended(EndedProcesses {
                terminated: words.next()?.parse().ok()?,
                killed: words.next()?.parse().ok()?,
                not_ended: words.map(str::parse).collect::<Result<_, _>>().ok()?,
            }),
            _ => return None,
        })
    }

    /// Sends the report. A closed socket is not an error here: it is noticed where commands are
    /// read.
    pub(super) fn send_to(&self, to: impl AsFd) {
        let line = self.line();
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            match send(to.as_fd(), rest, quiet()) {
                Ok(sent) => rest = &rest[sent..],
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }
}

/// Sends the command to end. Never blocks: without room, the byte is dropped, and an unread one
/// means the same.
pub(super) fn send_end(to: impl AsFd) {
    let _ = send(to.as_fd(), &[END], quiet() | SendFlags::DONTWAIT);
}

/// Prevents SIGPIPE when the other side is gone.
fn quiet() -> SendFlags {
    #[cfg(target_os = "linux")]
    return SendFlags::NOSIGNAL;
    // The Rust runtime ignores SIGPIPE.
    #[cfg(not(target_os = "linux"))]
    return SendFlags::empty();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_arrive_as_they_were_sent() {
        let args: Vec<OsString> =
            vec!["-c".into(), String::new().into(), OsString::from_vec(vec![0xff, b'\n'])];
        for confinement in [
            Confinement::None,
            Confinement::Bwrap { listens: false },
            Confinement::Bwrap { listens: true },
            Confinement::Landlock {
                readable: vec!["/usr".into(), OsString::from_vec(vec![b'/', 0xff]).into()],
                writable: vec!["/w".into()],
                network: true,
            },
        ] {
            let grace = Duration::from_millis(70);
            let bytes = Order::encode(grace, &confinement, OsStr::new("bash"), &args).unwrap();
            let order = Order::read(&mut &bytes[..]).unwrap();
            let args = args.clone();
            assert_eq!(order, Order { grace, confinement, program: "bash".into(), args });
            assert!(Order::read(&mut &bytes[..bytes.len() - 1]).is_err());
        }
        let encode = |program| Order::encode(Duration::ZERO, &Confinement::None, program, &[]);
        assert!(encode(OsStr::new("a\0b")).is_err());
    }

    #[test]
    fn reports_arrive_as_they_were_sent() {
        let ended = |not_ended: &[u32]| {
            Report::Ended(EndedProcesses {
                terminated: 3,
                killed: 1,
                not_ended: not_ended.to_vec(),
            })
        };
        for report in [
            Report::Started { pid: 7 },
            Report::Refused { errno: 2 },
            Report::NotConfined { why: "no such feature".to_owned() },
            Report::Exited(Exit::Code(255)),
            Report::Exited(Exit::Signal(9)),
            Report::Exited(Exit::Unknown),
            ended(&[]),
            ended(&[12, 13]),
        ] {
            assert_eq!(Report::parse(&report.line()), Some(report));
        }
        assert_eq!(Report::parse("something else"), None);
    }
}
