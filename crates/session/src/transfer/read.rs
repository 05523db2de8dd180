//! A text, read while it is written: for those who want the facts and not the text.

use std::io::{self, Write};
use std::sync::Arc;

use holdpoint_common::Event;

/// Takes a session's text, and gives each of its facts away as soon as its line is whole. Whether the text was whole is
/// told by what writes it.
pub struct Facts<F> {
    give: F,
    /// The line that is not whole yet.
    line: Vec<u8>,
}

impl<F: FnMut(Arc<Event>) -> io::Result<()>> Facts<F> {
    /// Gives them to `give`; its errors end the text.
    pub fn new(give: F) -> Self {
        Self { give, line: Vec::new() }
    }

    fn take(&mut self) -> io::Result<()> {
        // The first line and the last are no facts.
        if let Ok(event) = serde_json::from_slice::<Event>(&self.line) {
            (self.give)(Arc::new(event))?;
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
            self.take()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
