//! The stream of an answer: the events of its frames, and then a check that the answer is complete.

use std::sync::Arc;

use futures_util::{FutureExt, TryFutureExt, stream};
use holdpoint_common::{ApiKey, Usage};
use reqwest::Request;

use super::client::{ClientSlot, HttpClient};
use super::http::{self, Body};
use super::reader::{Counts, End, Finish, Pieces, Reader, no_content_error};
use super::surrogates::{marked, unmarked};
use super::{MAX_EVENT_BYTES, Protocol, error, fault};
use crate::model::{ModelError, ModelEvent, ModelStream};

/// Streams the answer to a request, which is sent when the stream is first polled. Dropping the
/// stream drops the connection. `slot` has the client for later requests, and `bytes_in` is the
/// size of the request's content.
pub(super) fn stream<P: Protocol>(
    slot: Arc<ClientSlot>,
    client: HttpClient,
    request: Request,
    key: ApiKey,
    bytes_in: u64,
) -> ModelStream {
    let answering = async move {
        let sent = http::send(client, request, P::FRAMING, key.expose()).await;
        if matches!(sent, Err(ModelError::Setup { .. })) {
            slot.clear();
        }
        let answer = Answer::<P::Reader>::new(sent?, key, bytes_in);
        Ok(stream::unfold(answer, async |mut answer| {
            answer.next().await.map(|event| (event, answer))
        }))
    };
    Box::pin(answering.try_flatten_stream())
}

/// One answer, and the progress of reading it.
struct Answer<R> {
    body: Body,
    reader: R,
    pieces: Pieces,
    state: State,
    /// Bytes of frames since the last event.
    silent_bytes: usize,
    seen: SeenContent,
    key: ApiKey,
    /// Sizes for an estimate of the usage, if the provider sends no counts.
    bytes_in: u64,
    bytes_out: u64,
}

enum State {
    Reading,
    /// The answer was read to its end, or has failed.
    Read(Result<End, ModelError>),
    /// The usage was reported. The last event or error, if there is one, is left to report.
    Checked(Option<Result<ModelEvent, ModelError>>),
}

/// The kinds of content that an answer has brought.
#[derive(Clone, Copy, Default)]
struct SeenContent {
    text: bool,
    thought: bool,
    call: bool,
}

impl SeenContent {
    fn add(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Text(text) => self.text |= !text.trim().is_empty(),
            ModelEvent::Thought(_) | ModelEvent::ThoughtSignature(_) => self.thought = true,
            ModelEvent::Call { .. } => self.call = true,
            ModelEvent::AgentStarted { .. }
            | ModelEvent::Writing { .. }
            | ModelEvent::Usage(_)
            | ModelEvent::OutputLimit => {}
        }
    }

    fn has_any(self) -> bool {
        self.text || self.thought || self.call
    }
}

impl<R: Reader> Answer<R> {
    fn new(body: Body, key: ApiKey, bytes_in: u64) -> Self {
        Self {
            body,
            reader: R::default(),
            pieces: Pieces::default(),
            state: State::Reading,
            silent_bytes: 0,
            seen: SeenContent::default(),
            key,
            bytes_in,
            bytes_out: 0,
        }
    }

    /// The texts that no error may contain.
    fn secrets(&self) -> [&str; 2] {
        [self.key.expose(), self.body.proxy_password()]
    }

