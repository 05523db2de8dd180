//! One model answer: streamed to the actor as it comes, put together for the log.

use std::any::Any;
use std::future::ready;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use futures_util::{FutureExt, StreamExt, stream};
use holdpoint_common::limits::TEXT_DELTA;
use holdpoint_common::{AssistantMessage, Block, BlockKind, CallId, Delta, ToolCall, Usage};
use serde_json::Value;

use super::retry::{Next, Tries};
use super::{Runner, arguments, panic_text, schema};
use crate::lane::Lane;
use crate::model::{MOST_CALLS, Model, ModelError, ModelEvent, ModelRequest, ModelStream};

/// What an answer came to.
pub(super) struct Answered {
    pub(super) message: AssistantMessage,
    pub(super) usage: Usage,
    pub(super) stop: Stop,
    /// Calls that can't run, and what the model is told of each.
    pub(super) refused: Vec<(CallId, String)>,
}

/// How an answer ended.
pub(super) enum Stop {
    /// By itself.
    Whole,
    /// By the cut.
    Cut,
    /// By the most tokens that an answer may have.
    Limit,
    /// By a fault that may pass, after something had been said.
    Broken(ModelError),
    /// By a fault.
    Failed(String),
    /// By the provider, who refused the request for what it was.
    Refused(ModelError),
}

/// An answer in the making.
#[derive(Default)]
struct Draft {
    message: AssistantMessage,
    refused: Vec<(CallId, String)>,
    usage: Option<Usage>,
    /// What has come so far, for its bound.
    bytes: usize,
    /// Bytes of arguments that are still being written: their calls will bring them again.
    writing: usize,
}

impl Draft {
    /// Adds about what an event weighs.
    fn weigh(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Writing { bytes } => self.writing += bytes,
            ModelEvent::Call { arguments, .. } => {
                self.writing = self.writing.saturating_sub(arguments.len());
                self.bytes += size_of_val(event) + event.bytes();
            }
            _ => self.bytes += size_of_val(event) + event.bytes(),
        }
    }

    /// How many calls it has.
    fn calls(&self) -> u32 {
        u32::try_from(self.message.calls.len()).unwrap_or(u32::MAX)
    }

    /// Why the answer is too much, if it is.
    fn over(&self, most_bytes: usize) -> Option<String> {
        if self.bytes + self.writing > most_bytes {
            return Some(format!("the model's answer is over {most_bytes} bytes"));
        }
        (self.message.calls.len() > MOST_CALLS).then(|| ModelError::too_many_calls().to_string())
    }
}

/// Extra time after a silence, to read data that arrived while the machine was suspended or this process was stopped.
const ONCE_MORE: Duration = Duration::from_secs(1);

/// The next event, or the end, of a stream; `None` if it was silent for so long.
async fn heard(stream: &mut ModelStream, silence: Duration) -> Option<Option<Result<ModelEvent, ModelError>>> {
    match tokio::time::timeout(silence, stream.next()).await {
        Ok(event) => Some(event),
        Err(_) => tokio::time::timeout(ONCE_MORE, stream.next()).await.ok(),
    }
}

/// The answer of a model, whose panics are faults: what it had said, and what the turn has, stay.
fn guarded(model: &dyn Model, request: &ModelRequest) -> ModelStream {
    let fault = |panic: Box<dyn Any + Send>| {
        let message = format!("the model panicked: {}", panic_text(&*panic));
        Err(ModelError::Failed { message })
    };
    match std::panic::catch_unwind(AssertUnwindSafe(|| model.stream(request))) {
        Ok(stream) => AssertUnwindSafe(stream).catch_unwind().map(move |event| event.unwrap_or_else(fault)).boxed(),
        Err(panic) => stream::once(ready(fault(panic))).boxed(),
    }
}

