//! What a model says when it is asked through its provider, and how a test writes that down.
#![allow(clippy::expect_used, reason = "a part of tests: what goes wrong here ends the test")]

use std::sync::Arc;

use futures_util::StreamExt;
use holdpoint_common::{ModelSettings, Usage};
use holdpoint_session::model::{Access, Message, Model, ModelError, ModelEvent, ModelRequest, Provider};

use crate::model_server::{ModelServer, Reply, Wire};
use crate::world::KEY;

/// One thing a model says, or why it says no more.
pub type Said = Result<ModelEvent, ModelError>;

/// The model `scripted` of a server.
#[must_use]
pub fn model(wire: Wire, server: &ModelServer) -> Arc<dyn Model> {
    named("scripted", wire, server, &ModelSettings::default())
}

/// A model of a server, by name.
///
/// # Panics
/// If it can't be set up.
#[must_use]
pub fn named(name: &str, wire: Wire, server: &ModelServer, settings: &ModelSettings) -> Arc<dyn Model> {
    let provider: Provider = wire.provider().parse().expect("a provider");
    let access = Access { key: KEY.into(), base_url: server.url(wire), ..Access::default() };
    provider.model(name, &access, settings).expect("a model")
}

/// A request that says hello.
#[must_use]
pub fn hello() -> ModelRequest {
    ModelRequest { system: "Be brief.".into(), messages: vec![Message::User("hello".into())], tools: Arc::new([]) }
}

/// Everything a model answers, neighbouring pieces joined, calls without the provider's names for them. That a call is
/// being written is no part of it.
pub async fn ask(model: &dyn Model, request: ModelRequest) -> Vec<Said> {
    let mut joined: Vec<Said> = Vec::new();
    let mut events = model.stream(&request);
    while let Some(event) = events.next().await {
        match (joined.last_mut(), event) {
            (Some(Ok(ModelEvent::Text(text))), Ok(ModelEvent::Text(more)))
            | (Some(Ok(ModelEvent::Thought(text))), Ok(ModelEvent::Thought(more))) => text.push_str(&more),
            (_, Ok(ModelEvent::Writing { .. })) => {}
            (_, Ok(ModelEvent::Call { name, arguments, signature, .. })) => {
                joined.push(Ok(ModelEvent::Call { id: None, name, arguments, signature }));
            }
            (_, event) => joined.push(event),
        }
    }
    joined
}

/// Everything one reply brings.
pub async fn play(wire: Wire, reply: Reply) -> Vec<Said> {
    let server = ModelServer::start();
    server.reply(reply);
    let events = ask(&*model(wire, &server), hello()).await;
    server.assert_no_violations();
    events
}

/// A piece of text.
pub fn text(text: &str) -> Said {
    Ok(ModelEvent::Text(text.into()))
}

/// A piece of thought.
pub fn thought(text: &str) -> Said {
    Ok(ModelEvent::Thought(text.into()))
}

/// A thought's signature.
pub fn signature(signature: &str) -> Said {
    Ok(ModelEvent::ThoughtSignature(signature.into()))
}

/// A whole call.
pub fn call(name: &str, arguments: &str) -> Said {
    Ok(ModelEvent::Call { id: None, name: name.into(), arguments: arguments.into(), signature: None })
}

/// What every scripted answer that ends has used.
pub fn usage() -> Said {
    Ok(ModelEvent::Usage(Usage { input: 11, cached: 3, output: 7, ..Usage::default() }))
}
