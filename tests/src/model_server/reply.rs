//! What the server answers: a script of parts, bytes, waits and endings, the same for every wire.

use std::io::Write;
use std::time::Duration;

use serde_json::Value;

use super::wire::{Part, Wire};
use super::{Gate, openai};

/// How many bytes a flood writes at once.
const BLOCK: usize = 64 * 1024;

/// How often a server that has nothing to say shows that it is alive.
const KEEP_ALIVE: Duration = Duration::from_millis(50);

/// The answer to one request, played step by step.
#[derive(Clone, Default)]
pub struct Reply {
    head: Option<Head>,
    steps: Vec<Step>,
    /// Bytes of the body after which the connection is cut.
    cut: Option<usize>,
    /// Bytes of the body that are written at a time.
    piece: Option<usize>,
}

#[derive(Clone)]
enum Head {
    /// That of a stream, as the wire has it.
    Stream,
    /// An answer that is no stream, whole.
    Whole(String),
}

#[derive(Clone)]
enum Step {
    /// A part of the answer, as the wire says it.
    Part(Part),
    /// An event with this data, as the wire frames it: one HTTP chunk.
    Event(String),
    /// Bytes of the body: one HTTP chunk.
    Body(Vec<u8>),
    /// This text so many times, as fast as the client takes it.
    Flood(usize, String),
    Wait(Gate),
    /// A while in which nothing comes: the model takes its time.
    Pause(Duration),
    Silence,
    /// What says nothing, again and again.
    KeepAlive,
    Cut,
    /// As a peer that has forgotten the connection ends it.
    Reset,
    /// The end of the body.
    End,
}

impl Reply {
    /// A stream that says `pieces` and ends as the wire ends it, with usage and a finish reason.
    pub fn text<S: AsRef<str>>(pieces: impl IntoIterator<Item = S>) -> Self {
        pieces.into_iter().fold(Self::stream(), |reply, piece| reply.say(piece.as_ref())).finish("stop")
    }

    /// A stream that wants these tools called, each with its arguments as JSON text. Where the wire has fragments,
    /// the first of a call has its id and name, and the arguments come in two more.
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
        reply.steps.push(Step::Flood(n, "tok ".to_owned()));
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

    /// The connection ends before any header.
    #[must_use]
    pub fn refuse() -> Self {
        Self { steps: vec![Step::Cut], ..Self::default() }
    }

    /// The beginning of a stream; what follows is added by the methods below.
    #[must_use]
    pub fn stream() -> Self {
        Self { head: Some(Head::Stream), ..Self::default() }
    }

    /// A piece of text.
    #[must_use]
    pub fn say(self, text: &str) -> Self {
        self.part(Part::Say(text.to_owned()))
    }

    /// A piece of thought. On OpenAI's wire in the field most compatible servers use.
    #[must_use]
    pub fn think(self, text: &str) -> Self {
        self.part(Part::Think(text.to_owned()))
    }

    /// The signature of the thought before, on the wires that have one.
    #[must_use]
    pub fn sign(self, signature: &str) -> Self {
        self.part(Part::Sign(signature.to_owned()))
    }

    /// A tool call, the `index`th of the answer, its arguments as JSON text. Its id is `provider_INDEX`.
    #[must_use]
    pub fn call(self, index: usize, name: &str, arguments: &str) -> Self {
        self.part(Part::Call { index, name: name.to_owned(), arguments: arguments.to_owned() })
    }

    /// The beginning of a call that is written piece by piece, on the wires that [have that](Wire::has_pieces).
    #[must_use]
    pub fn begin_call(self, index: usize, name: &str) -> Self {
        self.part(Part::Begin { index, name: name.to_owned() })
    }

    /// A piece of the arguments of the call that was begun last.
    #[must_use]
    pub fn write_call(self, index: usize, piece: &str) -> Self {
        self.part(Part::Write { index, piece: piece.to_owned() })
    }

    fn part(mut self, part: Part) -> Self {
        self.steps.push(Step::Part(part));
        self
    }

    /// A chunk of OpenAI's wire with this `delta`, whatever it is.
    #[must_use]
    pub fn delta(self, delta: &Value) -> Self {
        self.event(&openai::delta(delta).to_string())
    }

    /// An event with this data, whatever it is, framed as the wire frames it.
    #[must_use]
    pub fn event(mut self, data: &str) -> Self {
        self.steps.push(Step::Event(data.to_owned()));
        self
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

    /// Takes this long before it goes on.
    #[must_use]
    pub fn pause(mut self, time: Duration) -> Self {
        self.steps.push(Step::Pause(time));
        self
    }

    /// Nothing more for ever, but signs that the connection is alive.
    #[must_use]
    pub fn keep_alive(mut self) -> Self {
        self.steps.push(Step::KeepAlive);
        self
    }

    /// Nothing more for ever.
    #[must_use]
    pub fn hang(mut self) -> Self {
        self.steps.push(Step::Silence);
        self
    }

    /// The end as the wire does it: 11 tokens in, 3 of them cached, 7 out, and a finish reason in OpenAI's words
    /// (`stop`, `tool_calls`, `length`; any other goes out as it is).
    #[must_use]
    pub fn finish(self, reason: &str) -> Self {
        self.part(Part::Finish(reason.to_owned())).end()
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

    /// Resets the connection here (TCP RST): what was sent before may be lost, too.
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

    /// Writes the body this many bytes at a time, each in an HTTP chunk of its own.
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

    /// How many bytes [`body`](Self::body) has.
    #[must_use]
    pub fn body_len(&self, wire: Wire) -> usize {
        self.body(wire).len()
    }

    /// Plays the script. False if the connection must end here. `wait` waits for a gate, or for nothing, and
    /// says whether to go on.
    pub(super) fn send(self, wire: Wire, output: &mut impl Write, wait: impl Fn(Option<&Gate>) -> bool) -> bool {
        let head = match &self.head {
            Some(Head::Stream) => {
                let kind = wire.content_type();
                format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n")
            }
            Some(Head::Whole(head)) => head.clone(),
            None => String::new(),
        };
        if output.write_all(head.as_bytes()).is_err() {
            return false;
        }
        let mut writer = wire.writer();
        let mut body = Body { output, left: self.cut.unwrap_or(usize::MAX), piece: self.piece.unwrap_or(usize::MAX) };
        self.steps.into_iter().all(|step| match step {
            Step::Part(part) => writer.part(&part).iter().all(|bytes| body.write(bytes)),
            Step::Event(data) => body.write(&wire.frame(&data)),
            Step::Body(bytes) => body.write(&bytes),
            Step::Flood(times, text) => {
                // The first may open what the others are in.
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

/// The body of an answer as it is written.
struct Body<'a, W> {
    output: &'a mut W,
    /// Bytes until the cut.
    left: usize,
    /// Bytes written at a time.
    piece: usize,
}

impl<W: Write> Body<'_, W> {
    /// Writes bytes, each piece in an HTTP chunk of its own. False if the connection must end here.
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
