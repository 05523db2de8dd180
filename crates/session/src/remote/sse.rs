//! Server-Sent Events, in the form that a daemon sends: fields `event`, `id` and one line of
//! `data`.

use std::ops::Range;

use super::http::{HttpError, Response};

/// The maximum size of one frame, in bytes.
const MAX_FRAME_BYTES: usize = 256 * 1024 * 1024;

/// A stream of frames.
pub(super) struct Frames {
    response: Response,
    /// The received bytes: read up to `read`, and searched for the end of a frame up to `searched`.
    bytes: Vec<u8>,
    read: usize,
    searched: usize,
}

/// One frame: its kind, by default `message`, and its data.
pub(super) struct Frame<'a> {
    pub(super) event: &'a str,
    pub(super) data: &'a [u8],
}

impl Frames {
    pub(super) fn new(response: Response) -> Self {
        Self { response, bytes: Vec::new(), read: 0, searched: 0 }
    }

    /// The next frame; `None` at the stream's end. A call that is dropped half-way loses no frame.
    pub(super) async fn next(&mut self) -> Result<Option<Frame<'_>>, HttpError> {
        loop {
            if let Some(frame) = self.take_frame() {
                return Ok(Some(parse(&self.bytes[frame])));
            }
            if !self.fill().await? {
                return Ok(None);
            }
        }
    }

    /// The next frame, if it is complete.
    pub(super) fn ready(&mut self) -> Option<Frame<'_>> {
        let frame = self.take_frame()?;
        Some(parse(&self.bytes[frame]))
    }

    /// Waits for more bytes; `false` at the stream's end.
    async fn fill(&mut self) -> Result<bool, HttpError> {
        let Some(chunk) = self.response.chunk().await? else { return Ok(false) };
        self.bytes.drain(..self.read);
        self.searched -= self.read;
        self.read = 0;
        if self.bytes.len() + chunk.len() > MAX_FRAME_BYTES {
            return Err(HttpError::TooLong { most: MAX_FRAME_BYTES });
        }
        self.bytes.extend_from_slice(&chunk);
        Ok(true)
    }

    /// Marks the next complete frame as read, and returns its range.
    fn take_frame(&mut self) -> Option<Range<usize>> {
        loop {
            let from = self.searched.max(self.read);
            let Some(end) = memchr::memmem::find(&self.bytes[from..], b"\n\n").map(|at| from + at)
            else {
                // The first byte of a frame's end may have arrived without the second.
                self.searched = self.bytes.len().saturating_sub(1).max(self.read);
                return None;
            };
            let frame = self.read..end;
            self.read = end + 2;
            self.searched = self.read;
            // A comment only keeps the connection alive.
            if self.bytes.get(frame.start) != Some(&b':') {
                return Some(frame);
            }
        }
    }
}

fn parse(frame: &[u8]) -> Frame<'_> {
    let mut parsed = Frame { event: "message", data: &[] };
    let mut rest = frame;
    while !rest.is_empty() {
        let (line, more) = rest.split_at(memchr::memchr(b'\n', rest).unwrap_or(rest.len()));
        rest = more.get(1..).unwrap_or_default();
        let (field, value) = line.split_at(memchr::memchr(b':', line).unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => parsed.event = std::str::from_utf8(value).unwrap_or_default(),
            b"data" => parsed.data = value,
            _ => {}
        }
    }
    parsed
}
