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
        let marked = |file: Option<&Vec<u8>>| {
            file.is_some_and(|bytes| bytes.windows(self.mark.len()).any(|part| part == self.mark.as_bytes()))
        };
        pids.filter_map(|pid| {
            let environment = read(pid, "environ");
            let arguments = arguments(pid);
            (marked(environment.as_ref()) || marked(arguments.as_ref())).then(|| {
                let text = String::from_utf8_lossy(&arguments.unwrap_or_default()).replace('\0', " ");
                (pid, text)
            })
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

/// A file of a process, as its first thread has it that has any: one that has ended has none.
fn read(pid: u32, file: &str) -> Option<Vec<u8>> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let mut read = threads.filter_map(|thread| fs::read(thread.path().join(file)).ok()).peekable();
    read.peek()?;
    Some(read.find(|bytes| !bytes.is_empty()).unwrap_or_default())
}

/// What a process was started with. In the middle of starting another program it has nothing for a moment.
fn arguments(pid: u32) -> Option<Vec<u8>> {
    for _ in 0..1_000 {
        let arguments = read(pid, "cmdline")?;
        // One that has ended, or is the kernel's own, has no program and stays without.
        if !arguments.is_empty() || fs::read_link(format!("/proc/{pid}/exe")).is_err() {
            return Some(arguments);
        }
        thread::yield_now();
    }
    None
}

impl Default for Census {
    fn default() -> Self {
        Self::new()
    }
}
