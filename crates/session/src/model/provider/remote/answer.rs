//! An answer as it streams: rig's events and the plain pieces beside them, in our words and in order.

use std::collections::HashMap;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::{Stream, StreamExt};
use holdpoint_common::Usage;
use reqwest::{Client, Request};
use rig_core::completion::{CompletionRequest, CompletionResponse, FinishReason};
use rig_core::driver;
use rig_core::error::ProviderError;
use rig_core::message::{AssistantContent, ToolCall};
use rig_core::streaming::{CompletionStream, Item, Part, StreamEvent};
use serde_json::Value;

use super::http::Http;
use super::plain::Plain;
use super::reader::Reader;
use super::{Protocol, error};
use crate::model::{ModelError, ModelEvent};

/// One answer. Dropping it drops the connection.
pub(super) struct Answer<P> {
    phase: Phase,
    plain: Plain,
    /// Bytes of plain pieces when we last let others run, so that the connection could bring more.
    waited_at: usize,
    /// The plain pieces are to be taken now.
    due: bool,
    /// The arguments of calls that are still being written, as the model writes them.
    arguments: HashMap<Part, String>,
    /// What came so far.
    said: Said,
    key: String,
    /// For an estimate, should the provider send no count.
    bytes_in: u64,
    bytes_out: u64,
    protocol: PhantomData<fn() -> P>,
}

type Finishing = Pin<Box<dyn Future<Output = Result<CompletionResponse, ProviderError>> + Send>>;

enum Phase {
    Reading(Box<CompletionStream>),
    /// An event that waits until the plain pieces before it were taken.
    Holding(Box<CompletionStream>, ModelEvent),
    Finishing(Finishing),
    /// What the request used is told, and this is left to say.
    Ending(ModelEvent),
    Failed(ModelError),
    Done,
}

/// Which kinds of things an answer has brought.
#[derive(Clone, Copy, Default)]
struct Said {
    text: bool,
    thought: bool,
    call: bool,
}

impl Said {
    fn add(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Text(text) => self.text |= !text.trim().is_empty(),
            ModelEvent::Thought(_) | ModelEvent::ThoughtSignature(_) => self.thought = true,
            ModelEvent::Call { .. } => self.call = true,
            ModelEvent::Writing { .. } | ModelEvent::Usage(_) | ModelEvent::OutputLimit => {}
        }
    }

    fn anything(self) -> bool {
        self.text || self.thought || self.call
    }
}

impl<P: Protocol> Answer<P> {
    /// Prepares the request; it is sent when the answer is first polled. `bytes_in`: the size of what it asks.
    pub(super) fn open(protocol: P, client: Client, request: Request, bytes_in: u64) -> Result<Self, ModelError> {
        let key = protocol.endpoint().key.clone();
        let plain = Plain::default();
        let http = Http { client, request: Arc::new(request), plain: plain.clone(), key: key.as_str().into() };
        let model = driver::Model::new(Reader(protocol), http);
        let nominal = CompletionRequest::new("-").accept_unknown_finish_reasons(true);
        let stream = model.stream(nominal).map_err(|error| error::model_error(&error, &key))?;
        Ok(Self {
            phase: Phase::Reading(Box::new(stream)),
            plain,
            waited_at: 0,
            due: false,
            arguments: HashMap::new(),
            said: Said::default(),
            key,
            bytes_in,
            bytes_out: 0,
            protocol: PhantomData,
        })
    }

    fn usage(&self, response: &CompletionResponse) -> Usage {
        let estimate = Usage::estimate(self.bytes_in, self.bytes_out);
        let told = &response.usage;
        // No request is nothing: a provider that counts it so has not counted.
        let input = told.input_tokens.filter(|tokens| *tokens > 0);
        let output = told.output_tokens.filter(|tokens| *tokens > 0 || input.is_some());
        Usage {
            input: input.unwrap_or(estimate.input),
            cached: told.cached_input_tokens.unwrap_or(0),
            cache_written: told.cache_creation_input_tokens.unwrap_or(0),
            output: output.unwrap_or(estimate.output),
            cost: None,
            estimated: input.is_none() || output.is_none(),
        }
    }

    /// What the end of an answer says: what it used, then whether it is whole.
    fn finished(&self, response: &CompletionResponse) -> Phase {
        let failed = |what: String| {
            let told = response.error.as_ref().map(|told| format!(": {told}")).unwrap_or_default();
            let message = error::hidden(format!("{what}{told}"), &self.key);
            Phase::Failed(ModelError::Failed { message })
        };
        let reason = response.finish_reason();
        match &reason {
            Some(FinishReason::ContentFilter) => {
                return failed("the provider's content filter stopped the answer".into());
            }
            Some(FinishReason::Length) => return Phase::Ending(ModelEvent::OutputLimit),
            Some(FinishReason::Other(reason)) if P::is_fault(reason) || !self.said.anything() => {
                return failed(format!("the provider ended the answer with `{reason}`"));
            }
            _ => {}
        }
        // A call that is lost without a word would let the turn end as if all were done.
        if P::lost_call(&response.raw) || (reason == Some(FinishReason::ToolCalls) && !self.said.call) {
            return failed("it wants a tool called, but the call can't be read".into());
        }
        match self.said {
            Said { text: false, call: false, thought: false } => failed("it ended without a word".into()),
            Said { text: false, call: false, thought: true } => {
                failed("it thought, and ended without an answer".into())
            }
            _ => Phase::Done,
        }
    }

