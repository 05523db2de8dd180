//! One session of an engine in this process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actix::dev::ToEnvelope;
use actix::prelude::*;
use holdpoint_common::api::TurnEnd;
use holdpoint_common::{SessionError, SessionId, Snapshot, Supplies, TurnId, Who};
use tokio::sync::watch;

use super::verbs::Target;
use super::{LocalAttachment, LocalSessions};
use crate::actor::SessionActor;
use crate::attach_from::AttachFrom;
use crate::backend::{Backend, SessionBackend, SessionVerb, WhenUnloaded};
use crate::manager::{GetSnapshot, Incarnation, Live, Manager, Reach, SeenSnapshot};

/// A client with its manager and supplies.
#[derive(Clone)]
pub(crate) struct ClientContext {
    pub(crate) manager: Addr<Manager>,
    pub(crate) who: Who,
    pub(crate) supplies: Arc<Supplies>,
}

/// A client's reference to one session in this process.
#[derive(Clone)]
pub(crate) struct LocalSession {
    pub(super) client: ClientContext,
    when_unloaded: WhenUnloaded,
    pub(super) id: SessionId,
    // Shared by the clones of this handle, never with an actor.
    reached: Arc<Mutex<ReachedActor>>,
}

/// The actor through which the session was last reached.
struct ReachedActor {
    actor: Incarnation,
    /// The snapshots that the session publishes. The receiver is another one after the session was
    /// closed and opened again.
    shown: watch::Receiver<Arc<Snapshot>>,
}

impl LocalSession {
    pub(crate) fn new(client: ClientContext, when_unloaded: WhenUnloaded, live: Live) -> Self {
        let Live { id, actor, shown, .. } = live;
        Self {
            client,
            when_unloaded,
            id,
            reached: Arc::new(Mutex::new(ReachedActor { actor, shown })),
        }
    }

    #[cfg(feature = "test-support")]
    pub(crate) async fn panic_now(&self) {
        // There is no reply. The failed send shows that the actor has panicked.
        let _ = self.send(|| crate::actor::PanicNow).await;
    }

    pub(crate) fn who(&self) -> Who {
        self.client.who.clone()
    }

    /// Sends a message to the session's actor, or to its next one if it was unloaded or rebuilt.
    ///
    /// A message that still waited when its actor was unloaded is sent again. A message that an
    /// actor did not answer before it failed is not, because it is unknown whether it was handled.
    pub(crate) async fn send<M>(&self, message: impl Fn() -> M) -> Result<M::Result, SessionError>
    where
        M: Message + Send + 'static,
        M::Result: Send,
        SessionActor: Handler<M>,
        <SessionActor as Actor>::Context: ToEnvelope<SessionActor, M>,
    {
        loop {
            let Incarnation { number, address } = self.reached().actor.clone();
            let was_connected = address.connected();
            if was_connected && let Ok(reply) = address.send(message()).await {
                return Ok(reply);
            }
            // `reach` fails if the session is closed, for example, so the loop ends.
            let seen_failed = self.reach(number).await?;
            if was_connected && seen_failed {
                return Err(SessionError::Gone { session: self.id.clone() });
            }
        }
    }

    /// Switches to the session's present actor. Returns whether the one with number `seen` has
    /// failed.
    async fn reach(&self, seen: u64) -> Result<bool, SessionError> {
        let reach = Reach { id: self.id.clone(), seen, supplies: self.supplies_to_open() };
        let live = self.client.manager.send(reach).await.map_err(|_| SessionError::Stopped)??;
        *self.reached() = ReachedActor { actor: live.actor, shown: live.shown };
        Ok(live.seen_failed)
    }

    /// The supplies to open the session with, unless it has to stay unloaded.
    pub(super) fn supplies_to_open(&self) -> Option<Arc<Supplies>> {
        (self.when_unloaded == WhenUnloaded::Open).then(|| Arc::clone(&self.client.supplies))
    }

    /// Whether the actor through which the session was last reached still runs.
    pub(super) fn has_actor(&self) -> bool {
        self.reached().actor.address.connected()
    }

    fn reached(&self) -> MutexGuard<'_, ReachedActor> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionBackend for LocalSession {
    type Events = LocalAttachment;

    fn id(&self) -> &SessionId {
        &self.id
    }

    fn shown(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.reached().shown.clone()
    }

    async fn refresh(&self) -> Result<(), SessionError> {
        Ok(())
    }

    async fn wait_for(
        &self,
        predicate: impl Fn(&Snapshot) -> bool + Send + Sync,
    ) -> Result<Arc<Snapshot>, SessionError> {
        loop {
            let mut shown = self.shown();
            let matched = shown
                .wait_for(|snapshot| predicate(snapshot))
                .await
                .ok()
                .map(|snapshot| Arc::clone(&snapshot));
            // `has_changed` fails without a publisher. Then the last snapshot may be outdated.
            if let (Some(snapshot), Ok(_)) = (matched, shown.has_changed()) {
                return Ok(snapshot);
            }
            // The publisher is gone: the session was closed or deleted, or its engine has stopped.
            let look = GetSnapshot { given: self.id.to_string() };
            let SeenSnapshot { snapshot, .. } =
                self.client.manager.send(look).await.map_err(|_| SessionError::Stopped)??;
            if snapshot.settings.id != self.id {
                return Err(SessionError::UnknownSession { given: self.id.to_string() });
            }
            if predicate(&snapshot) {
                return Ok(snapshot);
            }
            // The session was opened again, and is at work.
            self.reach(0).await?;
        }
    }

    async fn act<V: SessionVerb>(&self, verb: V) -> Result<V::Reply, SessionError> {
        Target::Session(self.clone()).carry_out(verb).await
    }

    async fn turn_end(&self, turn: TurnId) -> Result<Option<TurnEnd>, SessionError> {
        LocalSessions(self.client.clone()).turn_end(&self.id, turn).await
    }

    async fn attach(&self, from: AttachFrom) -> Result<LocalAttachment, SessionError> {
        LocalAttachment::open(self, from).await
    }
}
