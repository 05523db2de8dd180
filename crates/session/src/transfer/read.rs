//! Reading the facts of a text while it is written.

use std::io::{self, Write};
use std::sync::Arc;

use holdpoint_common::Event;

/// A writer that receives a session's text and passes on each fact as soon as its line is complete.
/// The source of the text, not this type, reports whether the text is complete.
pub struct Facts<F> {
    on_fact: F,
    /// The incomplete line.
    line: Vec<u8>,
}

impl<F: FnMut(Arc<Event>) -> io::Result<()>> Facts<F> {
    /// Passes the facts to `on_fact`, whose errors end the text.
    pub fn new(on_fact: F) -> Self {
        Self { on_fact, line: Vec::new() }
    }

    fn finish_line(&mut self) -> io::Result<()> {
        // The first and the last line are not facts.
        if let Ok(event) = serde_json::from_slice::<Event>(&self.line) {
            (self.on_fact)(Arc::new(event))?;
        }
        self.line.clear();
        Ok(())
    }
}

impl<F: FnMut(Arc<Event>) -> io::Result<()>> Write for Facts<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let end = memchr::memchr(b'\n', bytes);
        let taken = end.map_or(bytes.len(), |end| end + 1);
        self.line.extend_from_slice(&bytes[..taken]);
        if end.is_some() {
            self.finish_line()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
