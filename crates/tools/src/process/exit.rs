//! How a program ended: with a code or by a signal.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::Signal;

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// The program exited with this code.
    Code(i32),
    /// The program was ended by this signal.
    Signal(i32),
    /// The end is not known, because the supervisor was killed.
    Unknown,
}

impl Exit {
    /// Whether the program exited with code 0.
    #[must_use]
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }

    /// The name of the signal that ended the program, such as `SIGTERM`, if it has one.
    #[must_use]
    pub fn signal_name(self) -> Option<&'static str> {
        match self {
            Self::Signal(signal) => signal_name(signal),
            Self::Code(_) | Self::Unknown => None,
        }
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Unknown,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "ended by signal {signal} ({name})"),
                None => write!(f, "ended by signal {signal}"),
            },
            Self::Unknown => f.write_str("exit status unknown: its supervisor was killed"),
        }
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    const NAMES: [(Signal, &str); 15] = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
    ];
    NAMES.iter().find(|(known, _)| known.as_raw() == signal).map(|(_, name)| *name)
}