    /// What rig says, in our words; nothing for what does not concern us.
    fn event(&mut self, item: Item<StreamEvent>) -> Option<ModelEvent> {
        let Item::Event(event) = item else { return None };
        self.plain.heard();
        match event {
            StreamEvent::Text { text, .. } => Some(ModelEvent::Text(text)),
            StreamEvent::Reasoning { text, .. } => Some(ModelEvent::Thought(text)),
            StreamEvent::Arguments { part, json } => {
                let bytes = json.len();
                self.arguments.entry(part).or_default().push_str(&json);
                // Whoever reads us counts it, and stops us where it is too much.
                Some(ModelEvent::Writing { bytes })
            }
            StreamEvent::End { part, content: AssistantContent::ToolCall(call) } => {
                let written = self.arguments.remove(&part);
                let signature = call.native.as_ref().and_then(|native| P::signature(&native.item));
                Some(ModelEvent::Call {
                    arguments: written.unwrap_or_else(|| announced(&call)),
                    name: call.function.name.into(),
                    signature,
                })
            }
            StreamEvent::End { content, .. } => {
                content.native_item().and_then(P::signature).map(ModelEvent::ThoughtSignature)
            }
            StreamEvent::Start { .. } => None,
        }
    }
}

impl<P: Protocol> Stream for Answer<P> {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            let reading = matches!(this.phase, Phase::Reading(_));
            if (!reading || this.due || this.plain.is_full())
                && let Some(piece) = this.plain.pop()
            {
                this.waited_at = 0;
                this.bytes_out += piece.bytes() as u64;
                this.said.add(&piece);
                return Poll::Ready(Some(Ok(piece)));
            }
            this.due = false;
            this.phase = match std::mem::replace(&mut this.phase, Phase::Done) {
                Phase::Reading(mut stream) => match readable(|| stream.poll_next_unpin(context)) {
                    Err(error) => Phase::Failed(error),
                    Ok(Poll::Ready(Some(Ok(item)))) => match this.event(item) {
                        Some(event) => Phase::Holding(stream, event),
                        None => Phase::Reading(stream),
                    },
                    Ok(Poll::Ready(Some(Err(error)))) => Phase::Failed(error::model_error(&error, &this.key)),
                    Ok(Poll::Ready(None)) => Phase::Finishing(Box::pin(stream.finish())),
                    Ok(Poll::Pending) => {
                        this.phase = Phase::Reading(stream);
                        // What came in one read comes frame by frame, each after the connection's task ran: so
                        // let it run as long as it brings more, and the whole read is one piece.
                        match this.plain.bytes() {
                            0 => return Poll::Pending,
                            bytes if bytes == this.waited_at || this.plain.is_full() => this.due = true,
                            bytes => {
                                this.waited_at = bytes;
                                context.waker().wake_by_ref();
                                return Poll::Pending;
                            }
                        }
                        continue;
                    }
                },
                Phase::Holding(stream, event) => {
                    this.phase = Phase::Reading(stream);
                    if !matches!(event, ModelEvent::Writing { .. }) {
                        this.bytes_out += event.bytes() as u64;
                    }
                    this.said.add(&event);
                    return Poll::Ready(Some(Ok(event)));
                }
                Phase::Finishing(mut finishing) => match readable(|| finishing.as_mut().poll(context)) {
                    Err(error) => Phase::Failed(error),
                    Ok(Poll::Ready(Ok(response))) => {
                        this.phase = this.finished(&response);
                        return Poll::Ready(Some(Ok(ModelEvent::Usage(this.usage(&response)))));
                    }
                    Ok(Poll::Ready(Err(error))) => Phase::Failed(error::model_error(&error, &this.key)),
                    Ok(Poll::Pending) => {
                        this.phase = Phase::Finishing(finishing);
                        return Poll::Pending;
                    }
                },
                Phase::Ending(event) => return Poll::Ready(Some(Ok(event))),
                Phase::Failed(error) => return Poll::Ready(Some(Err(error))),
                Phase::Done => return Poll::Ready(None),
            };
        }
    }
}

/// What rig makes of what came. Where that is a panic (of counts that can't be added, say), the answer can't be read, and
/// no more than the answer is lost.
fn readable<T>(read: impl FnOnce() -> T) -> Result<T, ModelError> {
    let unreadable = |_| ModelError::Malformed { message: "something in it makes no sense".into() };
    panic::catch_unwind(AssertUnwindSafe(read)).map_err(unreadable)
}

/// The arguments of a call that were never streamed, as the model wrote them. None at all are an empty object, as most
/// servers mean it.
fn announced(call: &ToolCall) -> String {
    let native = call.native.as_ref().and_then(|native| native.item.pointer("/function/arguments"));
    let text = match (native, &call.function.invalid_arguments) {
        (Some(Value::String(text)), _) | (_, Some(text)) => text.clone(),
        (Some(value @ Value::Object(_)), None) => value.to_string(),
        (_, None) => call.function.arguments_value().to_string(),
    };
    if text.trim().is_empty() { "{}".into() } else { text }
}
