//! A program that is talked to over its standard input and output, such as the server of a
//! protocol. Its error output is kept apart.

use std::collections::VecDeque;
use std::io::{self, PipeReader, PipeWriter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use holdpoint_common::EndedProcesses;

use super::exit::Exit;
use super::program::Process;
use super::running::Running;

/// How much of the error output is kept, in bytes: its end.
pub const MAX_KEPT_ERRORS: usize = 4 * 1024;

/// The size of the stack of the thread that reads the error output, in bytes.
const STACK: usize = 128 * 1024;

/// A started program with the pipes to its standard input and output.
#[derive(Debug)]
pub struct Duplex {
    /// The program.
    pub process: DuplexProcess,
    /// Writes to the program's standard input, which ends when this is dropped.
    pub input: PipeWriter,
    /// Reads the program's standard output. The end of the output may be missing if the program
    /// leaves a process that can't be ended: wait for the program, too.
    pub output: PipeReader,
}

/// A program that is talked to over its standard input and output. Dropping it does not end the
/// program; dropping its [`Processes`](super::Processes) does.
#[derive(Debug)]
pub struct DuplexProcess {
    running: Arc<Running>,
    grace: Duration,
    errors: Errors,
    /// Reads the error output until the program has ended.
    reader: JoinHandle<()>,
}

/// The end of the error output that was read. Clones share it.
#[derive(Debug, Clone, Default)]
struct Errors(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    bytes: VecDeque<u8>,
    /// Whether the beginning is missing.
    cut: bool,
}

impl DuplexProcess {
    /// Starts the thread that reads the error output, which is the output of `process`.
    pub(super) fn new(running: Arc<Running>, mut process: Process) -> io::Result<Self> {
        let errors = Errors::default();
        let (kept, grace) = (errors.clone(), process.grace());
        let read = move || {
            let read = process.follow(None, |text| kept.lock().push(text), || {});
            if let Err(error) = read {
                tracing::warn!(%error, "reading the error output of a program failed");
            }
        };
        let thread = std::thread::Builder::new().name("holdpoint-errors".into()).stack_size(STACK);
        Ok(Self { running, grace, errors, reader: thread.spawn(read)? })
    }

    /// The program's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.running.leader()
    }

    /// The last [`MAX_KEPT_ERRORS`] bytes of the error output, from the beginning of a line on, or
    /// of a word if there is only one line. Bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn errors(&self) -> String {
        self.errors.lock().text()
    }

    /// Waits until the program has ended. Returns `None` at the deadline.
    #[must_use]
    pub fn wait_by(&self, deadline: Option<Instant>) -> Option<Exit> {
        self.running.wait_exit(deadline)
    }

    /// Begins to end the program and all processes it started. Returns at once.
    pub fn end(&self) {
        self.running.end();
    }

    /// Ends the program if it still runs, and waits until all processes it started are gone: at
    /// most the grace and one second more. Returns how the program ended, the count of processes
    /// that had to be ended, and the end of the error output, as [`errors`](Self::errors) does.
    #[must_use]
    pub fn finish(self) -> (Exit, EndedProcesses, String) {
        let (exit, ended) = self.running.finish(self.grace);
        // The thread reads to the end, unless a process can't be ended.
        if ended.not_ended.is_empty() && self.reader.join().is_err() {
            tracing::error!("the thread that reads a program's error output panicked");
        }
        let errors = self.errors.lock().text();
        (exit, ended, errors)
    }
}

impl Errors {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn push(&mut self, text: &str) {
        let new = text.as_bytes();
        let new = &new[new.len().saturating_sub(MAX_KEPT_ERRORS)..];
        let excess = (self.bytes.len() + new.len()).saturating_sub(MAX_KEPT_ERRORS);
        self.cut |= excess > 0 || new.len() < text.len();
        self.bytes.drain(..excess);
        self.bytes.extend(new);
    }

    fn text(&self) -> String {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let whole = match text.split_once('\n') {
            Some((_, whole)) if self.cut && !whole.is_empty() => whole,
            // A single long line, which begins with a part of a word. It may be a part of a secret.
            _ if self.cut => match text.split_once(char::is_whitespace) {
                Some((_, whole)) if !whole.trim().is_empty() => whole,
                _ => text.trim_start_matches('\u{fffd}'),
            },
            _ => &text,
        };
        whole.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_error_output_is_kept_from_a_line_on() {
        let mut kept = Kept::default();
        kept.push("one\ntwo\n");
        assert_eq!(kept.text(), "one\ntwo\n");
        let line = "x".repeat(99) + "\n";
        for _ in 0..100 {
            kept.push(&line);
        }
        assert_eq!(kept.text(), line.repeat(MAX_KEPT_ERRORS / 100));
        kept.push(&"é".repeat(MAX_KEPT_ERRORS));
        assert_eq!(kept.text(), "é".repeat(MAX_KEPT_ERRORS / 2));
        kept.push("ab");
        assert_eq!(kept.text(), "é".repeat(MAX_KEPT_ERRORS / 2 - 1) + "ab");
        kept.push("a");
        assert_eq!(kept.text(), "é".repeat(MAX_KEPT_ERRORS / 2 - 2) + "aba");
        assert!(kept.bytes.len() <= MAX_KEPT_ERRORS);
        kept.push(" new words");
        assert_eq!(kept.text(), "new words");
    }
}
