//! The manager: the actor that knows every session, starts and watches session actors, and makes
//! room.
//!
//! Its handlers are tasks on its thread, which share its registry. Messages come from clients only.

mod answer;
mod catalogs;
mod close;
mod delete;
mod find;
mod folder;
mod lifecycle;
mod load;
mod mending;
mod model;
mod moving;
mod naming;
mod open;
mod owned;
mod policy;
mod registry;
mod rename;
mod roster;
mod shutdown;
mod start;

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use actix::prelude::*;
use futures_util::future::{Map, Shared};
use holdpoint_common::api::{
    AnswerRequest, Answered, ChangeModelRequest, CloseRequest, ListQuery, PolicyRequest,
    RenameRequest, SessionList, Verb,
};
use holdpoint_common::{OpenSession, SessionError, SessionId, Snapshot, Supplies};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};

use crate::actor::SessionActor;
use crate::load::Load;
use crate::session_env::EngineEnv;
use crate::state::{ByClient, HandOver};

use registry::Registry;

pub use find::Elsewhere;
pub(crate) use find::SeenSnapshot;
pub(crate) use lifecycle::ActorEnd;
pub(crate) use moving::HandoverReply;
pub(crate) use roster::WatchSources;

pub(crate) struct Manager(Rc<Registry>);

/// A session with an actor.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) id: SessionId,
    pub(crate) actor: Incarnation,
    pub(crate) shown: watch::Receiver<Arc<Snapshot>>,
    /// Whether the incarnation that the caller had seen has failed.
    pub(crate) seen_failed: bool,
    /// How the actor ended, once everything it started has ended; at once if it failed.
    end: FutureEnd,
}

/// The future end of an actor, for all callers that wait for it.
type FutureEnd = Shared<Map<JoinHandle<ActorEnd>, fn(Result<ActorEnd, JoinError>) -> ActorEnd>>;

/// One of the actors that a session has over time.
#[derive(Clone)]
pub(crate) struct Incarnation {
    /// Counted from 1, and unique within the engine.
    pub(crate) number: u64,
    pub(crate) address: Addr<SessionActor>,
}

/// Opens a new session.
#[derive(Message)]
#[rtype(result = "Result<Live, SessionError>")]
pub(crate) struct Open {
    pub(crate) open: OpenSession,
    pub(crate) supplies: Arc<Supplies>,
}

/// Gets the session with this id, name or unique prefix of an id, with an actor.
#[derive(Message)]
#[rtype(result = "Result<Live, SessionError>")]
pub(crate) struct Find {
    pub(crate) given: String,
    /// The supplies to open it with, if necessary.
    pub(crate) supplies: Arc<Supplies>,
}

/// Gets the session with this id, with an actor, unless it was closed.
#[derive(Message)]
#[rtype(result = "Result<Live, SessionError>")]
pub(crate) struct Reach {
    pub(crate) id: SessionId,
    /// The incarnation that the caller has seen end, or 0.
    pub(crate) seen: u64,
    /// The supplies to open it with, if it was unloaded. Without them it stays unloaded.
    pub(crate) supplies: Option<Arc<Supplies>>,
}

/// Gets the snapshot of the session with this id, name or unique prefix of an id, without starting
/// an actor.
#[derive(Message)]
#[rtype(result = "Result<SeenSnapshot, SessionError>")]
pub(crate) struct GetSnapshot {
    pub(crate) given: String,
}

/// Gets the other machine that has the session with this id, name or unique prefix of an id.
#[derive(Message)]
#[rtype(result = "Result<Option<Elsewhere>, SessionError>")]
pub(crate) struct Locate {
    pub(crate) given: String,
}

/// Lists sessions.
#[derive(Message)]
#[rtype(result = "Result<SessionList, SessionError>")]
pub(crate) struct List(pub(crate) ListQuery);

/// Deletes the session with this id or name from the store.
#[derive(Message)]
#[rtype(result = "Result<(), SessionError>")]
pub(crate) struct DeleteSession(pub(crate) String);

/// A verb that the manager carries out, because it concerns more than the session's actor.
#[derive(Clone)]
pub(crate) struct OnSession<V> {
    pub(crate) id: SessionId,
    pub(crate) request: ByClient<V>,
    /// The supplies to open the session with, if necessary. Without them it is not opened.
    pub(crate) supplies_to_open: Option<Arc<Supplies>>,
}

impl<V: Verb> Message for OnSession<V> {
    type Result = Result<V::Reply, SessionError>;
}

