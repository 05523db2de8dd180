//! Prepares every test program before its `main`: it can serve as its own supervisor, and what it starts does not
//! depend on what started it.
#![allow(unsafe_code, reason = "what runs before main is outside of what the compiler can check")]

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};

/// The umask that the program's tests are written for.
const UMASK: Mode = Mode::from_bits_retain(0o022);

/// Open files that a test program and each of its children may have at least, if the hard limit lets them.
const FILES: u64 = 1024;

/// Before `main` only this runs, in one thread. A supervisor never returns from the first call.
#[ctor::ctor(unsafe)]
fn prepare() {
    crate::process::supervise_if_asked();
    #[cfg(target_os = "linux")]
    signals::restore_for_children();
    umask(UMASK);
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|most| most < FILES) {
        let most = limit.maximum.map_or(FILES, |hard| hard.min(FILES));
        // A machine that refuses has tests that say so.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..limit });
    }
}

/// Called where a test waits or starts something, so that the linker keeps this file's object.
pub(super) fn keep() {
    std::hint::black_box(prepare as fn());
}

/// Children inherit ignored signals through `exec`, and caught ones as their defaults. Under `nohup`, or as a
/// background job of `sh`, a test program ignores SIGHUP, SIGINT or SIGQUIT, and so would the program under test.
#[cfg(target_os = "linux")]
mod signals {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use signal_hook::consts::{SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2};

    /// The signals that tests send or wait for. Not SIGTTIN and SIGTTOU: caught instead of ignored, each restarts
    /// the read or write of the terminal that raised it, for ever. The standard library restores SIGPIPE and the
    /// mask of blocked signals in every child.
    const RESTORED: [i32; 9] = [SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2];

    /// Catches every signal that this process ignores, with a handler that does nothing: this process still ignores
    /// it, its children do not.
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
