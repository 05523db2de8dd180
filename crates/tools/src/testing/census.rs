//! A count of the processes that carry a mark, taken from `/proc`.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::patience;

/// Counts the processes that carry a unique mark in their environment or their arguments, so that
/// tests that run in parallel do not count each other's. Zombies are not counted.
#[derive(Debug)]
pub struct Census {
    mark: String,
}

impl Census {
    /// Creates a census with a unique mark.
    #[must_use]
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // A test that counts processes also starts some.
        super::before_main::keep();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        Self { mark: format!("marked-{}-{count}-{now}", std::process::id()) }
    }

    /// The mark, to be passed to [`Bench::env`](super::Bench::env) or to a program as an argument.
    #[must_use]
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// The ids and arguments of all marked processes that are alive.
    #[must_use]
    pub fn living(&self) -> Vec<(u32, String)> {
        let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = folders.filter_map(|folder| folder.file_name().to_str()?.parse::<u32>().ok());
        let is_marked =
            |bytes: &[u8]| bytes.windows(self.mark.len()).any(|part| part == self.mark.as_bytes());
        pids.filter_map(|pid| {
            let Program { arguments, environment } = Program::of(pid)?;
            (is_marked(&environment) || is_marked(&arguments))
                .then(|| (pid, String::from_utf8_lossy(&arguments).replace('\0', " ")))
        })
        .collect()
    }

    /// Waits until at least `count` marked processes are alive.
    ///
    /// # Panics
    /// If there are fewer after [`patience()`].
    #[expect(clippy::panic, reason = "tests report faults by panicking")]
    pub fn wait_living(&self, count: usize) {
        let deadline = Instant::now() + patience();
        while self.living().len() < count {
            if Instant::now() > deadline {
                panic!("fewer than {count} are alive: {:?}", self.living());
            }
            // The kernel sends no event when an unrelated process starts.
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until no marked process is alive.
    ///
    /// # Panics
    /// If one is still alive after [`patience()`].
    #[expect(clippy::panic, reason = "tests report faults by panicking")]
    pub fn wait_none(&self) {
        let deadline = Instant::now() + patience();
        loop {
            let living = self.living();
            if living.is_empty() {
                return;
            }
            if Instant::now() > deadline {
                panic!("still alive after {:?}: {living:?}", patience());
            }
            // The kernel sends no event when an unrelated process ends.
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The arguments and the environment of a process, from `/proc`.
struct Program {
    arguments: Vec<u8>,
    environment: Vec<u8>,
}

impl Program {
    /// Reads the files of a process that has not ended. While `execve` replaces the program, both
    /// are briefly empty: they are read again until they are not, or the process has ended.
    fn of(pid: u32) -> Option<Self> {
        let mut program =
            Self { arguments: read(pid, "cmdline")?, environment: read(pid, "environ")? };
        for _ in 0..1_000 {
            let is_complete = !program.arguments.is_empty() && !program.environment.is_empty();
            // A process that has ended, or belongs to the kernel, has no program and never gets
            // one.
            if is_complete || fs::read_link(format!("/proc/{pid}/exe")).is_err() {
                break;
            }
            thread::yield_now();
            program = Self { arguments: read(pid, "cmdline")?, environment: read(pid, "environ")? };
        }
        Some(program)
    }
}

/// Reads a file of a process from its first thread where the file is not empty; it is empty for a
/// thread that has ended. `None` if the process is gone; empty if this user may not read the file.
fn read(pid: u32, file: &str) -> Option<Vec<u8>> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let mut contents = threads.map(|thread| fs::read(thread.path().join(file)).unwrap_or_default());
    Some(contents.find(|bytes| !bytes.is_empty()).unwrap_or_default())
}

impl Default for Census {
    fn default() -> Self {
        Self::new()
    }
}
