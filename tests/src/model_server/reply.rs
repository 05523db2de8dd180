//! The replies of the model server: scripts of parts, bytes, waits and ends that work on every
//! wire.

use std::io::Write;
use std::time::Duration;

use serde_json::Value;

use super::wire::{Part, Wire};
use super::{Gate, openai};

/// How many bytes a flood writes at once.
const BLOCK: usize = 64 * 1024;

/// The interval of keep-alive signs.
const KEEP_ALIVE: Duration = Duration::from_millis(50);

/// The reply to one request, which is played step by step.
#[derive(Clone, Default)]
pub struct Reply {
    head: Option<Head>,
    steps: Vec<Step>,
    /// The number of body bytes after which the connection is cut.
    cut: Option<usize>,
    /// The size in bytes of the pieces in which the body is written.
    piece: Option<usize>,
}

#[derive(Clone)]
enum Head {
    /// The head of a stream on this wire.
    Stream,
    /// A complete answer that is not a stream.
    Whole(String),
}

#[derive(Clone)]
enum Step {
    /// A part of the answer, encoded for the wire.
    Part(Part),
    /// An event with this data, framed for the wire, as one HTTP chunk.
    Event(String),
    /// Bytes of the body as one HTTP chunk.
    Body(Vec<u8>),
    /// This text, repeated, as fast as the client reads it.
    Flood(usize, String),
    Wait(Gate),
    /// A delay.
    Pause(Duration),
    Silence,
    /// Keep-alive signs without content, until the client is gone.
    KeepAlive,
    Cut,
    /// A TCP RST, as from a peer that has forgotten the connection.
    Reset,
    /// The end of the body.
    End,
}

impl Reply {
    /// Streams `pieces` as text and finishes with usage and the finish reason `stop`.
    pub fn text<S: AsRef<str>>(pieces: impl IntoIterator<Item = S>) -> Self {
        pieces
            .into_iter()
            .fold(Self::stream(), |reply, piece| reply.say(piece.as_ref()))
            .finish("stop")
    }

    /// Streams calls of these tools, each with its arguments as JSON text. On wires with fragments,
    /// the first fragment of a call has its id and name, and two more have the arguments.
    pub fn calls<N: AsRef<str>, A: AsRef<str>>(calls: impl IntoIterator<Item = (N, A)>) -> Self {
        let call = |reply: Self, (index, (name, arguments)): (usize, (N, A))| {
            reply.call(index, name.as_ref(), arguments.as_ref())
        };
        calls.into_iter().enumerate().fold(Self::stream(), call).finish("tool_calls")
    }

    /// Streams `n` deltas of one token each, as fast as the client reads them.
    #[must_use]
    pub fn flood(n: usize) -> Self {
        let mut reply = Self::stream();
        reply.steps.push(Step::Flood(n, "tok ".to_owned()));
        reply.finish("stop")
    }

    /// Sends headers, then stays silent for ever.
    #[must_use]
    pub fn silence() -> Self {
        Self::stream().hang()
    }

    /// Stays silent for ever, without headers.
    #[must_use]
    pub fn no_headers() -> Self {
        Self::default().hang()
    }

    /// An answer that is not a stream, with this HTTP status.
    #[must_use]
    pub fn status(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let mut head = format!("HTTP/1.1 {status} Scripted\r\n");
        let says = |header: &str| headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(header));
        if !says("content-length") {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        if !says("content-type") {
            head.push_str("content-type: application/json\r\n");
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        head.push_str(body);
        Self { head: Some(Head::Whole(head)), ..Self::default() }
    }

    /// Ends the connection before any header.
    #[must_use]
    pub fn refuse() -> Self {
        Self { steps: vec![Step::Cut], ..Self::default() }
    }

    /// Starts a stream, to be continued by the methods below.
    #[must_use]
    pub fn stream() -> Self {
        Self { head: Some(Head::Stream), ..Self::default() }
    }

    /// Adds a piece of text.
    #[must_use]
    pub fn say(self, text: &str) -> Self {
        self.part(Part::Say(text.to_owned()))
    }

    /// Adds a piece of thought. OpenAI's wire gets it in the field that most compatible servers
    /// use.
    #[must_use]
    pub fn think(self, text: &str) -> Self {
        self.part(Part::Think(text.to_owned()))
    }

    /// Adds the signature of the previous thought, on the wires that have one.
    #[must_use]
    pub fn sign(self, signature: &str) -> Self {
        self.part(Part::Sign(signature.to_owned()))
    }

    /// Adds a tool call, the `index`th of the answer, with its arguments as JSON text. Its id is
    /// `provider_INDEX`.
    #[must_use]
    pub fn call(self, index: usize, name: &str, arguments: &str) -> Self {
        self.part(Part::Call { index, name: name.to_owned(), arguments: arguments.to_owned() })
    }

    /// Starts a call that is written in pieces, on the wires that [support it](Wire::has_pieces).
    #[must_use]
    pub fn begin_call(self, index: usize, name: &str) -> Self {
        self.part(Part::Begin { index, name: name.to_owned() })
    }

    /// Adds a piece to the arguments of the call that was started last.
    #[must_use]
    pub fn write_call(self, index: usize, piece: &str) -> Self {
        self.part(Part::Write { index, piece: piece.to_owned() })
    }

    fn part(mut self, part: Part) -> Self {
        self.steps.push(Step::Part(part));
        self
    }

    /// Adds a chunk of OpenAI's wire with this `delta`, without checking it.
    #[must_use]
    pub fn delta(self, delta: &Value) -> Self {
        self.event(&openai::delta(delta).to_string())
    }

    /// Adds an event with this data, framed for the wire, without checking the data.
    #[must_use]
    pub fn event(mut self, data: &str) -> Self {
        self.steps.push(Step::Event(data.to_owned()));
        self
    }

    /// Adds these bytes as one HTTP chunk, without checking them.
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

    /// Delays the reply by this time.
    #[must_use]
    pub fn pause(mut self, time: Duration) -> Self {
        self.steps.push(Step::Pause(time));
        self
    }

    /// Sends only keep-alive signs from here on.
    #[must_use]
    pub fn keep_alive(mut self) -> Self {
        self.steps.push(Step::KeepAlive);
        self
    }

    /// Sends no more bytes, but keeps the connection open.
    #[must_use]
    pub fn hang(mut self) -> Self {
        self.steps.push(Step::Silence);
        self
    }

    /// Finishes as the wire does: with a usage of 11 input tokens, 3 of them cached, and 7 output
    /// tokens, and a finish reason in OpenAI's words (`stop`, `tool_calls`, `length`; any other is
    /// sent unchanged).
    #[must_use]
    pub fn finish(self, reason: &str) -> Self {
        self.part(Part::Finish(reason.to_owned())).end()
    }

    /// Ends the body without a finish reason.
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

    /// Resets the connection here (TCP RST); bytes that were sent before may be lost too.
    #[must_use]
    pub fn reset(mut self) -> Self {
        self.steps.push(Step::Reset);
        self
    }

    /// Whether the connection ends by a reset.
    pub(super) fn resets(&self) -> bool {
        matches!(self.steps.last(), Some(Step::Reset))
    }

    /// Cuts the connection after this many bytes of the body.
    #[must_use]
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.cut = Some(bytes);
        self
    }