impl Runner {
    /// Sends a request and streams its answer; tries again while nothing has been said and the fault may pass.
    /// Whichever way it ends, the connection is closed by then.
    pub(super) async fn answer(&mut self, request: &ModelRequest) -> Answered {
        let mut tries = Tries::default();
        let began = Instant::now();
        let (messages, bytes) = (request.messages.len(), request.bytes());
        tracing::debug!(model = self.outfit.model.name(), messages, bytes, "the model is asked");
        let (draft, stop) = loop {
            let mut draft = Draft::default();
            let mut stream = guarded(&*self.outfit.model, request);
            let stop = self.stream(&mut stream, &mut draft).await;
            drop(stream);
            match stop {
                Stop::Broken(error) if draft.message.blocks.is_empty() => {
                    match self.again(&mut tries, u32::MAX, error).await {
                        Some(stop) => break (draft, stop),
                        None => tracing::info!("the model is asked again"),
                    }
                }
                stop => break (draft, stop),
            }
        };
        let Draft { mut message, refused, usage, .. } = draft;
        if !matches!(stop, Stop::Whole) {
            // What had come is kept; calls of an answer that did not end are not run and not kept.
            message.partial = true;
            message.calls.clear();
        }
        let said: usize = message.blocks.iter().map(|block| block.text.len()).sum();
        let mut usage = usage.unwrap_or_else(|| Usage::estimate(request.bytes(), said as u64));
        usage.cost = self.outfit.model.settings().price.map(|price| price.of(&usage));
        message.model = Some(self.outfit.model.name().to_owned());
        message.usage = Some(usage);
        let (ms, calls, tokens) = (began.elapsed().as_millis(), message.calls.len(), usage.output);
        tracing::debug!(ms, calls, tokens, whole = !message.partial, "the model answered");
        Answered { message, usage, stop, refused }
    }

