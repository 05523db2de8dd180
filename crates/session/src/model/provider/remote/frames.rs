//! The frames of an answer as they come: cut out of HTTP within bounds. The plain ones are taken out, faults end it, and
//! all others are rig's.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::{Stream, StreamExt};
use reqwest::{Response, StatusCode};
use rig_core::error::ProviderError;
use rig_core::http_client::framing::{NdjsonFramer, SseFramer};
use rig_core::wire::{Framing, WireFrame};

use super::plain::Plain;
use super::{Protocol, error, fault};

/// Bytes that one event of an answer may have. A whole file written by one call is far below it.
const MOST_EVENT: usize = 4 * 1024 * 1024;

/// Bytes that are framed at a time, at least: a framer's work grows with their square, for each line moves the rest.
/// Inside a long line it is an eighth of what came of it, for each piece looks at the line again.
const SLICE: usize = 8 * 1024;

type Bytes = Pin<Box<dyn Stream<Item = reqwest::Result<Vec<u8>>> + Send>>;

/// An answer's body as frames.
pub(super) struct Frames<P> {
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
    /// The status of an answer of which nothing has come yet.
    empty: Option<StatusCode>,
    protocol: std::marker::PhantomData<fn() -> P>,
}

impl<P: Protocol> Frames<P> {
    pub(super) fn of(response: Response, plain: Plain, key: Arc<str>) -> Self {
        Self {
            empty: Some(response.status()),
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

    /// The fault that a frame tells of, if it does.
    fn fault(&self, frame: &WireFrame) -> Option<ProviderError> {
        fault::read(&frame.as_str(), &self.key)
    }

    /// A frame that tells of an error, without the key that it may repeat: rig logs it.
    fn hide(&self, frame: WireFrame) -> WireFrame {
        match frame {
            WireFrame::Text(text) if text.contains("error") => WireFrame::Text(error::hidden(text, &self.key)),
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
                        return Poll::Ready(Some(match this.fault(&frame) {
                            Some(fault) => Err(fault),
                            None => Ok(this.hide(frame)),
                        }));
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
                        if !chunk.is_empty() {
                            this.empty = None;
                        }
                        this.chunk = chunk;
                        this.framed = 0;
                    }
                    Some(Err(error)) => {
                        this.over = true;
                        return Poll::Ready(Some(Err(error::transport(error))));
                    }
                    None => {
                        this.over = true;
                        if let Some(status) = this.empty {
                            return Poll::Ready(Some(Err(error::empty(status))));
                        }
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
                said.map(|event| match event.event.as_str() {
                    fault::EVENT => WireFrame::Text(fault::named(event.data)),
                    _ => WireFrame::Text(event.data),
                })
                .collect()
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
