//! One answer of the model: streamed to the actor in pieces, and put together for the log.

use std::any::Any;
use std::future::ready;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use holdpoint_common::limits::{MAX_CALLS, MAX_TEXT_DELTA};
use holdpoint_common::{AssistantMessage, Block, BlockKind, CallId, Delta, ToolCall, Usage};
use serde_json::Value;

use super::pieces::Pieces;
use super::retry::{Next, Tries};
use super::{Runner, arguments, panic_text, schema};
use crate::lane::LaneMessage;
use crate::model::{Model, ModelError, ModelEvent, ModelRequest, ModelStream};
use crate::state::Report;

/// The result of a model request.
pub(super) struct ModelAnswer {
    pub(super) message: AssistantMessage,
    pub(super) usage: Usage,
    pub(super) stop: Stop,
    /// The calls that can't run, with the reasons for the model.
    pub(super) refused: Vec<(CallId, String)>,
}

/// How an answer ended.
pub(super) enum Stop {
    /// The model finished the answer.
    Whole,
    /// The turn was cut.
    Cut,
    /// The answer reached its maximum number of tokens.
    Limit,
    /// The model failed with an error that may pass.
    Broken(ModelError),
    /// The model failed with another error.
    Failed(String),
    /// The provider refused the request because of its content.
    Refused(ModelError),
}

/// An answer in progress.
#[derive(Default)]
struct PartialAnswer {
    message: AssistantMessage,
    refused: Vec<(CallId, String)>,
    usage: Option<Usage>,
    /// The bytes received so far, which are bounded.
    bytes: usize,
    /// The bytes of arguments that are still streaming. The complete calls will contain them again.
    streaming_bytes: usize,
}

impl PartialAnswer {
    /// Adds the approximate size of an event.
    fn add_size(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Writing { bytes } => self.streaming_bytes += bytes,
            ModelEvent::Call { arguments, .. } => {
                self.streaming_bytes = self.streaming_bytes.saturating_sub(arguments.len());
                self.bytes += size_of_val(event) + event.bytes();
            }
            _ => self.bytes += size_of_val(event) + event.bytes(),
        }
    }

    fn call_count(&self) -> u32 {
        u32::try_from(self.message.calls.len()).unwrap_or(u32::MAX)
    }

    /// The error if the answer exceeds a bound.
    fn bound_error(&self, max_bytes: usize) -> Option<String> {
        if self.bytes + self.streaming_bytes > max_bytes {
            return Some(format!("the model's answer is over {max_bytes} bytes"));
        }
        (self.message.calls.len() > MAX_CALLS).then(|| ModelError::too_many_calls().to_string())
    }
}

/// Extra time after a silence, to read data that arrived while the machine was suspended or this
/// process was stopped.
const EXTRA_SILENCE: Duration = Duration::from_secs(1);

/// The next event of a stream, or its end; `None` if the stream is silent for this long.
async fn next_within(
    stream: &mut Pieces<'_>,
    silence: Duration,
) -> Option<Option<Result<ModelEvent, ModelError>>> {
    match tokio::time::timeout(silence, stream.next()).await {
        Ok(event) => Some(event),
        Err(_) => tokio::time::timeout(EXTRA_SILENCE, stream.next()).await.ok(),
    }
}

/// Streams the answer of a model. A panic becomes an error, so that the text so far and the earlier
/// work of the turn are kept.
fn stream_without_panics(model: &dyn Model, request: &ModelRequest) -> ModelStream {
    let fault = |panic: Box<dyn Any + Send>| {
        let message = format!("the model panicked: {}", panic_text(&*panic));
        Err(ModelError::Failed { message })
    };
    match std::panic::catch_unwind(AssertUnwindSafe(|| model.stream(request))) {
        Ok(stream) => AssertUnwindSafe(stream)
            .catch_unwind()
            .map(move |event| event.unwrap_or_else(fault))
            .boxed(),
        Err(panic) => stream::once(ready(fault(panic))).boxed(),
    }
}

