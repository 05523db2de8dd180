//! The frames of an answer as they come: cut out of HTTP within bounds, and the plain ones taken out.
//!
//! rig-core reads each frame three times as a JSON tree and keeps all text twice: 13 µs of CPU a delta of one token,
//! where the short way takes 2 µs, HTTP included. So frames that hold text or thought and nothing else are taken out
//! before rig sees them; all others go its careful way, and order is kept because a frame is only read once what came
//! before it was taken.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use holdpoint_common::limits::TEXT_DELTA;
use reqwest::{Client, Request, Response, StatusCode, header};
use rig_core::driver::{Exchange, Opened, Opening, Transport};
use rig_core::error::ProviderError;
use rig_core::http_client::Error as HttpError;
use rig_core::http_client::framing::{NdjsonFramer, SseFramer};
use rig_core::wire::{Framing, WireFrame};

use super::Protocol;
use super::reader::Reader;
use crate::model::ModelEvent;

/// Bytes that one event of an answer may have. A whole file written by one call is far below it.
const MOST_EVENT: usize = 4 * 1024 * 1024;

/// Bytes that are framed at a time, at least: a framer's work grows with their square, for each line moves the rest.
/// Inside a long line it is an eighth of what came of it, for each piece looks at the line again.
const SLICE: usize = 8 * 1024;

/// Bytes of a refusal that are read.
const MOST_REFUSAL: usize = 64 * 1024;

/// How long the body of a refusal is read.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(3);

/// One request and the client that sends it.
#[derive(Clone)]
pub(super) struct Http {
    pub(super) client: Client,
    pub(super) request: Arc<Request>,
    pub(super) plain: Plain,
    pub(super) key: Arc<str>,
}

impl<P: Protocol> Transport<Reader<P>> for Http {
    fn send(&self, (): (), _: Exchange) -> Opening<WireFrame> {
        // Its body is bytes, which are shared.
        let request = self.request.try_clone();
        let Self { client, plain, key, .. } = self.clone();
        Opening::new(async move {
            let request = request.ok_or_else(|| ProviderError::request("its body is a stream"))?;
            let response = client.execute(request).await.map_err(transport)?;
            if response.status() != StatusCode::OK {
                let (status, headers) = (response.status(), response.headers().clone());
                let body = beginning(response, &key).await;
                return Err(ProviderError::from_http_response(status, body).with_response_headers(Some(headers)));
            }
            match not_a_stream(&response, P::FRAMING) {
                Some(kind) if kind.as_bytes().starts_with(b"application/json") => {
                    Err(ProviderError::from_provider_body(beginning(response, &key).await))
                }
                Some(kind) => Err(ProviderError::from_transport_error(HttpError::InvalidContentType(kind))),
                None => Ok(Opened::new(Frames::<P>::of(response, plain, key))),
            }
        })
    }
}

/// What a response is instead of the stream that was asked for. Some servers stream without naming a type.
fn not_a_stream(response: &Response, framing: Framing) -> Option<header::HeaderValue> {
    let kind = response.headers().get(header::CONTENT_TYPE)?;
    let is_stream = match framing {
        Framing::Sse => kind.as_bytes().to_ascii_lowercase().starts_with(b"text/event-stream"),
        Framing::Ndjson | Framing::Whole => !kind.as_bytes().starts_with(b"text/html"),
    };
    (!is_stream).then(|| kind.clone())
}

/// The beginning of a body, as far as it comes soon, with `key` nowhere in it.
async fn beginning(response: Response, key: &str) -> String {
    let mut bytes = Vec::new();
    let mut body = response.bytes_stream();
    let read = async {
        while let Some(Ok(chunk)) = body.next().await {
            bytes.extend_from_slice(&chunk[..chunk.len().min(MOST_REFUSAL - bytes.len())]);
            if bytes.len() == MOST_REFUSAL {
                break;
            }
        }
    };
    // That it was refused is known; what it says besides is not worth a long wait.
    let _ = tokio::time::timeout(REFUSAL_PATIENCE, read).await;
    super::error::hidden_beginning(String::from_utf8_lossy(&bytes).into_owned(), key)
}

fn transport(error: reqwest::Error) -> ProviderError {
    ProviderError::from_transport_error(HttpError::instance(error))
}

type Bytes = Pin<Box<dyn Stream<Item = reqwest::Result<Vec<u8>>> + Send>>;

/// An answer's body as frames.
struct Frames<P> {
    body: Bytes,
    framer: Framer,
    /// What came and is not framed yet, from `framed` on.
    chunk: Vec<u8>,
    framed: usize,
    ready: VecDeque<WireFrame>,
    plain: Plain,
    key: Arc<str>,
    /// rig must see one frame, to know that there was a stream.
    first: bool,
    over: bool,
    protocol: std::marker::PhantomData<fn() -> P>,
}

impl<P: Protocol> Frames<P> {
    fn of(response: Response, plain: Plain, key: Arc<str>) -> Self {
        Self {
            body: Box::pin(response.bytes_stream().map(|chunk| chunk.map(Vec::from))),
            framer: Framer::new(P::FRAMING),
            chunk: Vec::new(),
            framed: 0,
            ready: VecDeque::new(),
            plain,
            key,
            first: true,
            over: false,
            protocol: std::marker::PhantomData,
        }
    }

    /// A frame that tells of an error, without the key that it may repeat: rig logs it.
    fn hide(&self, frame: WireFrame) -> WireFrame {
        match frame {
            WireFrame::Text(text) if text.contains("error") => WireFrame::Text(super::error::hidden(text, &self.key)),
            frame => frame,
        }
    }

