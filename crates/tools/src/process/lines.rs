//! The lines of a program that is talked to over its standard input and output.

use std::io;
use std::io::{PipeReader, PipeWriter};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;

/// The size of the buffer for reading, and the memory that a long line leaves, in bytes.
const READ_BUFFER: usize = 8 * 1024;

/// The lines that a program writes. Nothing is read that was not asked for, so a program that writes
/// too fast waits.
#[derive(Debug)]
pub(crate) struct LineReader {
    output: BufReader<pipe::Receiver>,
    max: usize,
    /// The beginning of a line, if its end has not been read, or the line that was read last.
    line: Vec<u8>,
    is_whole: bool,
}

impl LineReader {
    /// Reads lines of at most `max` bytes. Must be called on a tokio runtime with I/O.
    ///
    /// # Errors
    /// The system's error if the stream can't be used.
    pub(crate) fn new(output: PipeReader, max: usize) -> io::Result<Self> {
        let output = pipe::Receiver::from_owned_fd(output.into())?;
        let output = BufReader::with_capacity(READ_BUFFER, output);
        Ok(Self { output, max, line: Vec::new(), is_whole: false })
    }

    /// Reads the next line, which is then [`line`](Self::line). Returns `false` at the end of the
    /// output. Can be dropped and called again without a loss.
    ///
    /// # Errors
    /// [`io::ErrorKind::FileTooLarge`] if the line has more than `max` bytes, or the system's error
    /// if the output can't be read.
    pub(crate) async fn read(&mut self) -> io::Result<bool> {
        if std::mem::take(&mut self.is_whole) {
            self.line.clear();
            self.line.shrink_to(READ_BUFFER);
        }
        while !self.is_whole {
            let available = self.output.fill_buf().await?;
            if available.is_empty() {
                return Ok(false);
            }
            let end = memchr::memchr(b'\n', available);
            let taken = end.map_or(available.len(), |end| end + 1);
            if self.line.len() + taken > self.max {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            self.line.extend_from_slice(&available[..taken]);
            self.output.consume(taken);
            self.is_whole = end.is_some();
        }
        Ok(true)
    }

    /// The line that was read last, without its line feed.
    pub(crate) fn line(&self) -> &[u8] {
        self.line.strip_suffix(b"\n").unwrap_or(&self.line)
    }
}

/// The lines of a program: those that it writes, and those that are written to it.
#[derive(Debug)]
pub struct Lines {
    output: LineReader,
    input: pipe::Sender,
    /// The bytes that are not written yet, from `written` on.
    unwritten: Vec<u8>,
    written: usize,
}

impl Lines {
    /// Uses the streams of a program, whose lines have at most `max` bytes. Must be called on a tokio
    /// runtime with I/O.
    ///
    /// # Errors
    /// The system's error if the streams can't be used.
    pub fn new(output: PipeReader, input: PipeWriter, max: usize) -> io::Result<Self> {
        Ok(Self {
            output: LineReader::new(output, max)?,
            input: pipe::Sender::from_owned_fd(input.into())?,
            unwritten: Vec::new(),
            written: 0,
        })
    }

    /// Adds a line, without its end, to those that [`next`](Self::next) and [`flush`](Self::flush)
    /// write. Returns how many bytes wait.
    pub fn queue(&mut self, line: &[u8]) -> usize {
        self.unwritten.extend_from_slice(line);
        self.unwritten.push(b'\n');
        self.unwritten.len() - self.written
    }

    /// How many bytes wait to be written.
    #[must_use]
    pub fn unwritten(&self) -> usize {
        self.unwritten.len() - self.written
    }

    /// Writes the queued lines. Can be dropped and called again without a loss.
    ///
    /// # Errors
    /// The system's error if the program can't be written to, for example because it has ended.
    pub async fn flush(&mut self) -> io::Result<()> {
        while self.written < self.unwritten.len() {
            self.written += self.input.write(&self.unwritten[self.written..]).await?;
        }
        self.unwritten.clear();
        self.unwritten.shrink_to(READ_BUFFER);
        self.written = 0;
        Ok(())
    }

    /// Reads the next line, without its end, and writes the queued lines meanwhile. `None` at the
    /// end of the output. Can be dropped and called again without a loss.
    ///
    /// # Errors
    /// [`io::ErrorKind::FileTooLarge`] if the line has more than `max` bytes, or the system's error
    /// if the output can't be read.
    pub async fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let Self { output, input, unwritten, written } = self;
        loop {
            tokio::select! {
                biased;
                wrote = input.write(&unwritten[*written..]), if *written < unwritten.len() => {
                    // A program that no longer reads may still have written its last lines.
                    *written = wrote.map_or(unwritten.len(), |count| *written + count);
                    // At most half of the memory is for written bytes, so each is moved about once.
                    if *written >= READ_BUFFER.max(unwritten.len() / 2) {
                        unwritten.drain(..*written);
                        *written = 0;
                    }
                }
                is_line = output.read() => return Ok(is_line?.then(|| output.line())),
            }
        }
    }
}