    /// The next event. An error is the last one.
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        while matches!(self.state, State::Reading) && !self.pieces.is_due() {
            match self.advance().await {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => self.state = State::Read(Err(error)),
            }
        }
        if matches!(self.state, State::Read(_)) {
            self.pieces.end();
        }
        if let Some(event) = self.pieces.pop() {
            if !matches!(event, ModelEvent::Writing { .. }) {
                self.bytes_out += event.bytes() as u64;
            }
            self.seen.add(&event);
            return Some(Ok(event));
        }
        match std::mem::replace(&mut self.state, State::Checked(None)) {
            State::Read(Ok(end)) => {
                let usage = self.usage(&end.counts);
                self.state = State::Checked(self.check(end).transpose());
                Some(Ok(ModelEvent::Usage(usage)))
            }
            State::Read(Err(error)) => Some(Err(error::without_secrets(error, &self.secrets()))),
            State::Checked(last) => last,
            // Reading continues until there is an event.
            State::Reading => None,
        }
    }

    /// Reads the next frame, or waits for more bytes. Returns `false` if no more bytes are
    /// available and there are pieces to hand over.
    async fn advance(&mut self) -> Result<bool, ModelError> {
        if let Some(frame) = self.body.frame()? {
            self.read(&frame)?;
            return Ok(true);
        }
        let more = if self.pieces.is_empty() {
            self.body.more().await?
        } else {
            match self.more_at_once().await {
                Some(more) => more?,
                None => return Ok(false),
            }
        };
        if !more {
            self.close()?;
        }
        Ok(true)
    }

    /// More bytes, if they are available. The bytes of one read arrive piece by piece, each after
    /// the connection's task has run. Yielding to that task before an event is handed over makes
    /// the whole read one event.
    async fn more_at_once(&mut self) -> Option<Result<bool, ModelError>> {
        if let Some(more) = self.body.more().now_or_never() {
            return Some(more);
        }
        tokio::task::yield_now().await;
        self.body.more().now_or_never()
    }

    fn read(&mut self, frame: &str) -> Result<(), ModelError> {
        let frame = &*marked(frame);
        if let Some(fault) = fault::read(&unmarked(frame), &self.secrets()) {
            return Err(fault);
        }
        let before = self.pieces.added();
        let end = self.reader.read(frame, &mut self.pieces)?;
        self.silent_bytes =
            if self.pieces.added() > before { 0 } else { self.silent_bytes + frame.len() };
        if let Some(end) = end {
            self.state = State::Read(Ok(end));
        } else if self.silent_bytes > MAX_EVENT_BYTES {
            return Err(no_content_error());
        }
        Ok(())
    }

    /// Handles the end of the body.
    fn close(&mut self) -> Result<(), ModelError> {
        let rest = self.body.close();
        for frame in &rest.frames {
            self.read(frame)?;
            if !matches!(self.state, State::Reading) {
                return Ok(());
            }
        }
        let end = self.reader.close(&mut self.pieces);
        self.state = State::Read(end.ok_or_else(|| match rest.is_whole {
            true => error::failed(&rest.frames.concat(), &self.secrets()),
            false => {
                ModelError::Connection { message: "it was closed before the answer ended".into() }
            }
        }));
        Ok(())
    }

    fn usage(&self, counts: &Counts) -> Usage {
        let estimate = Usage::estimate(self.bytes_in, self.bytes_out);
        // A request is never empty: a provider that reports zero tokens has not counted them.
        let input = counts.input.filter(|tokens| *tokens > 0);
        let output = counts.output.filter(|tokens| *tokens > 0 || input.is_some());
        Usage {
            input: input.unwrap_or(estimate.input),
            cached: counts.cached.unwrap_or(0),
            cache_written: counts.cache_written.unwrap_or(0),
            output: output.unwrap_or(estimate.output),
            cost: None,
            estimated: input.is_none() || output.is_none(),
        }
    }

    /// Checks whether an answer that ended is complete. Returns the event to end it with, if there
    /// is one.
    fn check(&self, end: End) -> Result<Option<ModelEvent>, ModelError> {
        let failed = |message: String| {
            Err(error::without_secrets(ModelError::Failed { message }, &self.secrets()))
        };
        let expects_call = end.finish == Finish::Calls;
        match end.finish {
            Finish::Filtered(explanation) => {
                let explanation = explanation.map(|words| format!(": {words}")).unwrap_or_default();
                return failed(format!(
                    "the provider's content filter stopped the answer{explanation}"
                ));
            }
            Finish::Limit => return Ok(Some(ModelEvent::OutputLimit)),
            Finish::Fault(reason) => {
                return failed(format!("the provider ended the answer with `{reason}`"));
            }
            Finish::Other(reason) if !self.seen.has_any() => {
                return failed(format!("the provider ended the answer with `{reason}`"));
            }
            Finish::Other(_) | Finish::Stop | Finish::Calls => {}
        }
        // A call that is lost silently would let the turn end as if everything were done.
        if end.lost_call || (expects_call && !self.seen.call) {
            return failed("it requested a tool call that can't be read".into());
        }
        match self.seen {
            SeenContent { text: false, call: false, thought: false } => {
                failed("the answer was empty".into())
            }
            SeenContent { text: false, call: false, thought: true } => {
                failed("it thought but did not answer".into())
            }
            _ => Ok(None),
        }
    }
}
