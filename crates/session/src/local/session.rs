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
    ChangeModel, CloseSession, Incarnation, Live, Look, Manager, Reach, RenameSession, Seen, WeighAnswer,
};
use crate::open::Unloaded;

/// A client, and the way it takes.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) manager: Addr<Manager>,
    pub(crate) who: Who,
    pub(crate) supplies: Arc<Supplies>,
}

impl Caller {
    /// Whether a session would take this answer, should it have no actor: without giving it one.
    pub(crate) async fn weigh(&self, id: &SessionId, ask: &AskId, answer: &Answer) -> Result<(), SessionError> {
        let weigh = WeighAnswer { id: id.clone(), ask: ask.clone(), answer: answer.clone(), by: self.who.clone() };
        self.manager.send(weigh).await.map_err(|_| SessionError::Stopped)?
    }
}

/// One session of an engine in this process.
#[derive(Clone)]
pub(crate) struct LocalSession {
    caller: Caller,
    unloaded: Unloaded,
    id: SessionId,
    // Shared by the clones of this handle, never with an actor.
    way: Arc<Mutex<Way>>,
}

/// Where the session was last reached.
struct Way {
    actor: Incarnation,
    /// What it publishes: another after it was closed and opened again.
    shown: watch::Receiver<Arc<Snapshot>>,
}

impl LocalSession {
    pub(crate) fn new(caller: Caller, unloaded: Unloaded, live: Live) -> Self {
        let Live { id, actor, shown, .. } = live;
        Self { caller, unloaded, id, way: Arc::new(Mutex::new(Way { actor, shown })) }
    }

    pub(crate) fn id(&self) -> &SessionId {
        &self.id
    }

    /// What the session publishes.
    pub(crate) fn shown(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.way().shown.clone()
    }

    pub(crate) async fn prompt(&self, text: String) -> Result<Prompted, SessionError> {
        Ok(self.send(|| actor::Prompt { text: text.clone(), by: self.who() }).await??)
    }

    pub(crate) async fn start_run(&self, request: RunRequest) -> Result<RunStarted, SessionError> {
        Ok(self.send(|| actor::StartRun { request: request.clone(), by: self.who() }).await??)
    }

    pub(crate) async fn answer(&self, ask: &AskId, answer: Answer) -> Result<Answered, SessionError> {
        if !self.way().actor.actor.connected() {
            self.caller.weigh(&self.id, ask, &answer).await?;
        }
        let answer = || actor::AnswerAsk { ask: ask.clone(), answer: answer.clone(), by: self.who() };
        Ok(self.send(answer).await??)
    }

    pub(crate) async fn interrupt(&self, turn: Option<TurnId>) -> Result<Interrupted, SessionError> {
        Ok(self.send(|| actor::Interrupt { turn, by: self.who() }).await??)
    }

    pub(crate) async fn turn_end(&self, turn: TurnId) -> Result<Option<TurnEnd>, SessionError> {
        LocalSessions::of(self.caller.clone()).turn_end(&self.id, turn).await
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
        self.caller.manager.send(message).await.map_err(|_| SessionError::Stopped)?
    }

    pub(crate) async fn change_model(&self, model: String) -> Result<(), SessionError> {
        let supplies = Arc::clone(&self.caller.supplies);
        let opens = self.opens();
        let message = ChangeModel { id: self.id.clone(), model, supplies, opens, by: self.who() };
        self.caller.manager.send(message).await.map_err(|_| SessionError::Stopped)?
    }

    pub(crate) async fn change_debug(&self, enabled: bool) -> Result<(), SessionError> {
        Ok(self.send(|| actor::ChangeDebug { enabled, by: self.who() }).await??)
    }

    pub(crate) async fn close(&self, unused_since: Option<u64>) -> Result<(), SessionError> {
        let message = CloseSession { id: self.id.clone(), unused_since, by: self.who() };
        self.caller.manager.send(message).await.map_err(|_| SessionError::Stopped)?
    }

    /// Waits until what it publishes is so.
    pub(crate) async fn settled(&self, is_so: impl Fn(&Snapshot) -> bool) -> Result<Arc<Snapshot>, SessionError> {
        loop {
            let mut shown = self.shown();
            let settled = shown.wait_for(|snapshot| is_so(snapshot)).await.ok().map(|snapshot| Arc::clone(&snapshot));
            if let (Some(snapshot), Ok(_)) = (settled, shown.has_changed()) {
                return Ok(snapshot);
            }
            // Nobody publishes that any more: it was closed or deleted, or its engine has stopped.
            let look = Look { what: self.id.to_string() };
            let Seen { snapshot, .. } = self.caller.manager.send(look).await.map_err(|_| SessionError::Stopped)??;
            if snapshot.settings.id != self.id {
                return Err(SessionError::Unknown { what: self.id.to_string() });
            }
            if is_so(&snapshot) {
                return Ok(snapshot);
            }
            // It was opened again, and is at work.
            self.reach(0).await?;
        }
    }

    #[cfg(feature = "test-support")]
    pub(crate) async fn panic_now(&self) {
        // The reply never comes; that is how it is seen.
        let _ = self.send(|| actor::PanicNow).await;
    }

    pub(crate) fn who(&self) -> Who {
        self.caller.who.clone()
    }

    /// Sends to the session's actor; if it was unloaded or rebuilt since, to the new one.
    ///
    /// What still waited when its actor was unloaded is sent again. What an actor had not answered when it failed
    /// is not: whether it was done is not known here.
    pub(crate) async fn send<M>(&self, message: impl Fn() -> M) -> Result<M::Result, SessionError>
    where
        M: Message + Send + 'static,
        M::Result: Send,
        SessionActor: Handler<M>,
        <SessionActor as Actor>::Context: ToEnvelope<SessionActor, M>,
    {
        loop {
            let Incarnation { number, actor } = self.way().actor.clone();
            let sent = actor.connected();
            if sent && let Ok(reply) = actor.send(message()).await {
                return Ok(reply);
            }
            // That it is closed, for one: so this ends.
            let seen_failed = self.reach(number).await?;
            if sent && seen_failed {
                return Err(SessionError::Gone { session: self.id.clone() });
            }
        }
    }

    /// Goes to the actor that it has now, and says whether the one that was seen has failed.
    async fn reach(&self, seen: u64) -> Result<bool, SessionError> {
        let reach = Reach { id: self.id.clone(), seen, supplies: self.opens() };
        let live = self.caller.manager.send(reach).await.map_err(|_| SessionError::Stopped)??;
        *self.way() = Way { actor: live.actor, shown: live.shown };
        Ok(live.seen_failed)
    }

    /// What it is opened with, if it has to be.
    fn opens(&self) -> Option<Arc<Supplies>> {
        (self.unloaded == Unloaded::Opens).then(|| Arc::clone(&self.caller.supplies))
    }

    fn way(&self) -> MutexGuard<'_, Way> {
        self.way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
