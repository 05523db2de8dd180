//! Lines between the editor and the connection: JSON-RPC messages, one per line.
//!
//! Two threads read and write, because standard input and output block. Both queues are bounded: an
//! editor that sends too fast is read later, and one that does not read is written to later.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::sync::{mpsc, oneshot};

use crate::error::CliError;

/// The maximum length of a line from the editor, in bytes.
pub(super) const MAX_LINE: usize = 8 * 1024 * 1024;
/// How many lines from the editor wait to be handled.
const WAITING_IN: usize = 4;
/// How many lines wait to be written.
const WAITING_OUT: usize = 64;
/// How long the last lines may take to be written, if the editor does not read them.
const LAST_LINES: Duration = Duration::from_secs(1);

/// How long the last lines of an editor that is gone may take to be handled.
const LAST_INPUT: Duration = Duration::from_secs(5);

/// The moment at which the editor closes the input.
pub(super) struct HangUp(oneshot::Receiver<()>);

/// A line from the editor.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// The bytes of the line, without its end.
    Whole(Vec<u8>),
    /// The line is longer than [`MAX_LINE`], and was dropped.
    TooLong,
}

/// Reads lines on a thread of its own until `input` ends.
///
/// # Errors
/// Fails if the thread can't be started.
pub(super) fn read_lines(
    input: impl Read + Send + 'static,
) -> Result<mpsc::Receiver<Line>, CliError> {
    let (sender, lines) = mpsc::channel(WAITING_IN);
    let read = move || {
        let mut input = LineReader::new(BufReader::new(input), MAX_LINE);
        // An input that can't be read has ended.
        while let Ok(Some(line)) = input.next() {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    };
    spawn("acp input", read)?;
    Ok(lines)
}

/// Waits on a thread of its own until the other end of `input` is closed, even while its last lines
/// are not read yet. A file or a terminal has no such end.
///
/// # Errors
/// Fails if the thread can't be started.
pub(super) fn hang_up(input: impl AsFd + Send + 'static) -> Result<HangUp, CliError> {
    let (sender, hung_up) = oneshot::channel();
    let wait = move || {
        let mut polled = [PollFd::new(&input, PollFlags::empty())];
        loop {
            match poll(&mut polled, None) {
                Err(Errno::INTR) => {}
                Err(_) => return,
                Ok(_) if polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) => break,
                Ok(_) => return,
            }
        }
        // The connection may have ended already.
        let _ = sender.send(());
    };
    spawn("acp hang-up", wait)?;
    Ok(HangUp(hung_up))
}

impl HangUp {
    /// Waits until the input has been hung up for so long that the editor can't be expected to read
    /// the replies to its last lines.
    pub(super) async fn wait_final(self) {
        match self.0.await {
            Ok(()) => tokio::time::sleep(LAST_INPUT).await,
            Err(_) => std::future::pending().await,
        }
    }
}

/// Reads lines of at most `max` bytes.
struct LineReader<R> {
    input: R,
    max: usize,
    /// Whether the rest of the line is skipped, because it is too long.
    skips: bool,
}

impl<R: BufRead> LineReader<R> {
    fn new(input: R, max: usize) -> Self {
        Self { input, max, skips: false }
    }

    /// Reads a line; `None` at the end of the input. Blank lines are skipped. A line that is too
    /// long is reported as soon as its length is known, and its rest is skipped.
    fn next(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        loop {
            let available = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                available => available?,
            };
            if available.is_empty() {
                // A last line without an end may be cut, so it is not a message.
                return Ok(None);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let piece = &available[..end.unwrap_or(available.len())];
            let is_too_long = !self.skips && line.len() + piece.len() > self.max;
            let is_skipped = self.skips || is_too_long;
            if !is_skipped {
                line.extend_from_slice(piece);
            }
            let used = end.map_or(available.len(), |end| end + 1);
            self.input.consume(used);
            self.skips = is_skipped && end.is_none();
            match end {
                _ if is_too_long => return Ok(Some(Line::TooLong)),
                Some(_) if is_skipped || line.trim_ascii().is_empty() => line.clear(),
                Some(_) => return Ok(Some(Line::Whole(line))),
                None => {}
            }
        }
    }
}

/// The writing end of the connection. Cheap to clone.
#[derive(Clone)]
pub(super) struct Lines(mpsc::Sender<String>);

/// The end of the writing thread.
pub(super) struct Writing(oneshot::Receiver<()>);

/// Writes lines on a thread of its own until all senders are gone, or `output` can't be written.
///
/// # Errors
/// Fails if the thread can't be started.
pub(super) fn write_lines(
    output: impl Write + Send + 'static,
) -> Result<(Lines, Writing), CliError> {
    let (sender, mut lines) = mpsc::channel::<String>(WAITING_OUT);
    let (done, ended) = oneshot::channel();
    let write = move || {
        let mut output = BufWriter::new(output);
        while let Some(line) = lines.blocking_recv() {
            let written = output.write_all(line.as_bytes()).and_then(|()| output.write_all(b"\n"));
            let flushed = written.and_then(|()| match lines.is_empty() {
                true => output.flush(),
                false => Ok(()),
            });
            if let Err(error) = flushed {
                tracing::debug!(%error, "the editor can't be written to");
                break;
            }
        }
        drop(done);
    };
    spawn("acp output", write)?;
    Ok((Lines(sender), Writing(ended)))
}

impl Lines {
    /// Sends a line, and waits while too many are waiting. Without a reader, the line is dropped:
    /// the connection ends.
    pub(super) async fn send(&self, line: String) {
        let _ = self.0.send(line).await;
    }

    /// Waits until the editor can't be written to.
    pub(super) async fn closed(&self) {
        self.0.closed().await;
    }
}

impl Writing {
    /// Waits until everything is written, or the editor has not read it in time.
    pub(super) async fn finish(self) {
        let _ = tokio::time::timeout(LAST_LINES, self.0).await;
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), CliError> {
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map(drop).map_err(|error| CliError::failed(format!("can't start a thread: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(input: &[u8], max: usize, room: usize) -> Vec<Line> {
        let mut input = LineReader::new(BufReader::with_capacity(room, input), max);
        std::iter::from_fn(|| input.next().unwrap()).collect()
    }

    #[test]
    fn m_h1_a_long_line_from_an_editor_is_dropped_and_the_next_one_is_read() {
        let whole = |text: &[u8]| Line::Whole(text.to_owned());
        for room in [1, 3, 100] {
            assert_eq!(
                lines(b"one\n\n \r\n12345\n123456\ntwo\ncut", 5, room),
                [whole(b"one"), whole(b"12345"), Line::TooLong, whole(b"two")]
            );
            // One without an end is reported, too.
            let endless = b"x".repeat(1000);
            assert_eq!(lines(&endless, 5, room), [Line::TooLong]);
        }
    }
}