    /// Waits before the next try of a request that failed, of `most` that are made, and tells why. `Some`: there is none.
    pub(super) async fn again(&self, tries: &mut Tries, most: u32, error: ModelError) -> Option<Stop> {
        let limits = &self.outfit.limits;
        let wait = match tries.failed(&error, limits, fastrand::f64()) {
            Next::Wait(wait) => wait,
            Next::GiveUp(said) => {
                let said = said.map(|said| format!(" ({said})")).unwrap_or_default();
                return Some(Stop::Failed(format!("{}{said}", self.explain(&error))));
            }
        };
        let told = Delta::Retrying {
            next: tries.made() + 1,
            tries: limits.model_tries.min(most),
            wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            reason: self.explain(&error),
        };
        // If the actor is gone, the token is cancelled.
        let _ = self.lane.send(Lane::Delta(told)).await;
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Some(Stop::Cut),
            () = tokio::time::sleep(wait) => None,
        }
    }

    async fn stream(&mut self, stream: &mut ModelStream, draft: &mut Draft) -> Stop {
        let limits = self.outfit.limits.clone();
        let silence = Duration::from_secs(limits.model_silence_s);
        let mut ahead = None;
        loop {
            let event = match ahead.take() {
                Some(event) => event,
                None => tokio::select! {
                    biased;
                    () = self.cancel.cancelled() => return Stop::Cut,
                    event = heard(stream, silence) => match event {
                        Some(event) => event,
                        None => return Stop::Failed(format!("the model was silent for {} s", silence.as_secs())),
                    },
                },
            };
            let event = match event {
                Some(Ok(event)) => event,
                Some(Err(error)) => {
                    if draft.bytes + draft.writing == 0 {
                        // An error instead of an answer: nothing was used.
                        draft.usage.get_or_insert_default();
                    }
                    return match error {
                        error if error.may_pass() => Stop::Broken(error),
                        error if error.refuses_request() => Stop::Refused(error),
                        error => Stop::Failed(self.explain(&error)),
                    };
                }
                None => return Stop::Whole,
            };
            draft.weigh(&event);
            if let Some(error) = draft.over(limits.max_answer_bytes) {
                return Stop::Failed(error);
            }
            let (kind, mut text) = match event {
                ModelEvent::Text(text) => (BlockKind::Text, text),
                ModelEvent::Thought(text) => (BlockKind::Thought, text),
                ModelEvent::ThoughtSignature(signature) => {
                    self.sign(draft, signature);
                    continue;
                }
                ModelEvent::Call { id: provider_id, name, arguments, signature } => {
                    let id = CallId(self.item().0);
                    self.add_call(draft, ToolCall { id, provider_id, name, input: Value::Null, signature }, &arguments);
                    continue;
                }
                ModelEvent::Writing { .. } => continue,
                ModelEvent::Usage(usage) => {
                    draft.usage = Some(usage);
                    continue;
                }
                ModelEvent::OutputLimit => return Stop::Limit,
            };
            // What has arrived already goes out as one delta.
            while text.len() < TEXT_DELTA {
                match stream.next().now_or_never() {
                    Some(Some(Ok(ModelEvent::Text(more)))) if kind == BlockKind::Text => {
                        draft.bytes += more.len();
                        text.push_str(&more);
                    }
                    Some(Some(Ok(ModelEvent::Thought(more)))) if kind == BlockKind::Thought => {
                        draft.bytes += more.len();
                        text.push_str(&more);
                    }
                    Some(other) => {
                        ahead = Some(other);
                        break;
                    }
                    None => break,
                }
            }
            if !self.add_text(draft, kind, &text).await {
                return Stop::Cut;
            }
        }
    }

    /// Adds text to the answer and sends it on. `false`: the turn was cut meanwhile.
    async fn add_text(&mut self, draft: &mut Draft, kind: BlockKind, text: &str) -> bool {
        let calls_before = draft.calls();
        let item = match draft.message.blocks.last() {
            Some(block) if block.kind == kind && block.signature.is_none() && block.calls_before == calls_before => {
                block.item
            }
            _ => {
                let item = self.item();
                draft.message.blocks.push(Block { item, kind, text: String::new(), signature: None, calls_before });
                item
            }
        };
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(rest.floor_char_boundary(TEXT_DELTA));
            let delta = match kind {
                BlockKind::Text => Delta::Text { item, text: piece.to_owned() },
                BlockKind::Thought => Delta::Thought { item, text: piece.to_owned() },
            };
            let sent = tokio::select! {
                biased;
                () = self.cancel.cancelled() => false,
                sent = self.lane.send(Lane::Delta(delta)) => sent.is_ok(),
            };
            if !sent {
                return false;
            }
            if let Some(block) = draft.message.blocks.last_mut() {
                block.text.push_str(piece);
            }
            rest = later;
        }
        true
    }

    /// Signs the last thought. A signature without one, or for one that is signed already, makes an empty thought that
    /// carries it: none may be lost, for the provider wants them all back.
    fn sign(&mut self, draft: &mut Draft, signature: String) {
        let calls_before = draft.calls();
        match draft.message.blocks.last_mut() {
            Some(block)
                if block.kind == BlockKind::Thought
                    && block.signature.is_none()
                    && block.calls_before == calls_before =>
            {
                block.signature = Some(signature);
            }
            _ => {
                let (item, kind, signature) = (self.item(), BlockKind::Thought, Some(signature));
                draft.message.blocks.push(Block { item, kind, text: String::new(), signature, calls_before });
            }
        }
    }

    fn add_call(&self, draft: &mut Draft, mut call: ToolCall, arguments: &str) {
        let spec = self.specs.iter().find(|spec| spec.name == call.name);
        let (input, wrong) = match arguments::read(arguments) {
            // Of a tool that there is not, the model is told so when the call is to run.
            Ok(input) => {
                let wrong = spec.and_then(|spec| schema::check(&spec.schema, &input).err());
                (input, wrong)
            }
            // What is no object can't be kept as one.
            Err(wrong) => (Value::Object(serde_json::Map::new()), Some(wrong)),
        };
        draft.refused.extend(wrong.map(|why| (call.id, format!("not run: {why}"))));
        call.input = input;
        draft.message.calls.push(call);
    }

    /// The error, and what may be done about it.
    fn explain(&self, error: &ModelError) -> String {
        let hint = match error {
            ModelError::Setup { message, hint } => return format!("{message} (hint: {hint})"),
            ModelError::Barred { .. } => {
                "see to the key, the account, the quota or the bill at the provider, or use another model".to_owned()
            }
            ModelError::Misconfigured { .. } => {
                let model = self.outfit.model.name();
                format!(
                    "look at [models.\"{model}\"] in the configuration, the model's name and the server's own settings"
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

    /// A process that was stopped finds its timer over before its connection was read: the answer comes only then.
    #[tokio::test]
    async fn t_l5_an_answer_that_arrived_during_a_suspend_is_no_silence() {
        let mut polls = 0;
        let late = stream::poll_fn(move |context| {
            polls += 1;
            context.waker().wake_by_ref();
            // The first is that of the silence, the second that of its end.
            if polls > 2 { Poll::Ready(Some(Ok(ModelEvent::Text("late".to_owned())))) } else { Poll::Pending }
        });
        let mut late: ModelStream = late.boxed();
        assert_eq!(heard(&mut late, Duration::ZERO).await, Some(Some(Ok(ModelEvent::Text("late".to_owned())))));
        let mut never: ModelStream = stream::pending().boxed();
        tokio::time::pause();
        assert_eq!(heard(&mut never, Duration::from_secs(300)).await, None);
    }
}