    /// Frames more of what came. `false`: an event is beyond its bound, and nothing more is read.
    fn frame(&mut self) -> bool {
        let slice = &self.chunk[self.framed..];
        let slice = &slice[..slice.len().min(SLICE.max(self.framer.pending() / 8))];
        self.framed += slice.len();
        self.ready.extend(self.framer.push(slice));
        if self.framer.pending() <= MOST_EVENT {
            return true;
        }
        self.over = true;
        self.chunk.clear();
        self.framed = 0;
        false
    }
}

impl<P: Protocol> Stream for Frames<P> {
    type Item = Result<WireFrame, ProviderError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if this.plain.is_full() {
                // Nothing needs to wake us: whoever polls takes the pieces and polls again.
                return Poll::Pending;
            }
            if let Some(frame) = this.ready.pop_front() {
                let plain = match &frame {
                    WireFrame::Text(text) if !this.first => P::plain(text),
                    _ => None,
                };
                match plain {
                    Some(pieces) => this.plain.add(pieces),
                    None => {
                        this.first = false;
                        if this.plain.unheard(&frame) > MOST_EVENT {
                            this.over = true;
                            let message = format!("over {MOST_EVENT} bytes of it say nothing");
                            return Poll::Ready(Some(Err(ProviderError::Response(message))));
                        }
                        return Poll::Ready(Some(Ok(this.hide(frame))));
                    }
                }
            } else if this.framed < this.chunk.len() {
                if !this.frame() {
                    let message = format!("one event of it is over {MOST_EVENT} bytes");
                    return Poll::Ready(Some(Err(ProviderError::Response(message))));
                }
            } else if this.over {
                return Poll::Ready(None);
            } else {
                match ready!(this.body.poll_next_unpin(context)) {
                    Some(Ok(chunk)) => {
                        this.chunk = chunk;
                        this.framed = 0;
                    }
                    Some(Err(error)) => {
                        this.over = true;
                        return Poll::Ready(Some(Err(transport(error))));
                    }
                    None => {
                        this.over = true;
                        this.ready.extend(this.framer.finish());
                    }
                }
            }
        }
    }
}

/// Cuts bytes into frames.
enum Framer {
    Sse(Box<SseFramer>),
    Lines(NdjsonFramer),
}

impl Framer {
    fn new(framing: Framing) -> Self {
        match framing {
            Framing::Sse => Self::Sse(Box::default()),
            Framing::Ndjson | Framing::Whole => Self::Lines(NdjsonFramer::new()),
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Vec<WireFrame> {
        match self {
            Self::Sse(framer) => {
                let said = framer.push(bytes).filter(|event| !event.data.trim().is_empty());
                said.map(|event| WireFrame::Text(event.data)).collect()
            }
            Self::Lines(framer) => framer.push(bytes).map(WireFrame::from_bytes).collect(),
        }
    }

    /// A last line without an end. An event without one is none.
    fn finish(&mut self) -> Option<WireFrame> {
        match self {
            Self::Sse(_) => None,
            Self::Lines(framer) => framer.finish().map(WireFrame::from_bytes),
        }
    }

    fn pending(&self) -> usize {
        match self {
            Self::Sse(framer) => framer.pending(),
            Self::Lines(framer) => framer.pending(),
        }
    }
}

/// What an answer and its frames know of each other.
#[derive(Clone, Default)]
pub(super) struct Plain(Arc<Mutex<Pieces>>);

#[derive(Default)]
struct Pieces {
    /// Text and thought that went the short way and were not taken yet: at most two pieces and one frame.
    ready: VecDeque<ModelEvent>,
    /// Bytes that went the long way since something last came of it: rig may keep them, as it does the arguments of
    /// a call that has no name yet.
    unheard: usize,
}

impl Plain {
    fn lock(&self) -> MutexGuard<'_, Pieces> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A frame goes the long way. How many bytes did so since something last came of it.
    fn unheard(&self, frame: &WireFrame) -> usize {
        let mut pieces = self.lock();
        pieces.unheard += frame.as_str().len();
        pieces.unheard
    }

    /// Something came of a frame that went the long way.
    pub(super) fn heard(&self) {
        self.lock().unheard = 0;
    }

    /// Bytes of all pieces.
    pub(super) fn bytes(&self) -> usize {
        self.lock().ready.iter().map(ModelEvent::bytes).sum()
    }

    /// Takes the oldest piece.
    pub(super) fn pop(&self) -> Option<ModelEvent> {
        self.lock().ready.pop_front()
    }

    /// Adds the pieces of a frame.
    fn add(&self, more: Vec<ModelEvent>) {
        let pieces = &mut self.lock().ready;
        for piece in more {
            match (pieces.back_mut(), piece) {
                (Some(ModelEvent::Text(text)), ModelEvent::Text(more))
                | (Some(ModelEvent::Thought(text)), ModelEvent::Thought(more)) => text.push_str(&more),
                (_, piece) => pieces.push_back(piece),
            }
        }
    }

    /// Whether it is time to hand over what there is.
    pub(super) fn is_full(&self) -> bool {
        let pieces = &self.lock().ready;
        match (pieces.len(), pieces.back()) {
            (0, _) => false,
            (1, Some(piece)) => piece.bytes() >= TEXT_DELTA,
            _ => true,
        }
    }
}
