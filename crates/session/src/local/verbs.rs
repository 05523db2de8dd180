//! How each verb reaches its session: through its actor, or through the manager.

use std::sync::Arc;

use actix::dev::ToEnvelope;
use actix::prelude::*;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdpoint_common::api::{
    AnswerRequest, AsksRequest, ChangeModelRequest, CloseRequest, DebugRequest, HandOverRequest,
    HoldRequest, InterruptRequest, PolicyRequest, PromptRequest, ReleaseRequest, RenameRequest,
    RunRequest, ToggleRequest, UnqueueRequest, Verb,
};
use holdpoint_common::{Refused, SessionError, SessionId, Supplies};

use super::{ClientContext, LocalSession, LocalSessions, moving};
use crate::actor::Act;
use crate::backend::Backend;
use crate::manager::{AnswerSaved, Manager, OnSession};
use crate::state::ByClient;

/// The future of a verb's reply.
type CarriedOut<V> = BoxFuture<'static, Result<<V as Verb>::Reply, SessionError>>;

/// A verb of an engine in this process.
pub(crate) trait CarryOut: Verb {
    /// Carries out the verb.
    fn carry_out(request: ByClient<Self>, target: Target) -> CarriedOut<Self>;
}

/// The session of a verb.
pub(crate) enum Target {
    /// The session of a handle, which is opened if the handle may do so.
    Session(LocalSession),
    /// The session with this id, which is not opened.
    Live(LocalSessions, SessionId),
}

/// Lets the session's actor carry out these verbs.
macro_rules! by_actor {
    ($($verb:ty),* $(,)?) => {$(
        impl CarryOut for $verb {
            fn carry_out(request: ByClient<Self>, target: Target) -> CarriedOut<Self> {
                async move { ask_actor(&target.reach().await?, request).await }.boxed()
            }
        }
    )*};
}

/// Lets the manager carry out these verbs, in any state of the session.
macro_rules! by_manager {
    ($($verb:ty),* $(,)?) => {$(
        impl CarryOut for $verb {
            fn carry_out(request: ByClient<Self>, target: Target) -> CarriedOut<Self> {
                async move {
                    let (id, supplies_to_open) = (target.id().clone(), target.supplies_to_open());
                    ask_manager(target.client(), OnSession { id, request, supplies_to_open }).await
                }
                .boxed()
            }
        }
    )*};
}

by_actor!(
    PromptRequest,
    UnqueueRequest,
    RunRequest,
    InterruptRequest,
    HoldRequest,
    ReleaseRequest,
    ToggleRequest,
    DebugRequest,
    AsksRequest
);
by_manager!(RenameRequest, ChangeModelRequest, PolicyRequest, CloseRequest);

impl CarryOut for HandOverRequest {
    fn carry_out(request: ByClient<Self>, target: Target) -> CarriedOut<Self> {
        moving::hand_over(target, request).boxed()
    }
}

/// A session gets an actor for an answer only if it would accept the answer, and this machine is its home.
impl CarryOut for AnswerRequest {
    fn carry_out(request: ByClient<Self>, target: Target) -> CarriedOut<Self> {
        let answer = async move {
            let answer_saved = || {
                let (id, request) = (target.id().clone(), request.clone());
                ask_manager(target.client(), AnswerSaved { id, request })
            };
            if let Target::Session(session) = &target
                && !session.has_actor()
                && let Some(answered) = answer_saved().await?
            {
                return Ok(answered);
            }
            let answered = async { ask_actor(&target.reach().await?, request.clone()).await }.await;
            if let Err(SessionError::NotLive { .. } | SessionError::Refused(Refused::Closed)) =
                answered
                // The log says whether the answer is refused, and why.
                && let Some(answered) = answer_saved().await?
            {
                return Ok(answered);
            }
            answered
        };
        answer.boxed()
    }
}

async fn ask_actor<V: Act>(
    session: &LocalSession,
    request: ByClient<V>,
) -> Result<V::Reply, SessionError> {
    Ok(session.send(|| request.clone()).await??)
}

pub(super) async fn ask_manager<T, M>(client: &ClientContext, message: M) -> Result<T, SessionError>
where
    T: Send + 'static,
    M: Message<Result = Result<T, SessionError>> + Send + 'static,
    Manager: Handler<M>,
    Context<Manager>: ToEnvelope<Manager, M>,
{
    client.manager.send(message).await.unwrap_or(Err(SessionError::Stopped))
}

impl Target {
    /// Carries out a verb on the session, in the name of the client.
    pub(super) fn carry_out<V: CarryOut>(self, mut verb: V) -> CarriedOut<V> {
        let client = self.client();
        verb.supply(&client.supplies);
        let by = client.who.clone();
        V::carry_out(ByClient { verb, by }, self)
    }

    async fn reach(&self) -> Result<LocalSession, SessionError> {
        match self {
            Self::Session(session) => Ok(session.clone()),
            Self::Live(sessions, id) => sessions.reach(id).await,
        }
    }

    pub(super) fn id(&self) -> &SessionId {
        match self {
            Self::Session(session) => &session.id,
            Self::Live(_, id) => id,
        }
    }

    pub(super) fn client(&self) -> &ClientContext {
        match self {
            Self::Session(session) => &session.client,
            Self::Live(sessions, _) => &sessions.0,
        }
    }

    /// The supplies to open the session with, unless it has to stay unloaded.
    fn supplies_to_open(&self) -> Option<Arc<Supplies>> {
        match self {
            Self::Session(session) => session.supplies_to_open(),
            Self::Live(..) => None,
        }
    }
}
