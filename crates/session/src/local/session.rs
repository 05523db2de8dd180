//! One session of an engine in this process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actix::dev::ToEnvelope;
use actix::prelude::*;
use holdpoint_common::api::{Answered, Prompted, RunRequest, RunStarted, TurnEnd};
use holdpoint_common::{Answer, AskId, Hold, HoldShown, SessionId, Snapshot, Supplies, TurnId, Who};
use tokio::sync::watch;

use super::LocalSessions;
use crate::actor::{self, Interrupted, SessionActor};
use crate::error::SessionError;
use crate::manager::{
    ChangeModel, CheckAnswer, CloseSession, GetSnapshot, Incarnation, Live, Manager, Reach, RenameSession, SeenSnapshot,
};
use crate::open::WhenUnloaded;

/// A client with its manager and supplies.
#[derive(Clone)]
pub(crate) struct ClientContext {
    pub(crate) manager: Addr<Manager>,
    pub(crate) who: Who,
    pub(crate) supplies: Arc<Supplies>,
}

impl ClientContext {
    /// Checks whether a session that has no actor would accept this answer, without starting one.
    pub(crate) async fn check_answer(&self, id: &SessionId, ask: &AskId, answer: &Answer) -> Result<(), SessionError> {
        let check = CheckAnswer { id: id.clone(), ask: ask.clone(), answer: answer.clone(), by: self.who.clone() };
        self.manager.send(check).await.map_err(|_| SessionError::Stopped)?
    }
}

/// A client's reference to one session in this process.
#[derive(Clone)]
pub(crate) struct LocalSession {
    client: ClientContext,
    unloaded: WhenUnloaded,
    id: SessionId,
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
    pub(crate) fn new(client: ClientContext, unloaded: WhenUnloaded, live: Live) -> Self {
        let Live { id, actor, shown, .. } = live;
        Self { client, unloaded, id, reached: Arc::new(Mutex::new(ReachedActor { actor, shown })) }
    }

    pub(crate) fn id(&self) -> &SessionId {
        &self.id
    }

    /// The snapshots that the session publishes.
    pub(crate) fn shown(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.reached().shown.clone()
    }

    pub(crate) async fn prompt(&self, text: String) -> Result<Prompted, SessionError> {
        Ok(self.send(|| actor::Prompt { text: text.clone(), by: self.who() }).await??)
    }

    pub(crate) async fn start_run(&self, request: RunRequest) -> Result<RunStarted, SessionError> {
        Ok(self.send(|| actor::StartRun { request: request.clone(), by: self.who() }).await??)
    }

    pub(crate) async fn answer(&self, ask: &AskId, answer: Answer) -> Result<Answered, SessionError> {
        if !self.reached().actor.actor.connected() {
            self.client.check_answer(&self.id, ask, &answer).await?;
        }
        let answer = || actor::AnswerAsk { ask: ask.clone(), answer: answer.clone(), by: self.who() };
        Ok(self.send(answer).await??)
    }

    pub(crate) async fn interrupt(&self, turn: Option<TurnId>) -> Result<Interrupted, SessionError> {
        Ok(self.send(|| actor::Interrupt { turn, by: self.who() }).await??)
    }

    pub(crate) async fn turn_end(&self, turn: TurnId) -> Result<Option<TurnEnd>, SessionError> {
        LocalSessions::of(self.client.clone()).turn_end(&self.id, turn).await
    }

    pub(crate) async fn hold(&self) -> Result<Hold, SessionError> {
        Ok(self.send(|| actor::Hold { by: self.who() }).await??)
    }

    pub(crate) async fn release(&self) -> Result<Hold, SessionError> {
        Ok(self.send(|| actor::Release { by: self.who() }).await??)
    }

    pub(crate) async fn toggle_hold(&self, shown: HoldShown) -> Result<Hold, SessionError> {
        Ok(self.send(|| actor::ToggleHold { shown, by: self.who() }).await??)
    }

    pub(crate) async fn rename(&self, name: String) -> Result<(), SessionError> {
        let message = RenameSession { id: self.id.clone(), name, by: self.who() };
        self.client.manager.send(message).await.map_err(|_| SessionError::Stopped)?
    }

    pub(crate) async fn change_model(&self, model: String) -> Result<(), SessionError> {
        let supplies = Arc::clone(&self.client.supplies);
        let supplies_to_open = self.supplies_to_open();
        let message = ChangeModel { id: self.id.clone(), model, supplies, supplies_to_open, by: self.who() };
        self.client.manager.send(message).await.map_err(|_| SessionError::Stopped)?
    }

    pub(crate) async fn change_debug(&self, enabled: bool) -> Result<(), SessionError> {
        Ok(self.send(|| actor::ChangeDebug { enabled, by: self.who() }).await??)
    }

    pub(crate) async fn close(&self, unused_since: Option<u64>) -> Result<(), SessionError> {
        let message = CloseSession { id: self.id.clone(), unused_since, by: self.who() };
        self.client.manager.send(message).await.map_err(|_| SessionError::Stopped)?
    }

    /// Waits until the published snapshot matches `predicate`.
    pub(crate) async fn wait_for(&self, predicate: impl Fn(&Snapshot) -> bool) -> Result<Arc<Snapshot>, SessionError> {
        loop {
            let mut shown = self.shown();
            let matched =
                shown.wait_for(|snapshot| predicate(snapshot)).await.ok().map(|snapshot| Arc::clone(&snapshot));
            if let (Some(snapshot), Ok(_)) = (matched, shown.has_changed()) {
                return Ok(snapshot);
            }
            // The publisher is gone: the session was closed or deleted, or its engine has stopped.
            let look = GetSnapshot { what: self.id.to_string() };
            let SeenSnapshot { snapshot, .. } =
                self.client.manager.send(look).await.map_err(|_| SessionError::Stopped)??;
            if snapshot.settings.id != self.id {
                return Err(SessionError::Unknown { what: self.id.to_string() });
            }
            if predicate(&snapshot) {
                return Ok(snapshot);
            }
            // The session was opened again, and is at work.
            self.reach(0).await?;
        }
    }

    #[cfg(feature = "test-support")]
    pub(crate) async fn panic_now(&self) {
        // There is no reply. The failed send shows that the actor has panicked.
        let _ = self.send(|| actor::PanicNow).await;
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
            let Incarnation { number, actor } = self.reached().actor.clone();
            let sent = actor.connected();
            if sent && let Ok(reply) = actor.send(message()).await {
                return Ok(reply);
            }
            // Fails if the session is closed, for example, so the loop ends.
            let seen_failed = self.reach(number).await?;
            if sent && seen_failed {
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
    fn supplies_to_open(&self) -> Option<Arc<Supplies>> {
        (self.unloaded == WhenUnloaded::Open).then(|| Arc::clone(&self.client.supplies))
    }

    fn reached(&self) -> MutexGuard<'_, ReachedActor> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