    /// Writes the body in pieces of this many bytes, each as its own HTTP chunk.
    #[must_use]
    pub fn in_pieces(mut self, bytes: usize) -> Self {
        self.piece = Some(bytes.max(1));
        self
    }

    /// The bytes of the body on this wire, without floods.
    #[must_use]
    pub fn body(&self, wire: Wire) -> Vec<u8> {
        let mut writer = wire.writer();
        let bytes = |step: &Step| match step {
            Step::Part(part) => writer.part(part).concat(),
            Step::Event(data) => wire.frame(data),
            Step::Body(bytes) => bytes.clone(),
            Step::Flood(..)
            | Step::Wait(_)
            | Step::Pause(_)
            | Step::Silence
            | Step::KeepAlive
            | Step::Cut
            | Step::Reset
            | Step::End => Vec::new(),
        };
        self.steps.iter().flat_map(bytes).collect()
    }

    /// The length of [`body`](Self::body) in bytes.
    #[must_use]
    pub fn body_len(&self, wire: Wire) -> usize {
        self.body(wire).len()
    }

    /// Plays the script. Returns false if the connection must end. `wait` waits for a gate, or for
    /// the end if there is no gate, and returns whether to continue.
    pub(super) fn send(
        self,
        wire: Wire,
        output: &mut impl Write,
        wait: impl Fn(Option<&Gate>) -> bool,
    ) -> bool {
        let head = match &self.head {
            Some(Head::Stream) => {
                let kind = wire.content_type();
                format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n"
                )
            }
            Some(Head::Whole(head)) => head.clone(),
            None => String::new(),
        };
        if output.write_all(head.as_bytes()).is_err() {
            return false;
        }
        let mut writer = wire.writer();
        let mut body = Body {
            output,
            left: self.cut.unwrap_or(usize::MAX),
            piece: self.piece.unwrap_or(usize::MAX),
        };
        self.steps.into_iter().all(|step| match step {
            Step::Part(part) => writer.part(&part).iter().all(|bytes| body.write(bytes)),
            Step::Event(data) => body.write(&wire.frame(&data)),
            Step::Body(bytes) => body.write(&bytes),
            Step::Flood(times, text) => {
                // The first part may include the opening of a block that contains the others.
                let part = Part::Say(text);
                let opened = writer.part(&part).iter().all(|bytes| body.write(bytes));
                opened && flood(body.output, times.saturating_sub(1), &writer.part(&part).concat())
            }
            Step::Wait(gate) => wait(Some(&gate)),
            Step::Pause(time) => {
                std::thread::sleep(time);
                true
            }
            Step::Silence => wait(None),
            Step::KeepAlive => {
                while body.write(wire.nothing()) {
                    std::thread::sleep(KEEP_ALIVE);
                }
                false
            }
            Step::Cut | Step::Reset => false,
            Step::End => body.output.write_all(b"0\r\n\r\n").is_ok(),
        })
    }
}

/// The body of a reply while it is written.
struct Body<'a, W> {
    output: &'a mut W,
    /// The number of bytes until the cut.
    left: usize,
    /// The size of a piece in bytes.
    piece: usize,
}

impl<W: Write> Body<'_, W> {
    /// Writes bytes, each piece as its own HTTP chunk. Returns false if the connection must end.
    fn write(&mut self, bytes: &[u8]) -> bool {
        let now = &bytes[..bytes.len().min(self.left)];
        self.left -= now.len();
        let sent = now.chunks(self.piece).all(|piece| {
            let mut chunk = Vec::new();
            push_chunk(&mut chunk, piece);
            self.output.write_all(&chunk).is_ok()
        });
        sent && now.len() == bytes.len()
    }
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
