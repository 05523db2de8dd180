//! The events of a stream (server-sent events), within bounds.

use super::http_error;
use super::stdio::MAX_MESSAGE;

/// The most bytes of comments between two events. Servers send some to keep the connection open.
const MAX_COMMENTS: usize = 1024 * 1024;

/// An event.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// `message` if the stream names none.
    pub(super) kind: String,
    pub(super) data: String,
}

/// Reads the events of an answer.
pub(super) struct Events {
    answer: reqwest::Response,
    parser: Parser,
    /// Bytes that have arrived, but are not parsed yet, and how many of them are parsed.
    chunk: (Vec<u8>, usize),
}

impl Events {
    pub(super) fn new(answer: reqwest::Response) -> Self {
        Self { answer, parser: Parser::default(), chunk: (Vec::new(), 0) }
    }

    /// The next event; `None` at the end of the stream. Can be dropped and called again without a
    /// loss.
    ///
    /// # Errors
    /// The stream breaks off, or exceeds a bound.
    pub(super) async fn next(&mut self) -> Result<Option<Event>, String> {
        loop {
            let (chunk, parsed) = &mut self.chunk;
            while let Some(byte) = chunk.get(*parsed) {
                *parsed += 1;
                if let Some(event) = self.parser.add(*byte)? {
                    return Ok(Some(event));
                }
            }
            match self.answer.chunk().await {
                Ok(Some(bytes)) => self.chunk = (bytes.to_vec(), 0),
                Ok(None) => return Ok(None),
                Err(error) => return Err(http_error::connection(&error)),
            }
        }
    }
}

/// Parses the bytes of a stream.
#[derive(Default)]
struct Parser {
    line: Vec<u8>,
    /// Whether the last byte was a carriage return, which ends a line with or without a line feed.
    was_return: bool,
    kind: String,
    data: Vec<u8>,
    has_data: bool,
    comments: usize,
}

impl Parser {
    /// Adds a byte. Returns the event that it ends.
    fn add(&mut self, byte: u8) -> Result<Option<Event>, String> {
        let was_return = std::mem::replace(&mut self.was_return, byte == b'\r');
        match byte {
            b'\n' if was_return => Ok(None),
            b'\n' | b'\r' => self.end_line(),
            _ => {
                self.line.push(byte);
                if self.line.len() + self.data.len() > MAX_MESSAGE {
                    return Err(format!("it sent a message of more than {MAX_MESSAGE} bytes"));
                }
                Ok(None)
            }
        }
    }

    fn end_line(&mut self) -> Result<Option<Event>, String> {
        // A large message does not keep its memory.
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return Ok(self.end_event());
        }
        let (name, value) = match memchr::memchr(b':', &line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (&line[..], &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => self.kind = String::from_utf8_lossy(value).into_owned(),
            _ => {
                self.comments += line.len() + 1;
                if self.comments > MAX_COMMENTS {
                    return Err(format!(
                        "it sent more than {MAX_COMMENTS} bytes that are not messages"
                    ));
                }
            }
        }
        Ok(None)
    }

    fn end_event(&mut self) -> Option<Event> {
        let (kind, data) = (std::mem::take(&mut self.kind), std::mem::take(&mut self.data));
        if !std::mem::take(&mut self.has_data) {
            return None;
        }
        self.comments = 0;
        let kind = if kind.is_empty() { "message".to_owned() } else { kind };
        Some(Event { kind, data: String::from_utf8_lossy(&data).into_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(text: &[u8]) -> Result<Vec<(String, String)>, String> {
        let mut parser = Parser::default();
        let mut events = Vec::new();
        for byte in text {
            events.extend(parser.add(*byte)?.map(|event| (event.kind, event.data)));
        }
        Ok(events)
    }

    #[test]
    fn m_h2_a_stream_is_cut_into_events() {
        let text = b"event: endpoint\r\ndata: /x\r\n\r\n: ping\n\ndata:a\rdata: b\n\r\n\
                     id: 1\nevent: message\ndata\n\nevent: lost\n\ndata: unfinished\n";
        let expected = [("endpoint", "/x"), ("message", "a\nb"), ("message", "")];
        let expected = expected.map(|(kind, data)| (kind.to_owned(), data.to_owned()));
        assert_eq!(events(text).unwrap(), expected);
    }

    #[test]
    fn m_h2_a_stream_without_an_end_of_its_message_is_refused() {
        let line = [b"data: ", &vec![b'x'; MAX_MESSAGE][..]].concat();
        assert!(events(&line).unwrap_err().contains("a message of more than"));
        let lines = b"data: x\n".repeat(MAX_MESSAGE / 2 + 1);
        assert!(events(&lines).unwrap_err().contains("a message of more than"));
        let comments = b": ping\n\n".repeat(MAX_COMMENTS / 7 + 1);
        assert!(events(&comments).unwrap_err().contains("bytes that are not messages"));
    }
}
