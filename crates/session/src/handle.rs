//! One session, as a client holds it.

use std::sync::{Arc, Mutex, PoisonError};

use actix::dev::ToEnvelope;
use actix::prelude::*;
use holdpoint_common::{Answer, AskId, Hold, HoldShown, Outcome, SessionId, Snapshot, TurnId, Who};
use tokio::sync::{oneshot, watch};

use crate::actor::{self, SessionActor};
use crate::error::SessionError;
use crate::manager::{CloseSession, Incarnation, Live, Manager, Touch};

pub use crate::actor::{Answered, Prompted, TurnEnd};

/// A client, and the way it takes.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) manager: Addr<Manager>,
    pub(crate) who: Who,
    /// What a session that is opened again by this client starts processes with.
    pub(crate) env: Arc<[(String, String)]>,
}

/// One session. Cheap to clone; keeps nothing alive. A session that was unloaded is opened again by use.
#[derive(Clone)]
pub struct SessionHandle {
    caller: Caller,
    id: SessionId,
    // Shared by the clones of this handle, never with an actor.
    actor: Arc<Mutex<Incarnation>>,
    shown: watch::Receiver<Arc<Snapshot>>,
}

/// What an interrupt found.
#[derive(Debug)]
pub enum Interruption {
    /// The turn is being cut. Await its [`end`](InterruptedTurn::end) for the receipt.
    Interrupting(InterruptedTurn),
    /// There was no such turn. Nothing changed.
    NotRunning,
}

/// A turn that is being cut.
#[derive(Debug)]
pub struct InterruptedTurn {
    /// The turn.
    pub turn: TurnId,
    session: SessionId,
    end: oneshot::Receiver<TurnEnd>,
}

impl InterruptedTurn {
    /// Waits until nothing of the turn runs any more.
    ///
    /// # Errors
    /// [`SessionError::Gone`] if the session's actor failed meanwhile.
    pub async fn end(self) -> Result<TurnEnd, SessionError> {
        self.end.await.map_err(|_| SessionError::Gone { session: self.session })
    }
}

impl SessionHandle {
    pub(crate) fn new(caller: Caller, live: Live) -> Self {
        let Live { id, actor, shown, .. } = live;
        Self { caller, id, actor: Arc::new(Mutex::new(actor)), shown }
    }

    /// The session.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// The snapshot the session last published. It is replaced before the event that changed it reaches
    /// anyone.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.shown.borrow().clone()
    }

    /// Gives it something to do. The session is running, or the prompt waits, before this returns.
    ///
    /// # Errors
    /// [`SessionError`] if the prompt is empty or too long, or the queue is full.
    pub async fn prompt(&self, text: impl Into<String>) -> Result<Prompted, SessionError> {
        let text = text.into();
        Ok(self.send(|| actor::Prompt { text: text.clone(), by: self.who() }).await??)
    }

    /// Answers an ask by its id.
    ///
    /// # Errors
    /// [`SessionError::Answer`] says why the answer had no effect: already answered (and by whom), closed,
    /// of the wrong kind, incomplete, or never asked.
    pub async fn answer(&self, ask: &AskId, answer: Answer) -> Result<Answered, SessionError> {
        let answer = || actor::AnswerAsk { ask: ask.clone(), answer: answer.clone(), by: self.who() };
        Ok(self.send(answer).await??)
    }

    /// Ends the open turn now: whichever it is, or only `turn`. Returns at once.
    ///
    /// # Errors
    /// [`SessionError`] if the session is closed.
    pub async fn interrupt(&self, turn: Option<TurnId>) -> Result<Interruption, SessionError> {
        Ok(match self.send(|| actor::Interrupt { turn, by: self.who() }).await?? {
            actor::Interrupted::Interrupting { turn, end } => {
                Interruption::Interrupting(InterruptedTurn { turn, session: self.id.clone(), end })
            }
            actor::Interrupted::NotRunning => Interruption::NotRunning,
        })
    }

    /// Ends the open turn and waits for the receipt; `None` if none was open.
    ///
    /// # Errors
    /// [`SessionError`] if the session is closed or fails meanwhile.
    pub async fn interrupt_and_wait(&self) -> Result<Option<TurnEnd>, SessionError> {
        match self.interrupt(None).await? {
            Interruption::Interrupting(turn) => turn.end().await.map(Some),
            Interruption::NotRunning => Ok(None),
        }
    }

    /// Stops it at its next boundary; an idle session stops at once. Returns what the hold is now.
    ///
    /// # Errors
    /// [`SessionError`] if the session is closed.
    pub async fn hold(&self) -> Result<Hold, SessionError> {
        Ok(self.send(|| actor::Hold { by: self.who() }).await??)
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// [`SessionError`] if the session is closed.
    pub async fn release(&self) -> Result<Hold, SessionError> {
        Ok(self.send(|| actor::Release { by: self.who() }).await??)
    }

    /// Holds or releases: the other of what the client was showing. If that is no longer so, nothing changes.
    /// Returns what the hold is now.
    ///
    /// # Errors
    /// [`SessionError`] if the session is closed.
    pub async fn toggle_hold(&self, shown: HoldShown) -> Result<Hold, SessionError> {
        Ok(self.send(|| actor::ToggleHold { shown, by: self.who() }).await??)
    }

    /// Ends the session: its turn is cut, its asks are answered, its processes end, its actor stops, its name
    /// is free. The session stays saved. Returns when all that is done.
    ///
    /// # Errors
    /// [`SessionError`] if it is not live.
    pub async fn close(&self) -> Result<(), SessionError> {
        let message = CloseSession { id: self.id.clone(), by: self.who() };
        self.caller.manager.send(message).await.map_err(|_| SessionError::Stopped)?
    }

    /// Waits until no turn is open and no prompt waits, or it is held.
    ///
    /// # Errors
    /// [`SessionError::Stopped`] if the engine has stopped.
    pub async fn settled(&self) -> Result<Arc<Snapshot>, SessionError> {
        let mut shown = self.shown.clone();
        let settled = shown.wait_for(|snapshot| {
            snapshot.turn.is_none() && (snapshot.queue.is_empty() || snapshot.hold.shown() == HoldShown::Standing)
        });
        Ok(settled.await.map_err(|_| SessionError::Stopped)?.clone())
    }

    /// How its last turn ended.
    #[must_use]
    pub fn last_outcome(&self) -> Option<Outcome> {
        self.shown.borrow().last_turn.as_ref().map(|turn| turn.outcome)
    }

    /// Makes the session's actor panic: a fault to be survived. Returns when it has.
    #[cfg(feature = "test-support")]
    pub async fn panic_now(&self) {
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
        let Incarnation { number, actor } = self.incarnation();
        let sent = actor.connected();
        if sent && let Ok(reply) = actor.send(message()).await {
            return Ok(reply);
        }
        let touch = Touch { id: self.id.clone(), seen: number };
        let live = self.caller.manager.send(touch).await.map_err(|_| SessionError::Stopped)??;
        *self.actor.lock().unwrap_or_else(PoisonError::into_inner) = live.actor.clone();
        let gone = || SessionError::Gone { session: self.id.clone() };
        if sent && live.seen_failed {
            return Err(gone());
        }
        live.actor.actor.send(message()).await.map_err(|_| gone())
    }

    fn incarnation(&self) -> Incarnation {
        self.actor.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
