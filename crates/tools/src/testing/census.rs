//! A count of the processes that carry a mark, taken from `/proc`.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::patience;

/// Counts the processes that carry a mark of its own in their environment or their arguments, so that tests
/// that run side by side do not see each other's. Zombies are not counted.
#[derive(Debug)]
pub struct Census {
    mark: String,
}

impl Census {
    /// With a mark nobody else has.
    #[must_use]
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // Whoever counts processes starts some.
        super::before_main::keep();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        Self { mark: format!("marked-{}-{count}-{now}", std::process::id()) }
    }

    /// The mark: give it to [`Bench::env`](super::Bench::env), or to a program as an argument.
    #[must_use]
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Who lives: process ids and what they run.
    #[must_use]
    pub fn living(&self) -> Vec<(u32, String)> {
        let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = folders.filter_map(|folder| folder.file_name().to_str()?.parse::<u32>().ok());
        let is_marked = |bytes: &[u8]| bytes.windows(self.mark.len()).any(|part| part == self.mark.as_bytes());
        pids.filter_map(|pid| {
            let Program { arguments, environment } = Program::of(pid)?;
            (is_marked(&environment) || is_marked(&arguments))
                .then(|| (pid, String::from_utf8_lossy(&arguments).replace('\0', " ")))
        })
        .collect()
    }

    /// Waits until at least so many live.
    ///
    /// # Panics
    /// If they do not within [`patience()`].
    #[expect(clippy::panic, reason = "in tests, a panic is how a fault is told")]
    pub fn wait_living(&self, count: usize) {
        let by = Instant::now() + patience();
        while self.living().len() < count {
            if Instant::now() > by {
                panic!("fewer than {count} live: {:?}", self.living());
            }
            // The kernel tells nobody when a stranger is born.
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until none lives.
    ///
    /// # Panics
    /// If one still lives after [`patience()`].
    #[expect(clippy::panic, reason = "in tests, a panic is how a fault is told")]
    pub fn wait_none(&self) {
        let by = Instant::now() + patience();
        loop {
            let living = self.living();
            if living.is_empty() {
                return;
            }
            if Instant::now() > by {
                panic!("still alive after {:?}: {living:?}", patience());
            }
            // Nor when one dies.
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// What a process was started with, as `/proc` has it.
struct Program {
    arguments: Vec<u8>,
    environment: Vec<u8>,
}

impl Program {
    /// Of a process that has not ended. While `execve` replaces the program, both files are empty for a moment:
    /// they are read again until they are not, or the process has ended.
    fn of(pid: u32) -> Option<Self> {
        let mut program = Self { arguments: read(pid, "cmdline")?, environment: read(pid, "environ")? };
        for _ in 0..1_000 {
            let is_complete = !program.arguments.is_empty() && !program.environment.is_empty();
            // A process that has ended, or is the kernel's own, has no program and stays without.
            if is_complete || fs::read_link(format!("/proc/{pid}/exe")).is_err() {
                break;
            }
            thread::yield_now();
            program = Self { arguments: read(pid, "cmdline")?, environment: read(pid, "environ")? };
        }
        Some(program)
    }
}

/// A file of a process, from its first thread that has it: a thread that has ended has none. `None` if the
/// process is gone; empty where this user may not read it.
fn read(pid: u32, file: &str) -> Option<Vec<u8>> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let mut read = threads.map(|thread| fs::read(thread.path().join(file)).unwrap_or_default());
    Some(read.find(|bytes| !bytes.is_empty()).unwrap_or_default())
}

impl Default for Census {
    fn default() -> Self {
        Self::new()
    }
}
