//! An answer as it streams: rig's events and the plain pieces beside them, in our words and in order.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::{Stream, StreamExt};
use holdpoint_common::Usage;
use rig_core::completion::{CompletionResponse, FinishReason};
use rig_core::driver;
use rig_core::error::ProviderError;
use rig_core::message::{AssistantContent, ToolCall};
use rig_core::providers::openai::wire::Chat;
use rig_core::streaming::{CompletionStream, Item, StreamEvent};
use rig_core::wire::Secret;
use rig_reqwest::ReqwestClient;
use serde_json::Value;

use super::plain::{Http, Plain};
use super::{error, request};
use crate::model::{ModelError, ModelEvent, ModelRequest};

/// One answer. Dropping it drops the connection.
pub(super) struct Answer {
    phase: Phase,
    plain: Plain,
    /// Bytes of plain pieces when we last let others run, so that the connection could bring more.
    waited_at: usize,
    /// The plain pieces are to be taken now.
    due: bool,
    key: Secret,
    /// For an estimate, should the provider send no count.
    bytes_in: u64,
    bytes_out: u64,
}

type Finishing = Pin<Box<dyn Future<Output = Result<CompletionResponse, ProviderError>> + Send>>;

enum Phase {
    Reading(Box<CompletionStream>),
    /// An event that waits until the plain pieces before it were taken.
    Holding(Box<CompletionStream>, ModelEvent),
    Finishing(Finishing),
    Failed(ModelError),
    Done,
}

impl Answer {
    /// Prepares the request; it is sent when the answer is first polled.
    pub(super) fn open(chat: &Chat, client: ReqwestClient, request: &ModelRequest) -> Result<Self, ModelError> {
        let key = chat.provider.api_key.clone();
        let plain = Plain::default();
        let model = driver::Model::new(chat.clone(), Http { client, plain: plain.clone() });
        let stream = model
            .stream(request::completion(chat, request)?)
            .map_err(|error| error::model_error(&error, key.expose()))?;
        let bytes_in = request.bytes();
        Ok(Self {
            phase: Phase::Reading(Box::new(stream)),
            plain,
            waited_at: 0,
            due: false,
            key,
            bytes_in,
            bytes_out: 0,
        })
    }

    fn usage(&self, response: &CompletionResponse) -> Usage {
        let estimate = Usage::estimate(self.bytes_in, self.bytes_out);
        let told = &response.usage;
        Usage {
            input: told.input_tokens.unwrap_or(estimate.input),
            cached: told.cached_input_tokens.unwrap_or(0),
            output: told.output_tokens.unwrap_or(estimate.output),
            estimated: told.input_tokens.is_none() || told.output_tokens.is_none(),
        }
    }

    fn finished(&self, response: &CompletionResponse) -> Result<ModelEvent, ModelError> {
        match response.finish_reason() {
            Some(FinishReason::ContentFilter) => {
                Err(ModelError::Failed { message: "the provider's content filter stopped the answer".into() })
            }
            Some(FinishReason::Other(reason)) if reason == "error" => {
                Err(ModelError::Failed { message: "the provider ended the answer with an error".into() })
            }
            _ => Ok(ModelEvent::Usage(self.usage(response))),
        }
    }
}

impl Stream for Answer {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            let reading = matches!(this.phase, Phase::Reading(_));
            if (!reading || this.due || this.plain.is_full())
                && let Some(piece) = this.plain.pop()
            {
                this.waited_at = 0;
                if let ModelEvent::Text(text) | ModelEvent::Thought(text) = &piece {
                    this.bytes_out += text.len() as u64;
                }
                return Poll::Ready(Some(Ok(piece)));
            }
            this.due = false;
            this.phase = match std::mem::replace(&mut this.phase, Phase::Done) {
                Phase::Reading(mut stream) => match stream.poll_next_unpin(context) {
                    Poll::Ready(Some(Ok(item))) => match event(item) {
                        Some(event) => Phase::Holding(stream, event),
                        None => Phase::Reading(stream),
                    },
                    Poll::Ready(Some(Err(error))) => Phase::Failed(error::model_error(&error, this.key.expose())),
                    Poll::Ready(None) => Phase::Finishing(Box::pin(stream.finish())),
                    Poll::Pending => {
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
                    this.bytes_out += match &event {
                        ModelEvent::Text(text) | ModelEvent::Thought(text) => text.len() as u64,
                        ModelEvent::Call { name, arguments, .. } => (name.len() + arguments.len()) as u64,
                        ModelEvent::ThoughtSignature(_) | ModelEvent::Usage(_) => 0,
                    };
                    return Poll::Ready(Some(Ok(event)));
                }
                Phase::Finishing(mut finishing) => match finishing.as_mut().poll(context) {
                    Poll::Ready(Ok(response)) => return Poll::Ready(Some(this.finished(&response))),
                    Poll::Ready(Err(error)) => Phase::Failed(error::model_error(&error, this.key.expose())),
                    Poll::Pending => {
                        this.phase = Phase::Finishing(finishing);
                        return Poll::Pending;
                    }
                },
                Phase::Failed(error) => return Poll::Ready(Some(Err(error))),
                Phase::Done => return Poll::Ready(None),
            };
        }
    }
}

/// What rig says, in our words; nothing for what does not concern us.
fn event(item: Item<StreamEvent>) -> Option<ModelEvent> {
    let Item::Event(event) = item else { return None };
    match event {
        StreamEvent::Text { text, .. } => Some(ModelEvent::Text(text)),
        StreamEvent::Reasoning { text, .. } => Some(ModelEvent::Thought(text)),
        StreamEvent::End { content: AssistantContent::ToolCall(call), .. } => {
            Some(ModelEvent::Call { arguments: arguments(&call), name: call.function.name.into(), signature: None })
        }
        StreamEvent::Start { .. } | StreamEvent::Arguments { .. } | StreamEvent::End { .. } => None,
    }
}

/// A call's arguments as the model wrote them. None at all are an empty object, as most servers mean it.
fn arguments(call: &ToolCall) -> String {
    let native = call.native.as_ref().and_then(|native| native.item.pointer("/function/arguments"));
    let text = match (native, &call.function.invalid_arguments) {
        (Some(Value::String(text)), _) => text.clone(),
        (Some(value @ Value::Object(_)), _) => value.to_string(),
        (_, Some(text)) => text.clone(),
        (_, None) => call.function.arguments_value().to_string(),
    };
    if text.trim().is_empty() { "{}".into() } else { text }
}