impl Runner {
    /// Sends a request and streams its answer. Retries as long as the answer is empty and the error
    /// may pass. The connection is closed when this returns.
    pub(super) async fn answer(&mut self, request: &ModelRequest) -> ModelAnswer {
        let mut tries = Tries::default();
        let began = Instant::now();
        let (messages, bytes) = (request.messages.len(), request.bytes());
        tracing::debug!(model = self.env.model.name(), messages, bytes, "model request sent");
        let (partial, stop) = loop {
            let mut partial = PartialAnswer::default();
            let stream = stream_without_panics(&*self.env.model, request);
            let stop = self.read_stream(stream, &mut partial).await;
            match stop {
                Stop::Broken(error) if partial.message.blocks.is_empty() => {
                    match self.wait_for_retry(&mut tries, u32::MAX, error).await {
                        Some(stop) => break (partial, stop),
                        None => tracing::info!("retrying the model request"),
                    }
                }
                stop => break (partial, stop),
            }
        };
        let PartialAnswer { mut message, refused, usage, .. } = partial;
        if !matches!(stop, Stop::Whole) {
            // The text is kept, but calls of an incomplete answer are neither run nor kept.
            message.partial = true;
            message.calls.clear();
        }
        let answer_bytes: usize = message.blocks.iter().map(|block| block.text.len()).sum();
        let mut usage =
            usage.unwrap_or_else(|| Usage::estimate(request.bytes(), answer_bytes as u64));
        usage.cost = self.env.model.settings().price.map(|price| price.cost(&usage));
        message.model = Some(self.env.model.name().to_owned());
        message.usage = Some(usage);
        let (ms, calls, tokens) = (began.elapsed().as_millis(), message.calls.len(), usage.output);
        tracing::debug!(ms, calls, tokens, whole = !message.partial, "model answer received");
        ModelAnswer { message, usage, stop, refused }
    }

