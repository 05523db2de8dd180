//! Cuts the bytes of an answer into frames, within a bound: the data of server-sent events, or lines.
//!
//! Our own, because no crate for it bounds what it keeps of an event that does not end: `eventsource-stream` 0.2.3,
//! `sse-stream` 0.3.0 and `sseer` 0.3.1 buffer without a limit, and Ollama's lines need a splitter all the same.

use memchr::{memchr, memchr2};
use serde_json::value::RawValue;

use super::call::Nesting;
use super::{MOST_EVENT, fault};
use crate::model::ModelError;

/// How an answer is cut into frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// `text/event-stream`: the data of each event. A body that is JSON instead, as from a server that does not know of
    /// streams, is one frame for each of its values, or for each of a list.
    Sse,
    /// A JSON value a line. A body that is a list, or whose first value has several lines, is JSON as above.
    Lines,
}

/// The name of an event that reports a fault, whatever its data are.
const FAULT: &[u8] = b"error";

/// Some servers put it before the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Cuts bytes into frames. It keeps one line that has not ended, and the data of one event.
#[derive(Debug)]
pub(super) struct Framer {
    framing: Framing,
    line: Vec<u8>,
    /// The lines of the event's data, each with a line feed.
    data: Vec<u8>,
    /// The event is named as a fault.
    is_fault: bool,
    /// The last line ended with a carriage return: a line feed that follows belongs to it.
    after_return: bool,
    /// No line has ended yet.
    first: bool,
    /// Whether the body is JSON instead of a stream; `None` while it is only white space, or its first line has not ended.
    json: Option<bool>,
}

/// The last frames of a body.
pub(super) struct Rest {
    pub(super) frames: Vec<String>,
    /// The body was JSON instead of events: these frames are all of it.
    pub(super) is_whole: bool,
}

impl Framer {
    pub(super) fn new(framing: Framing) -> Self {
        let (line, data) = (Vec::new(), Vec::new());
        Self { framing, line, data, is_fault: false, after_return: false, first: true, json: None }
    }

    /// Takes bytes up to the end of the next frame, and returns it; `None`: it has not ended.
    ///
    /// # Errors
    /// [`ModelError::Malformed`] if an event is beyond [`MOST_EVENT`].
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<String>, ModelError> {
        self.take_json(bytes);
        while self.take_line(bytes) {
            if self.is_open_line() {
                self.json = Some(true);
                self.line.push(b'\n');
                self.take_json(bytes);
                break;
            }
            let frame = self.end_line();
            if frame.is_some() {
                return Ok(frame);
            }
        }
        if self.line.len() + self.data.len() > MOST_EVENT {
            return Err(ModelError::Malformed { message: format!("one event of it is over {MOST_EVENT} bytes") });
        }
        Ok(None)
    }

    /// Takes all bytes if the body is JSON instead of a stream. The first byte that is no white space shows it.
    fn take_json(&mut self, bytes: &mut &[u8]) {
        let first = |bytes: &[u8]| bytes.iter().copied().find(|byte| !is_blank(*byte));
        if self.json.is_none() && first(&self.line).is_none() {
            self.json = match (self.framing, first(bytes)) {
                (_, Some(b'[')) | (Framing::Sse, Some(b'{')) => Some(true),
                (Framing::Sse, Some(_)) => Some(false),
                (Framing::Lines, _) | (Framing::Sse, None) => None,
            };
        }
        if self.json == Some(true) {
            self.line.extend_from_slice(std::mem::take(bytes));
        }
    }

    /// Whether the first line that is not blank ends inside a value, where a value a line is expected.
    fn is_open_line(&mut self) -> bool {
        if self.framing != Framing::Lines || self.json.is_some() || self.line.iter().copied().all(is_blank) {
            return false;
        }
        self.json = Some(false);
        let mut nesting = Nesting::default();
        nesting.add(&self.line);
        nesting.is_open()
    }

    /// The body ended: a last line without an end is a frame. An event without one is none.
    pub(super) fn close(&mut self) -> Rest {
        let frames = match self.framing {
            _ if self.json == Some(true) => values(text(&std::mem::take(&mut self.line))),
            Framing::Sse => Vec::new(),
            Framing::Lines => self.end_line().into_iter().collect(),
        };
        Rest { frames, is_whole: self.json == Some(true) }
    }

    /// Moves bytes to the line, up to its end. Whether it has ended.
    fn take_line(&mut self, bytes: &mut &[u8]) -> bool {
        if std::mem::take(&mut self.after_return) && bytes.first() == Some(&b'\n') {
            *bytes = &bytes[1..];
        }
        let end = match self.framing {
            Framing::Sse => memchr2(b'\n', b'\r', bytes),
            Framing::Lines => memchr(b'\n', bytes),
        };
        let (line, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        self.line.extend_from_slice(line);
        // The end is one byte; where there is none, nothing is left.
        *bytes = rest.get(1..).unwrap_or_default();
        self.after_return = rest.first() == Some(&b'\r');
        end.is_some()
    }

    /// Reads the line that has ended. Returns the frame that it is, or that it ends.
    fn end_line(&mut self) -> Option<String> {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.first) && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        let frame = match self.framing {
            Framing::Lines => Some(text(&line)),
            Framing::Sse if line.is_empty() => self.end_event(),
            Framing::Sse => {
                self.field(&line);
                None
            }
        };
        // Its memory serves the next line, unless it was an unusual one.
        line.clear();
        line.shrink_to(64 * 1024);
        self.line = line;
        frame.filter(|frame| !frame.trim().is_empty())
    }

    /// Reads a field of an event. One without a name is a comment.
    fn field(&mut self, line: &[u8]) {
        let (name, value) = line.split_at(memchr(b':', line).unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => self.is_fault = value == FAULT,
            _ => {}
        }
    }