/// Answers an ask of a session that is only saved. `None` if it would accept the answer, but an actor
/// has to answer, and for a live session.
#[derive(Message)]
#[rtype(result = "Result<Option<Answered>, SessionError>")]
pub(crate) struct AnswerSaved {
    pub(crate) id: SessionId,
    pub(crate) request: ByClient<AnswerRequest>,
}

/// Resolves the path of a folder of this machine, for the settings of a session.
#[derive(Message)]
#[rtype(result = "Result<String, SessionError>")]
pub(crate) struct ResolveFolder(pub(crate) PathBuf);

/// Hands the session with this id over to another folder.
#[derive(Message)]
#[rtype(result = "Result<HandoverReply, SessionError>")]
pub(crate) struct HandSessionOver {
    pub(crate) id: SessionId,
    pub(crate) request: HandOver,
}

/// Gets the environment that all sessions share.
#[derive(Message)]
#[rtype(result = "Arc<EngineEnv>")]
pub(crate) struct GetEngineEnv;

/// Gets the present load.
#[derive(Message)]
#[rtype(result = "Load")]
pub(crate) struct GetLoad;

/// Gets the present sources of a watch.
#[derive(Message)]
#[rtype(result = "WatchSources")]
pub(crate) struct GetWatchSources;

/// A session was imported into the store.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Imported;

/// Ends every session's actor and stops the actor system.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Shutdown;

/// Handles messages with tasks, which share the registry.
macro_rules! handle {
    ($($message:ty: |$registry:ident, $content:pat_param| $result:expr;)*) => {$(
        impl Handler<$message> for Manager {
            type Result = ResponseFuture<<$message as Message>::Result>;

            fn handle(&mut self, message: $message, _: &mut Self::Context) -> Self::Result {
                let ($registry, $content) = (Rc::clone(&self.0), message);
                Box::pin(async move { $result })
            }
        }
    )*};
}

handle! {
    Open: |registry, Open { open, supplies }| registry.open(open, &supplies).await;
    Find: |registry, Find { given, supplies }| registry.find(&given, &supplies).await;
    Reach: |registry, Reach { id, seen, supplies }| registry.reach(&id, seen, supplies.as_deref()).await;
    GetSnapshot: |registry, GetSnapshot { given }| registry.snapshot(&given).await;
    Locate: |registry, Locate { given }| registry.locate(&given).await;
    List: |registry, List(query)| registry.list(&query).await;
    DeleteSession: |registry, DeleteSession(given)| registry.delete(&given).await;
    OnSession<RenameRequest>: |registry, OnSession { id, request, .. }| registry.rename(&id, &request).await;
    OnSession<CloseRequest>: |registry, OnSession { id, request, .. }| registry.close(&id, &request).await;
    OnSession<ChangeModelRequest>: |registry, OnSession { id, request, supplies_to_open }| {
        registry.change_model(&id, request, supplies_to_open.as_deref()).await
    };
    OnSession<PolicyRequest>: |registry, OnSession { id, request, supplies_to_open }| {
        registry.change_policy(&id, request, supplies_to_open.as_deref()).await
    };
    AnswerSaved: |registry, AnswerSaved { id, request }| registry.answer_saved(&id, &request).await;
    ResolveFolder: |registry, ResolveFolder(path)| registry.resolve_workspace(path).await;
    HandSessionOver: |registry, HandSessionOver { id, request }| registry.hand_over(&id, &request).await;
    GetEngineEnv: |registry, GetEngineEnv| Arc::clone(&registry.engine);
    GetLoad: |registry, GetLoad| registry.load();
    GetWatchSources: |registry, GetWatchSources| registry.watch_sources();
    Imported: |registry, Imported| registry.roster.borrow_mut().saved_changed();
    Shutdown: |registry, Shutdown| registry.shut_down();
}

impl Manager {
    pub(crate) fn new(engine: EngineEnv, arbiters: Vec<Arbiter>) -> Self {
        Self(Rc::new(Registry::new(engine, arbiters)))
    }
}

impl Actor for Manager {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Self::Context) {
        let registry = Rc::clone(&self.0);
        actix_rt::spawn(async move {
            registry.mend_all().await;
            registry.follow_other_machines().await;
        });
    }
}

impl Live {
    /// Waits until the actor and everything it started have ended.
    ///
    /// # Errors
    /// The actor failed.
    async fn ended(&self) -> Result<(), SessionError> {
        match self.end.clone().await {
            ActorEnd::Unloaded | ActorEnd::Closed => Ok(()),
            ActorEnd::Lost | ActorEnd::Failed => {
                Err(SessionError::Gone { session: self.id.clone() })
            }
        }
    }
}
