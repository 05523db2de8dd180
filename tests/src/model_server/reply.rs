//! What the server answers: a script of bytes, waits and endings.

use std::io::Write;

use serde_json::Value;

use super::{Gate, openai};

/// How many bytes a flood writes at once.
const BLOCK: usize = 64 * 1024;

/// The answer to one request, played step by step.
#[derive(Clone, Default)]
pub struct Reply {
    head: Option<String>,
    steps: Vec<Step>,
    /// Bytes of the body after which the connection is cut.
    cut: Option<usize>,
    /// Bytes of the body that are written at a time.
    piece: Option<usize>,
}

#[derive(Clone)]
enum Step {
    /// Bytes of the body: one HTTP chunk.
    Body(Vec<u8>),
    /// The same HTTP chunk this many times, as fast as the client takes them.
    Flood(usize, Vec<u8>),
    Wait(Gate),
    Silence,
    Cut,
    /// The end of the body.
    End,
}

impl Reply {
    /// A stream that says `pieces`, with usage, a finish reason and `[DONE]`, as OpenAI does.
    pub fn text<S: AsRef<str>>(pieces: impl IntoIterator<Item = S>) -> Self {
        pieces.into_iter().fold(Self::stream(), |reply, piece| reply.say(piece.as_ref())).finish("stop")
    }

    /// A stream that wants these tools called, each with its arguments as JSON text, as OpenAI does: the
    /// first fragment of a call has its id and name, the arguments come in two more.
    pub fn calls<N: AsRef<str>, A: AsRef<str>>(calls: impl IntoIterator<Item = (N, A)>) -> Self {
        let call = |reply: Self, (index, (name, arguments)): (usize, (N, A))| {
            reply.call(index, name.as_ref(), arguments.as_ref())
        };
        calls.into_iter().enumerate().fold(Self::stream(), call).finish("tool_calls")
    }

    /// A stream of `n` deltas of one token each, as fast as the client takes them.
    #[must_use]
    pub fn flood(n: usize) -> Self {
        let mut reply = Self::stream();
        reply.steps.push(Step::Flood(n, sse(&openai::delta(&serde_json::json!({"content": "tok "})).to_string())));
        reply.finish("stop")
    }

    /// Headers, then nothing for ever.
    #[must_use]
    pub fn silence() -> Self {
        Self::stream().hang()
    }

    /// Nothing at all for ever.
    #[must_use]
    pub fn no_headers() -> Self {
        Self::default().hang()
    }

    /// An answer that is no stream.
    #[must_use]
    pub fn status(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let mut head = format!("HTTP/1.1 {status} Scripted\r\ncontent-length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            head.push_str("content-type: application/json\r\n");
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        head.push_str(body);
        Self { head: Some(head), ..Self::default() }
    }

    /// The connection ends before any header.
    #[must_use]
    pub fn refuse() -> Self {
        Self { steps: vec![Step::Cut], ..Self::default() }
    }

    /// The beginning of a stream; what follows is added by the methods below.
    #[must_use]
    pub fn stream() -> Self {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        Self { head: Some(head.to_owned()), ..Self::default() }
    }

    /// A piece of text.
    #[must_use]
    pub fn say(self, text: &str) -> Self {
        self.delta(&serde_json::json!({"content": text}))
    }

    /// A piece of thought, in the field most compatible servers use.
    #[must_use]
    pub fn think(self, text: &str) -> Self {
        self.delta(&serde_json::json!({"reasoning_content": text}))
    }

    /// A tool call in three fragments. Its id is `provider_INDEX`.
    #[must_use]
    pub fn call(self, index: usize, name: &str, arguments: &str) -> Self {
        let (left, right) = arguments.split_at(arguments.floor_char_boundary(arguments.len() / 2));
        openai::call_fragments(index, name, &[left, right]).iter().fold(self, |reply, delta| reply.delta(delta))
    }

    /// A chunk with this `delta`, whatever it is.
    #[must_use]
    pub fn delta(self, delta: &Value) -> Self {
        self.event(&openai::delta(delta).to_string())
    }

    /// An event with this data, whatever it is.
    #[must_use]
    pub fn event(self, data: &str) -> Self {
        self.bytes(sse(data))
    }

    /// These bytes as one HTTP chunk, whatever they are.
    #[must_use]
    pub fn bytes(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.steps.push(Step::Body(bytes.into()));
        self
    }

    /// Waits until the test opens `gate`.
    #[must_use]
    pub fn gate(mut self, gate: &Gate) -> Self {
        self.steps.push(Step::Wait(gate.clone()));
        self
    }

    /// Nothing more for ever.
    #[must_use]
    pub fn hang(mut self) -> Self {
        self.steps.push(Step::Silence);
        self
    }

    /// The end as OpenAI does it: a finish reason, usage in a last chunk without choices, `[DONE]`.
    #[must_use]
    pub fn finish(self, reason: &str) -> Self {
        self.event(&openai::finish(reason).to_string()).event(&openai::usage(11, 7).to_string()).event("[DONE]").end()
    }

    /// The end of the body, and nothing said about the end of the answer.
    #[must_use]
    pub fn end(mut self) -> Self {
        self.steps.push(Step::End);
        self
    }

    /// Cuts the connection here.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.steps.push(Step::Cut);
        self
    }

