//! Prepares every test program before its `main`: it can serve as its own supervisor, and its child
//! processes do not depend on how the program was started.
#![allow(unsafe_code, reason = "the compiler can't check code that runs before main")]

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};

/// The umask that the tests expect.
const UMASK: Mode = Mode::from_bits_retain(0o022);

/// The least number of open files for a test program and each of its children, if the hard limit
/// allows it.
const MIN_OPEN_FILES: u64 = 1024;

/// The only code that runs before `main`, in one thread. In a supervisor, the first call never
/// returns.
#[ctor::ctor(unsafe)]
fn prepare() {
    crate::process::supervise_if_asked();
    #[cfg(target_os = "linux")]
    signals::restore_for_children();
    umask(UMASK);
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|soft| soft < MIN_OPEN_FILES) {
        let raised = limit.maximum.map_or(MIN_OPEN_FILES, |hard| hard.min(MIN_OPEN_FILES));
        // If this fails, the tests that need more files report it.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..limit });
    }
}

/// Called where a test waits or starts something, so that the linker keeps this file's object.
pub(super) fn keep() {
    std::hint::black_box(prepare as fn());
}

/// Children inherit ignored signals through `exec`, while caught ones get their default action.
/// Under `nohup`, or as a background job of `sh`, a test program ignores SIGHUP, SIGINT or SIGQUIT,
/// and so would the program under test.
#[cfg(target_os = "linux")]
mod signals {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use signal_hook::consts::{
        SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2,
    };

    /// The signals that tests send or wait for. SIGTTIN and SIGTTOU are left out: if they are
    /// caught instead of ignored, each restarts the read or write of the terminal that raised it,
    /// for ever. The standard library restores SIGPIPE and the mask of blocked signals in every
    /// child.
    const RESTORED: [i32; 9] =
        [SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2];

    /// Catches every signal that this process ignores, with an empty handler: this process still
    /// ignores it, its children do not.
    pub(super) fn restore_for_children() {
        let ignored = ignored();
        for signal in RESTORED {
            if ignored & (1 << (signal - 1)) != 0 {
                let _ = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)));
            }
        }
    }

    /// The signals that this process ignores, one bit each.
    fn ignored() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
    }
}