    /// Ends the event.
    fn end_event(&mut self) -> Option<String> {
        let (mut data, is_fault) = (std::mem::take(&mut self.data), std::mem::take(&mut self.is_fault));
        data.pop()?;
        let data = text(&data);
        Some(if is_fault && !data.trim().is_empty() { fault::named(data) } else { data })
    }
}

fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || BYTE_ORDER_MARK.contains(&byte)
}

/// The values of a list, or those that follow each other; the text itself, if it is not JSON.
fn values(json: String) -> Vec<String> {
    let json = json.trim_start_matches('\u{feff}').trim();
    let values = serde_json::from_str::<Vec<&RawValue>>(json)
        .or_else(|_| serde_json::Deserializer::from_str(json).into_iter::<&RawValue>().collect());
    match values {
        Ok(values) => values.into_iter().map(|value| value.get().to_owned()).collect(),
        Err(_) => vec![json.to_owned()],
    }
}

/// Bytes as text. What is no UTF-8 is replaced, for it may be no more than a word of an answer.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frames of a body that comes in pieces of so many bytes.
    fn frames(framing: Framing, body: &[u8], piece: usize) -> Vec<String> {
        let (mut framer, mut frames) = (Framer::new(framing), Vec::new());
        for mut bytes in body.chunks(piece) {
            while let Some(frame) = framer.next(&mut bytes).unwrap() {
                frames.push(frame);
            }
            assert!(bytes.is_empty());
        }
        frames.extend(framer.close().frames);
        frames
    }

    #[test]
    fn m_e6_a_body_is_cut_into_the_same_frames_however_it_comes() {
        let sse: [(&[u8], &[&str]); 20] = [
            (b"data: a\n\ndata: b\n\n", &["a", "b"]),
            (b"data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]),
            (b"data: a\r\rdata: b\r\r", &["a", "b"]),
            (b"data: a\r\n\ndata: b\n\r\n", &["a", "b"]),
            (b"\xef\xbb\xbfdata: a\n\n", &["a"]),
            (b"data: a\ndata: b\n\n", &["a\nb"]),
            (b"data:a\n\ndata:  b\n\n", &["a", " b"]),
            (b": comment\n\n:\ndata: a\n: comment\n\n", &["a"]),
            (b"id: 1\nevent: message\nretry: 5\ndata: a\nother: x\n\n", &["a"]),
            (b"data\ndata: \n\ndata:\n\nevent: error\n\ndata: a\n\n", &["a"]),
            (b"event: error\ndata: gone\n\ndata: a\n\n", &["{\"error\":\"gone\"}", "a"]),
            (b"data: a\n\ndata: b\n", &["a"]),
            (b"data: \xff\n\n", &["\u{fffd}"]),
            (b"", &[]),
            (b" {\n\"a\":\n1}\n", &["{\n\"a\":\n1}"]),
            (b"\xef\xbb\xbf\r\n[{\"a\":1},\n2]", &["{\"a\":1}", "2"]),
            (b"[1", &["[1"]),
            (b"{\"a\":1}\n{\n\"a\":2}\n", &["{\"a\":1}", "{\n\"a\":2}"]),
            (b"{\"a\":1}\n{", &["{\"a\":1}\n{"]),
            (b"\n\ndata: {\n\n", &["{"]),
        ];
        let lines: [(&[u8], &[&str]); 11] = [
            (b"{}\n[]\n", &["{}", "[]"]),
            (b"{}\r\n\r\n\n[]\r\n", &["{}\r", "[]\r"]),
            (b"\xef\xbb\xbf{}\n[]", &["{}", "[]"]),
            (b"\n", &[]),
            (b"\xef\xbb\xbf\n{\n \"a\": \"}\",\r\n\"b\":[]}\n", &["{\n \"a\": \"}\",\r\n\"b\":[]}"]),
            (b"{\"a\":\n1}\n{\"a\":2}\n", &["{\"a\":\n1}", "{\"a\":2}"]),
            (b"[{},\n{}]", &["{}", "{}"]),
            (b"{\n", &["{"]),
            // Broken lines, of which each is a fault.
            (b"{}\n{\n{}\n", &["{}", "{", "{}"]),
            (b"{\"a\n{}\n", &["{\"a", "{}"]),
            (b"a\n[]\n", &["a", "[]"]),
        ];
        let sse = sse.map(|(body, expected)| (Framing::Sse, body, expected));
        for (framing, body, expected) in sse.into_iter().chain(lines.map(|(body, said)| (Framing::Lines, body, said))) {
            for piece in 1..=body.len().max(1) {
                let said = String::from_utf8_lossy(body);
                assert_eq!(frames(framing, body, piece), expected, "{said:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn m_e6_an_event_without_an_end_is_bounded_whatever_it_is_made_of() {
        let data = [b"data: ".as_slice(), &[b'x'; 1024], b"\n"].concat();
        for (framing, piece) in
            [(Framing::Sse, &data[..]), (Framing::Sse, &[b'x'; 1024]), (Framing::Lines, b"{ "), (Framing::Sse, b"{ ")]
        {
            let mut framer = Framer::new(framing);
            let too_much = (0..MOST_EVENT).find(|_| framer.next(&mut &*piece).is_err());
            assert!(too_much.is_some_and(|pieces| pieces * piece.len() < 2 * MOST_EVENT), "{framing:?}");
        }
        // Comments are not kept.
        let mut framer = Framer::new(Framing::Sse);
        assert!((0..100_000).all(|_| framer.next(&mut &b": ping, and nothing else but this comment\n"[..]).is_ok()));
    }
}
