//! Requests to a model through its provider, and short constructors for the expected events.
#![allow(clippy::expect_used, reason = "test support: a failure ends the test")]

use std::sync::Arc;

use futures_util::StreamExt;
use holdpoint_common::{ModelSettings, Usage};
use holdpoint_session::model::{
    Access, Message, Model, ModelError, ModelEvent, ModelRequest, Provider,
};

use crate::model_server::{ModelServer, Reply, Wire};
use crate::world::KEY;

/// An event of a model's answer, or the error that ended it.
pub type AnswerItem = Result<ModelEvent, ModelError>;

/// The model `scripted` on this server.
#[must_use]
pub fn model(wire: Wire, server: &ModelServer) -> Arc<dyn Model> {
    named("scripted", wire, server, &ModelSettings::default())
}

/// A model of this server by name.
///
/// # Panics
/// If the model can't be created.
#[must_use]
pub fn named(
    name: &str,
    wire: Wire,
    server: &ModelServer,
    settings: &ModelSettings,
) -> Arc<dyn Model> {
    let provider: Provider = wire.provider().parse().expect("a provider");
    let access = Access { key: KEY.into(), base_url: server.url(wire), ..Access::default() };
    provider.model(name, &access, settings).expect("a model")
}

/// A request with the prompt "hello".
#[must_use]
pub fn hello() -> ModelRequest {
    ModelRequest {
        system: "Be brief.".into(),
        messages: vec![Message::User("hello".into())],
        tools: Arc::new([]),
    }
}

/// Collects a model's answer. Adjacent pieces of text or thought are joined, the provider's ids of
/// calls are removed, and `Writing` events are left out.
pub async fn ask(model: &dyn Model, request: ModelRequest) -> Vec<AnswerItem> {
    let mut joined: Vec<AnswerItem> = Vec::new();
    let mut events = model.stream(&request);
    while let Some(event) = events.next().await {
        match (joined.last_mut(), event) {
            (Some(Ok(ModelEvent::Text(text))), Ok(ModelEvent::Text(more)))
            | (Some(Ok(ModelEvent::Thought(text))), Ok(ModelEvent::Thought(more))) => {
                text.push_str(&more)
            }
            (_, Ok(ModelEvent::Writing { .. })) => {}
            (_, Ok(ModelEvent::Call { name, arguments, signature, .. })) => {
                joined.push(Ok(ModelEvent::Call { id: None, name, arguments, signature }));
            }
            (_, event) => joined.push(event),
        }
    }
    joined
}

/// Collects the answer that one reply produces on this wire.
pub async fn play(wire: Wire, reply: Reply) -> Vec<AnswerItem> {
    let server = ModelServer::start();
    server.reply(reply);
    let events = ask(&*model(wire, &server), hello()).await;
    server.assert_no_violations();
    events
}

/// An event with a piece of text.
pub fn text(text: &str) -> AnswerItem {
    Ok(ModelEvent::Text(text.into()))
}

/// An event with a piece of thought.
pub fn thought(text: &str) -> AnswerItem {
    Ok(ModelEvent::Thought(text.into()))
}

/// An event with a thought's signature.
pub fn signature(signature: &str) -> AnswerItem {
    Ok(ModelEvent::ThoughtSignature(signature.into()))
}

/// An event with a complete call.
pub fn call(name: &str, arguments: &str) -> AnswerItem {
    Ok(ModelEvent::Call {
        id: None,
        name: name.into(),
        arguments: arguments.into(),
        signature: None,
    })
}

/// The usage that every finished scripted answer reports.
pub fn usage() -> AnswerItem {
    Ok(ModelEvent::Usage(Usage { input: 11, cached: 3, output: 7, ..Usage::default() }))
}
