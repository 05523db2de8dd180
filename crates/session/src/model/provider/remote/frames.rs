//! Cuts the bytes of an answer into bounded frames: the data of server-sent events, or lines.
//!
//! This is our own code because no crate bounds the buffer for an event that does not end:
//! `eventsource-stream` 0.2.3, `sse-stream` 0.3.0 and `sseer` 0.3.1 buffer without a limit.
//! Ollama's lines need a splitter in any case.

use memchr::{memchr, memchr2};
use serde_json::value::RawValue;

use super::call::Nesting;
use super::{MAX_EVENT_BYTES, fault};
use crate::model::ModelError;

/// How an answer is cut into frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// `text/event-stream`: the data of each event. If the body is JSON, as from a server that does
    /// not stream, each of its values is a frame, or each value of its list.
    Sse,
    /// One JSON value per line. A body that is a list, or that begins with a value over several
    /// lines, is JSON as above.
    Lines,
}

/// The name of an event that reports a fault, regardless of its data.
const FAULT_EVENT: &[u8] = b"error";

/// Some servers put this before the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Cuts bytes into frames. It keeps one unfinished line, and the data of one event.
#[derive(Debug)]
pub(super) struct Framer {
    framing: Framing,
    line: Vec<u8>,
    /// Whether the line has only white space so far.
    line_is_blank: bool,
    /// The lines of the event's data, each with a line feed.
    data: Vec<u8>,
    /// Whether the event is named as a fault.
    is_fault: bool,
    /// Whether the last line ended with a carriage return. A line feed that follows belongs to it.
    after_return: bool,
    /// Whether no line has ended yet.
    at_first_line: bool,
    /// Whether the body is JSON instead of a stream; `None` while it is only white space, or its
    /// first line has not ended.
    is_json: Option<bool>,
}

/// The last frames of a body.
pub(super) struct LastFrames {
    pub(super) frames: Vec<String>,
    /// Whether the body was JSON instead of events, so that these frames are all of it.
    pub(super) is_whole: bool,
}

impl Framer {
    pub(super) fn new(framing: Framing) -> Self {
        Self {
            framing,
            line: Vec::new(),
            line_is_blank: true,
            data: Vec::new(),
            is_fault: false,
            after_return: false,
            at_first_line: true,
            is_json: None,
        }
    }

    /// Consumes bytes up to the end of the next frame, and returns it; `None` if it has not ended.
    ///
    /// # Errors
    /// [`ModelError::Malformed`] if an event exceeds [`MAX_EVENT_BYTES`].
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<String>, ModelError> {
        self.take_json(bytes);
        while self.take_line(bytes) {
            if self.decide_json() {
                self.line.push(b'\n');
                self.take_json(bytes);
                break;
            }
            let frame = self.end_line();
            if frame.is_some() {
                return Ok(frame);
            }
        }
        if self.line.len() + self.data.len() > MAX_EVENT_BYTES {
            return Err(ModelError::Malformed {
                message: format!("one event is larger than {MAX_EVENT_BYTES} bytes"),
            });
        }
        Ok(None)
    }

    /// Consumes all bytes if the body is JSON instead of a stream. Its first byte that is not white
    /// space shows this.
    fn take_json(&mut self, bytes: &mut &[u8]) {
        if self.is_json.is_none() && self.line_is_blank {
            let first = bytes.iter().copied().find(|byte| !is_blank(*byte));
            self.is_json = match (self.framing, first) {
                (_, Some(b'[')) | (Framing::Sse, Some(b'{')) => Some(true),
                (Framing::Sse, Some(_)) => Some(false),
                (Framing::Lines, _) | (Framing::Sse, None) => None,
            };
        }
        if self.is_json == Some(true) {
            self.line.extend_from_slice(std::mem::take(bytes));
        }
    }

    /// Decides whether the body is JSON, once its first line that is not blank has ended. Returns
    /// `true` if it is: the line ends inside a value, although every line should be a value.
    fn decide_json(&mut self) -> bool {
        if self.framing != Framing::Lines || self.is_json.is_some() || self.line_is_blank {
            return false;
        }
        let mut nesting = Nesting::default();
        nesting.add(&self.line);
        let is_json = nesting.is_open();
        self.is_json = Some(is_json);
        is_json
    }

    /// Handles the end of the body. An unfinished line is a frame; an unfinished event is dropped.
    pub(super) fn close(&mut self) -> LastFrames {
        let frames = match self.framing {
            _ if self.is_json == Some(true) => values(text(&std::mem::take(&mut self.line))),
            Framing::Sse => Vec::new(),
            Framing::Lines => self.end_line().into_iter().collect(),
        };
        LastFrames { frames, is_whole: self.is_json == Some(true) }
    }