    /// Waits before the next try of a failed request, and reports the reason to clients, with at
    /// most `shown_tries` as the number of tries. Returns `Some` if the request is not tried again.
    pub(super) async fn wait_for_retry(
        &self,
        tries: &mut Tries,
        shown_tries: u32,
        error: ModelError,
    ) -> Option<Stop> {
        let limits = &self.env.limits;
        let wait = match tries.record_failure(&error, limits, fastrand::f64()) {
            Next::Wait(wait) => wait,
            Next::GiveUp(note) => {
                let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
                return Some(Stop::Failed(format!("{}{note}", self.explain(&error))));
            }
        };
        let retrying = Delta::Retrying {
            next: tries.made() + 1,
            tries: limits.model_tries.min(shown_tries),
            wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            reason: self.explain(&error),
        };
        // If the actor is gone, the token is cancelled.
        let _ = self.lane.send(LaneMessage::Delta(retrying)).await;
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Some(Stop::Cut),
            () = tokio::time::sleep(wait) => None,
        }
    }

    async fn read_stream(&mut self, stream: ModelStream, partial: &mut PartialAnswer) -> Stop {
        let limits = self.env.limits.clone();
        let silence = Duration::from_secs(limits.model_silence_s);
        let text_ticks = Arc::clone(&self.env.text_ticks);
        let mut stream = Pieces::new(stream, &text_ticks);
        loop {
            let event = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Stop::Cut,
                event = next_within(&mut stream, silence) => match event {
                    Some(event) => event,
                    None => return Stop::Failed(format!("the model was silent for {} s", silence.as_secs())),
                },
            };
            let event = match event {
                Some(Ok(event)) => event,
                Some(Err(error)) => return self.stop_for(error, partial),
                None => return Stop::Whole,
            };
            partial.add_size(&event);
            if let Some(error) = partial.bound_error(limits.max_answer_bytes) {
                return Stop::Failed(error);
            }
            let (kind, text) = match event {
                ModelEvent::Text(text) => (BlockKind::Text, text),
                ModelEvent::Thought(text) => (BlockKind::Thought, text),
                ModelEvent::ThoughtSignature(signature) => {
                    self.sign(partial, signature);
                    continue;
                }
                ModelEvent::Call { id: provider_id, name, arguments, signature } => {
                    let id = CallId(self.take_item_id().0);
                    self.add_call(
                        partial,
                        ToolCall { id, provider_id, name, input: Value::Null, signature },
                        &arguments,
                    );
                    continue;
                }
                ModelEvent::Writing { .. } => continue,
                ModelEvent::AgentStarted { session, how } => {
                    self.report(Report::AgentStarted { session, how }).await;
                    continue;
                }
                ModelEvent::Usage(usage) => {
                    partial.usage = Some(usage);
                    continue;
                }
                ModelEvent::OutputLimit => return Stop::Limit,
            };
            if !self.add_text(partial, kind, &text).await {
                return Stop::Cut;
            }
        }
    }

    /// How an answer ends with an error of its stream.
    fn stop_for(&self, error: ModelError, partial: &mut PartialAnswer) -> Stop {
        if partial.bytes + partial.streaming_bytes == 0 {
            // An error without an answer has used no tokens.
            partial.usage.get_or_insert_default();
        }
        match error {
            error if error.is_temporary() => Stop::Broken(error),
            error if error.refuses_request() => Stop::Refused(error),
            error => Stop::Failed(self.explain(&error)),
        }
    }

    /// Adds text to the answer and sends it. Returns `false` if the turn was cut or the actor is
    /// gone.
    async fn add_text(&mut self, partial: &mut PartialAnswer, kind: BlockKind, text: &str) -> bool {
        let calls_before = partial.call_count();
        let item = match partial.message.blocks.last() {
            Some(block)
                if block.kind == kind
                    && block.signature.is_none()
                    && block.calls_before == calls_before =>
            {
                block.item
            }
            _ => {
                let item = self.take_item_id();
                partial.message.blocks.push(Block {
                    item,
                    kind,
                    text: String::new(),
                    signature: None,
                    calls_before,
                });
                item
            }
        };
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(rest.floor_char_boundary(MAX_TEXT_DELTA));
            let delta = match kind {
                BlockKind::Text => Delta::Text { item, text: piece.to_owned() },
                BlockKind::Thought => Delta::Thought { item, text: piece.to_owned() },
            };
            let sent = tokio::select! {
                biased;
                () = self.cancel.cancelled() => false,
                sent = self.lane.send(LaneMessage::Delta(delta)) => sent.is_ok(),
            };
            if !sent {
                return false;
            }
            if let Some(block) = partial.message.blocks.last_mut() {
                block.text.push_str(piece);
            }
            rest = later;
        }
        true
    }

    /// Signs the last thought. A signature without an unsigned thought before it gets an empty
    /// thought of its own, because the provider requires all signatures back.
    fn sign(&mut self, partial: &mut PartialAnswer, signature: String) {
        let calls_before = partial.call_count();
        match partial.message.blocks.last_mut() {
            Some(block)
                if block.kind == BlockKind::Thought
                    && block.signature.is_none()
                    && block.calls_before == calls_before =>
            {
                block.signature = Some(signature);
            }
            _ => {
                let (item, kind, signature) =
                    (self.take_item_id(), BlockKind::Thought, Some(signature));
                partial.message.blocks.push(Block {
                    item,
                    kind,
                    text: String::new(),
                    signature,
                    calls_before,
                });
            }
        }
    }

    fn add_call(&self, partial: &mut PartialAnswer, mut call: ToolCall, arguments: &str) {
        let spec = self.specs.iter().find(|spec| spec.name == call.name);
        let (input, wrong) = match arguments::read(arguments) {
            // An unknown tool is reported to the model when the call is run.
            Ok(input) => {
                let wrong = spec.and_then(|spec| schema::check(&spec.schema, &input).err());
                (input, wrong)
            }
            // Only an object can be kept as the input of a call.
            Err(wrong) => (Value::Object(serde_json::Map::new()), Some(wrong)),
        };
        partial.refused.extend(wrong.map(|why| (call.id, format!("not run: {why}"))));
        call.input = input;
        partial.message.calls.push(call);
    }

    /// The message of an error, with a hint if there is one.
    fn explain(&self, error: &ModelError) -> String {
        let hint = match error {
            ModelError::Setup { message, hint } => return format!("{message} (hint: {hint})"),
            ModelError::Barred { .. } => {
                "check the key, account, quota and billing at the provider, or use another model"
                    .to_owned()
            }
            ModelError::Misconfigured { .. } => {
                let model = self.env.model.name();
                format!(
                    "check [models.\"{model}\"] in the configuration, the model's name and the server's settings"
                )
            }
            error => return error.to_string(),
        };
        format!("{error} (hint: {hint})")
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;
    use crate::turn::Ticks;

    /// After a suspend, the timer expires before the answer that has arrived is read from the
    /// connection.
    #[tokio::test]
    async fn t_l5_an_answer_that_arrived_during_a_suspend_is_not_silence() {
        let mut polls = 0;
        let late = stream::poll_fn(move |context| {
            polls += 1;
            context.waker().wake_by_ref();
            // The first poll begins the silence, the second ends it.
            if polls == 3 {
                Poll::Ready(Some(Ok(ModelEvent::Text("late".to_owned()))))
            } else {
                Poll::Pending
            }
        });
        let text_ticks = Ticks::every(Duration::ZERO);
        let mut late = Pieces::new(late.boxed(), &text_ticks);
        assert_eq!(
            next_within(&mut late, Duration::ZERO).await,
            Some(Some(Ok(ModelEvent::Text("late".to_owned()))))
        );
        let mut never = Pieces::new(stream::pending().boxed(), &text_ticks);
        tokio::time::pause();
        assert_eq!(next_within(&mut never, Duration::from_secs(300)).await, None);
    }
}