    /// Cuts the connection after this many bytes of the body.
    #[must_use]
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.cut = Some(bytes);
        self
    }

    /// Writes the body this many bytes at a time, each in an HTTP chunk of its own.
    #[must_use]
    pub fn in_pieces(mut self, bytes: usize) -> Self {
        self.piece = Some(bytes.max(1));
        self
    }

    /// Bytes of the body, floods not counted.
    #[must_use]
    pub fn body_len(&self) -> usize {
        self.steps.iter().map(|step| if let Step::Body(bytes) = step { bytes.len() } else { 0 }).sum()
    }

    /// Plays the script. False if the connection must end here. `wait` waits for a gate, or for nothing, and
    /// says whether to go on.
    pub(super) fn send(self, output: &mut impl Write, wait: impl Fn(Option<&Gate>) -> bool) -> bool {
        if let Some(head) = &self.head
            && output.write_all(head.as_bytes()).is_err()
        {
            return false;
        }
        let mut left = self.cut.unwrap_or(usize::MAX);
        for step in self.steps {
            let sent = match step {
                Step::Body(bytes) => {
                    let now = &bytes[..bytes.len().min(left)];
                    let sent = now.chunks(self.piece.unwrap_or(usize::MAX)).all(|piece| {
                        let mut chunk = Vec::new();
                        push_chunk(&mut chunk, piece);
                        output.write_all(&chunk).is_ok()
                    });
                    left -= now.len();
                    sent && now.len() == bytes.len()
                }
                Step::Flood(times, bytes) => flood(output, times, &bytes),
                Step::Wait(gate) => wait(Some(&gate)),
                Step::Silence => wait(None),
                Step::Cut => false,
                Step::End => output.write_all(b"0\r\n\r\n").is_ok(),
            };
            if !sent {
                return false;
            }
        }
        true
    }
}

fn sse(data: &str) -> Vec<u8> {
    format!("data: {data}\n\n").into_bytes()
}

fn push_chunk(output: &mut Vec<u8>, bytes: &[u8]) {
    output.extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
    output.extend_from_slice(bytes);
    output.extend_from_slice(b"\r\n");
}

fn flood(output: &mut impl Write, times: usize, bytes: &[u8]) -> bool {
    let mut chunk = Vec::new();
    push_chunk(&mut chunk, bytes);
    let per_block = (BLOCK / chunk.len()).clamp(1, times.max(1));
    let block = chunk.repeat(per_block);
    (0..times / per_block).all(|_| output.write_all(&block).is_ok())
        && output.write_all(&block[..times % per_block * chunk.len()]).is_ok()
}
