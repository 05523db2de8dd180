//! How each verb reaches its session: through its actor, or through the manager.

use std::sync::Arc;

use actix::dev::ToEnvelope;
use actix::prelude::*;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdpoint_common::api::{
    AnswerRequest, AsksRequest, ChangeModelRequest, CloseRequest, DebugRequest, HoldRequest, InterruptRequest,
    PromptRequest, ReleaseRequest, RenameRequest, RunRequest, ToggleRequest, Verb,
};
use holdpoint_common::{SessionId, Supplies};

use super::{ClientContext, LocalSession, LocalSessions};
use crate::actor::Act;
use crate::backend::Backend;
use crate::error::SessionError;
use crate::manager::{CheckAnswer, Manager, OnSession};
use crate::state::{ByClient, Refused};

type Carried<V> = BoxFuture<'static, Result<<V as Verb>::Reply, SessionError>>;

/// A verb of an engine in this process.
pub(crate) trait CarryOut: Verb {
    /// Carries out the verb.
    fn carry_out(verb: OnSession<Self>, target: Target) -> Carried<Self>;
}

/// The session of a verb.
pub(crate) enum Target {
    Session(LocalSession),
    /// The live session with the id of the verb.
    Live(LocalSessions),
}

/// Lets the session's actor carry out these verbs.
macro_rules! by_actor {
    ($($verb:ty),* $(,)?) => {$(
        impl CarryOut for $verb {
            fn carry_out(verb: OnSession<Self>, target: Target) -> Carried<Self> {
                async move { ask_actor(&target.reach(&verb.id).await?, verb.request).await }.boxed()
            }
        }
    )*};
}

/// Lets the manager carry out these verbs, in any state of the session.
macro_rules! by_manager {
    ($($verb:ty),* $(,)?) => {$(
        impl CarryOut for $verb {
            fn carry_out(verb: OnSession<Self>, target: Target) -> Carried<Self> {
                async move { ask_manager(target.client(), verb).await }.boxed()
            }
        }
    )*};
}

by_actor!(
    PromptRequest,
    RunRequest,
    InterruptRequest,
    HoldRequest,
    ReleaseRequest,
    ToggleRequest,
    DebugRequest,
    AsksRequest
);
by_manager!(RenameRequest, ChangeModelRequest, CloseRequest);

/// A session gets an actor for an answer only if it would accept the answer.
impl CarryOut for AnswerRequest {
    fn carry_out(verb: OnSession<Self>, target: Target) -> Carried<Self> {
        let OnSession { id, request, .. } = verb;
        let answer = async move {
            let check = || ask_manager(target.client(), CheckAnswer { id: id.clone(), request: request.clone() });
            if let Target::Session(session) = &target
                && !session.has_actor()
            {
                check().await?;
            }
            let answered = async { ask_actor(&target.reach(&id).await?, request.clone()).await }.await;
            if let Err(SessionError::NotLive { .. } | SessionError::Refused(Refused::Closed)) = answered {
                check().await?;
            }
            answered
        };
        answer.boxed()
    }
}

async fn ask_actor<V: Act>(session: &LocalSession, request: ByClient<V>) -> Result<V::Reply, SessionError> {
    Ok(session.send(|| request.clone()).await??)
}

async fn ask_manager<T, M>(client: &ClientContext, message: M) -> Result<T, SessionError>
where
    T: Send + 'static,
    M: Message<Result = Result<T, SessionError>> + Send + 'static,
    Manager: Handler<M>,
    Context<Manager>: ToEnvelope<Manager, M>,
{
    client.manager.send(message).await.unwrap_or(Err(SessionError::Stopped))
}

impl Target {
    async fn reach(&self, id: &SessionId) -> Result<LocalSession, SessionError> {
        match self {
            Self::Session(session) => Ok(session.clone()),
            Self::Live(sessions) => sessions.reach(id).await,
        }
    }

    fn client(&self) -> &ClientContext {
        match self {
            Self::Session(session) => &session.client,
            Self::Live(sessions) => &sessions.0,
        }
    }
}

impl LocalSession {
    /// Carries out a verb on this session.
    pub(super) fn carry_out<V: CarryOut>(&self, verb: V) -> Carried<V> {
        let verb = self.client.on_session(&self.id, verb, self.supplies_to_open());
        V::carry_out(verb, Target::Session(self.clone()))
    }
}

impl LocalSessions {
    /// Carries out a verb on the session with this id, without opening it.
    pub(super) fn carry_out<V: CarryOut>(&self, id: &SessionId, verb: V) -> Carried<V> {
        V::carry_out(self.0.on_session(id, verb, None), Target::Live(self.clone()))
    }
}

impl ClientContext {
    fn on_session<V: Verb>(
        &self,
        id: &SessionId,
        mut verb: V,
        supplies_to_open: Option<Arc<Supplies>>,
    ) -> OnSession<V> {
        verb.supply(&self.supplies);
        OnSession { id: id.clone(), request: ByClient { verb, by: self.who.clone() }, supplies_to_open }
    }
}