    /// Moves bytes to the line, up to its end. Returns whether it has ended.
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
        self.line_is_blank &= line.iter().copied().all(is_blank);
        // The end is one byte; without one, no bytes are left.
        *bytes = rest.get(1..).unwrap_or_default();
        self.after_return = rest.first() == Some(&b'\r');
        end.is_some()
    }

    /// Reads the line that has ended. Returns a frame if the line is one, or ends an event.
    fn end_line(&mut self) -> Option<String> {
        let mut line = std::mem::take(&mut self.line);
        self.line_is_blank = true;
        if std::mem::take(&mut self.at_first_line) && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        let frame = match self.framing {
            Framing::Lines => Some(text(&line)),
            Framing::Sse if line.is_empty() => self.end_event(),
            Framing::Sse => {
                self.read_field(&line);
                None
            }
        };
        // The memory is reused for the next line, unless this one was unusually long.
        line.clear();
        line.shrink_to(64 * 1024);
        self.line = line;
        frame.filter(|frame| !frame.trim().is_empty())
    }

    /// Reads a field of an event. A field without a name is a comment.
    fn read_field(&mut self, line: &[u8]) {
        let (name, value) = line.split_at(memchr(b':', line).unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => self.is_fault = value == FAULT_EVENT,
            _ => {}
        }
    }

    /// Ends the event, and returns its data as a frame.
    fn end_event(&mut self) -> Option<String> {
        let mut data = std::mem::take(&mut self.data);
        let is_fault = std::mem::take(&mut self.is_fault);
        data.pop()?;
        let data = text(&data);
        Some(if is_fault && !data.trim().is_empty() { fault::from_error_event(data) } else { data })
    }
}

fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || BYTE_ORDER_MARK.contains(&byte)
}

/// The values of a list or of a sequence; the text itself if it is not JSON.
fn values(json: String) -> Vec<String> {
    let json = json.trim_start_matches('\u{feff}').trim();
    let values = serde_json::from_str::<Vec<&RawValue>>(json)
        .or_else(|_| serde_json::Deserializer::from_str(json).into_iter::<&RawValue>().collect());
    match values {
        Ok(values) => values.into_iter().map(|value| value.get().to_owned()).collect(),
        Err(_) => vec![json.to_owned()],
    }
}

/// Bytes as text. Invalid UTF-8 is replaced, because it may affect no more than a word of an
/// answer.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frames of a body that arrives in pieces of `piece` bytes.
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
            (
                b"\xef\xbb\xbf\n{\n \"a\": \"}\",\r\n\"b\":[]}\n",
                &["{\n \"a\": \"}\",\r\n\"b\":[]}"],
            ),
            (b"{\"a\":\n1}\n{\"a\":2}\n", &["{\"a\":\n1}", "{\"a\":2}"]),
            (b"[{},\n{}]", &["{}", "{}"]),
            (b"{\n", &["{"]),
            // Broken lines, each of which is a fault.
            (b"{}\n{\n{}\n", &["{}", "{", "{}"]),
            (b"{\"a\n{}\n", &["{\"a", "{}"]),
            (b"a\n[]\n", &["a", "[]"]),
        ];
        let sse = sse.map(|(body, expected)| (Framing::Sse, body, expected));
        for (framing, body, expected) in
            sse.into_iter().chain(lines.map(|(body, expected)| (Framing::Lines, body, expected)))
        {
            for piece in 1..=body.len().max(1) {
                let text = String::from_utf8_lossy(body);
                assert_eq!(frames(framing, body, piece), expected, "{text:?} in pieces of {piece}");
            }
        }
    }

    /// A body is scanned once, however small its pieces are.
    #[test]
    fn long_white_space_in_small_pieces_is_read_in_linear_time() {
        for (framing, start) in
            [(Framing::Sse, " "), (Framing::Lines, " "), (Framing::Lines, "\u{feff}")]
        {
            let mut framer = Framer::new(framing);
            let mut push = |piece: &str| framer.next(&mut piece.as_bytes());
            assert_eq!(push(&start.repeat(MAX_EVENT_BYTES / 4)), Ok(None));
            (0..MAX_EVENT_BYTES / 8).for_each(|_| assert_eq!(push(" "), Ok(None)));
            assert_eq!(push("["), Ok(None), "{framing:?}");
            assert_eq!(push("{}]"), Ok(None), "{framing:?}");
            assert_eq!(framer.close().frames, ["{}"], "{framing:?}");
        }
    }

    #[test]
    fn m_e6_an_event_without_an_end_is_bounded_whatever_it_is_made_of() {
        let data = [b"data: ".as_slice(), &[b'x'; 1024], b"\n"].concat();
        for (framing, piece) in [
            (Framing::Sse, &data[..]),
            (Framing::Sse, &[b'x'; 1024]),
            (Framing::Lines, b"{ "),
            (Framing::Sse, b"{ "),
        ] {
            let mut framer = Framer::new(framing);
            let too_much = (0..MAX_EVENT_BYTES).find(|_| framer.next(&mut &*piece).is_err());
            assert!(
                too_much.is_some_and(|pieces| pieces * piece.len() < 2 * MAX_EVENT_BYTES),
                "{framing:?}"
            );
        }
        // Comments are not kept.
        let mut framer = Framer::new(Framing::Sse);
        assert!((0..100_000).all(|_| {
            framer.next(&mut &b": ping, and nothing else but this comment\n"[..]).is_ok()
        }));
    }
}
