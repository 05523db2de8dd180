//! A model that answers with the scripts of a test.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::{StreamExt, stream};
use holdpoint_common::Usage;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::model::{Model, ModelError, ModelEvent, ModelRequest, ModelStream};

/// Answers each request with the next script, or with the word `done` if there is no script left.
#[derive(Clone, Default)]
pub struct ScriptedModel(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    replies: VecDeque<Reply>,
    requests: Vec<ModelRequest>,
}

enum Reply {
    Script(Script),
    Live(mpsc::UnboundedReceiver<Result<ModelEvent, ModelError>>),
}

/// One complete answer of the model.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Script {
    events: Vec<Result<ModelEvent, ModelError>>,
    /// The message of a panic at the end.
    panic_message: Option<String>,
}

/// An answer that the test gives piece by piece. Dropping it ends the answer.
pub struct LiveReply(mpsc::UnboundedSender<Result<ModelEvent, ModelError>>);

/// An empty answer, to be filled.
pub fn reply() -> Script {
    Script::default()
}

impl Script {
    /// Adds this text, as one piece.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.events.push(Ok(ModelEvent::Text(text.into())));
        self
    }

    /// Adds this thought, as one piece.
    pub fn thought(mut self, text: impl Into<String>) -> Self {
        self.events.push(Ok(ModelEvent::Thought(text.into())));
        self
    }

    /// Adds a call of this tool.
    pub fn call(self, name: impl Into<String>, input: Value) -> Self {
        self.raw_call(name, input.to_string())
    }

    /// Adds a call of this tool, with arguments that need not be valid.
    pub fn raw_call(mut self, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        self.events.push(Ok(ModelEvent::Call {
            id: None,
            name: name.into(),
            arguments: arguments.into(),
            signature: None,
        }));
        self
    }

    /// Adds the usage of the answer.
    pub fn usage(mut self, usage: Usage) -> Self {
        self.events.push(Ok(ModelEvent::Usage(usage)));
        self
    }

    /// Ends with a failure of the model.
    pub fn fail(self, message: impl Into<String>) -> Self {
        self.error(ModelError::Failed { message: message.into() })
    }

    /// Ends with this error.
    pub fn error(mut self, error: ModelError) -> Self {
        self.events.push(Err(error));
        self
    }

    /// Panics after everything else.
    pub fn panic(mut self, message: impl Into<String>) -> Self {
        self.panic_message = Some(message.into());
        self
    }

    fn stream(self) -> ModelStream {
        let panics = stream::iter(self.panic_message).map(|message| panic!("{message}"));
        stream::iter(self.events).chain(panics).boxed()
    }
}

impl LiveReply {
    /// Sends this text, as one piece. Returns `false` if the request was dropped.
    pub fn text(&self, text: impl Into<String>) -> bool {
        self.0.send(Ok(ModelEvent::Text(text.into()))).is_ok()
    }

    /// Sends a call of this tool. Returns `false` if the request was dropped.
    pub fn call(&self, name: impl Into<String>, input: Value) -> bool {
        let call = ModelEvent::Call {
            id: None,
            name: name.into(),
            arguments: input.to_string(),
            signature: None,
        };
        self.0.send(Ok(call)).is_ok()
    }

    /// Fails the request. Returns `false` if the request was dropped.
    pub fn fail(&self, message: impl Into<String>) -> bool {
        self.0.send(Err(ModelError::Failed { message: message.into() })).is_ok()
    }

    /// Waits until the request has been dropped.
    pub async fn dropped(&self) {
        self.0.closed().await;
    }
}

impl ScriptedModel {
    /// The name of the model, as `provider/name`.
    pub const NAME: &str = "scripted/test";

    /// Answers the next request that has no answer yet with this script.
    pub fn then(&self, script: Script) -> &Self {
        self.lock().replies.push_back(Reply::Script(script));
        self
    }

    /// Answers the next request that has no answer yet with pieces that the test gives.
    #[must_use]
    pub fn then_live(&self) -> LiveReply {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.lock().replies.push_back(Reply::Live(receiver));
        LiveReply(sender)
    }

    /// The requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.lock().requests.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn stream(&self, request: &ModelRequest) -> ModelStream {
        let mut inner = self.lock();
        inner.requests.push(request.clone());
        match inner.replies.pop_front() {
            Some(Reply::Script(script)) => script.stream(),
            Some(Reply::Live(receiver)) => {
                tokio_stream::wrappers::UnboundedReceiverStream::new(receiver).boxed()
            }
            None => reply().text("done").stream(),
        }
    }
}
