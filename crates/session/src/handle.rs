//! A client's handle of one session.

use std::fmt;
use std::sync::Arc;

use holdpoint_common::api::{
    AnswerRequest, Answered, AsksRequest, ChangeModelRequest, CloseRequest, DebugRequest,
    HoldRequest, InterruptReply, InterruptRequest, PolicyRequest, PromptRequest, Prompted,
    ReleaseRequest, RenameRequest, RunRequest, RunStarted, ToggleRequest, TurnEnd, UnqueueRequest,
    Unqueued,
};
use holdpoint_common::{
    Answer, AskId, AsksMode, Hold, HoldState, PolicyMode, PromptId, SessionError, SessionId,
    Snapshot, TurnId,
};
use tokio::sync::watch;

use crate::backend::{SessionBackend, SessionVerb, with_backend};
use crate::local::LocalSession;
#[cfg(feature = "remote")]
use crate::remote::RemoteSession;

/// A client's reference to one session. Cheap to clone, and does not keep the session alive. An
/// unloaded session is opened again by use, except by handles from
/// [`Sessions::reach`](crate::Sessions::reach).
#[derive(Clone)]
pub struct SessionHandle(AnySession);

/// The location of the session's engine.
#[derive(Clone)]
pub(crate) enum AnySession {
    Local(LocalSession),
    #[cfg(feature = "remote")]
    Remote(RemoteSession),
}

/// The result of an interrupt.
#[derive(Debug)]
pub enum Interruption {
    /// The turn is being cut. Await its [`end`](InterruptedTurn::end) for the receipt.
    Interrupting(InterruptedTurn),
    /// Only a run was open, between two turns, and it has ended.
    RunEnded,
    /// No such turn was open, and the session is unchanged.
    NotRunning,
}

/// A turn that is being cut.
#[derive(Debug)]
pub struct InterruptedTurn {
    /// The id of the turn.
    pub turn: TurnId,
    session: SessionHandle,
}

impl InterruptedTurn {
    /// Waits until the turn and everything it started have ended.
    ///
    /// # Errors
    /// [`SessionError::Gone`] if the session's actor fails in the meantime; otherwise the errors of
    /// [`Sessions::turn_end`](crate::Sessions::turn_end).
    pub async fn end(self) -> Result<TurnEnd, SessionError> {
        let end = self.session.turn_end(self.turn).await?;
        end.ok_or_else(|| SessionError::Gone { session: self.session.id().clone() })
    }
}

impl From<LocalSession> for SessionHandle {
    fn from(session: LocalSession) -> Self {
        Self(AnySession::Local(session))
    }
}

#[cfg(feature = "remote")]
impl From<RemoteSession> for SessionHandle {
    fn from(session: RemoteSession) -> Self {
        Self(AnySession::Remote(session))
    }
}

impl SessionHandle {
    pub(crate) fn backend(&self) -> &AnySession {
        &self.0
    }

    /// The id of the session.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        with_backend!(AnySession, &self.0, session => session.id())
    }

    /// The snapshot that the session last published. It is replaced before the event that changed
    /// it reaches a client. For a daemon's session, it is the newest snapshot that this handle or
    /// one of its attachments has received.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.shown().borrow().clone()
    }

    /// Reads the snapshot of a daemon's session again. In this process, the snapshot is always
    /// current.
    ///
    /// # Errors
    /// [`SessionError`] if the daemon can't be asked, or no longer has the session.
    pub async fn refresh(&self) -> Result<(), SessionError> {
        with_backend!(AnySession, &self.0, session => session.refresh().await)
    }

    fn shown(&self) -> watch::Receiver<Arc<Snapshot>> {
        with_backend!(AnySession, &self.0, session => session.shown())
    }

    /// Carries out a verb on the session. An unloaded session is opened first, if the handle may
    /// open it. A close and a rename need no actor, and an answer that would be refused opens
    /// nothing. The other methods are shorter forms of this one.
    ///
    /// # Errors
    /// [`SessionError`] if the session refuses the verb or can't be reached.
    pub async fn act<V: SessionVerb>(&self, verb: V) -> Result<V::Reply, SessionError> {
        verb.check_session(self.id())?;
        with_backend!(AnySession, &self.0, session => session.act(verb).await)
    }

    /// Sends a prompt. When this returns, its turn is running or the prompt is queued.
    ///
    /// # Errors
    /// [`SessionError`] if the prompt is empty or too long, or the queue is full.
    pub async fn prompt(&self, prompt: impl Into<PromptRequest>) -> Result<Prompted, SessionError> {
        self.act(prompt.into()).await
    }

    /// Takes a prompt out of the queue. It is handed back, as a fact with its text, and never runs.
    ///
    /// # Errors
    /// [`Refused::NotQueued`](holdpoint_common::Refused::NotQueued) if the turn of the prompt has
    /// started, or the prompt has ended; [`SessionError`] if the session is closed.
    pub async fn unqueue(&self, prompt: PromptId) -> Result<Unqueued, SessionError> {
        self.act(UnqueueRequest { prompt }).await
    }

    /// Starts a run, which works on a goal in iterations until no task is left or the run is
    /// interrupted.
    ///
    /// # Errors
    /// [`SessionError`] if the goal is empty or too long, a task is invalid, or a turn or a run is
    /// open.
    pub async fn start_run(&self, request: RunRequest) -> Result<RunStarted, SessionError> {
        self.act(request).await
    }

    /// Answers the ask with this id.
    ///
    /// # Errors
    /// [`Refused::Answer`](holdpoint_common::Refused::Answer) says why the answer had no effect:
    /// the ask was already answered (and by which client), is closed, was never raised or is of
    /// another kind, or the answer is incomplete.
    pub async fn answer(&self, ask: &AskId, answer: Answer) -> Result<Answered, SessionError> {
        self.act(AnswerRequest { ask: ask.clone(), answer }).await
    }

    /// Interrupts the open turn, or only `turn` if it is given. Returns at once.
    ///
    /// # Errors
    /// [`SessionError`] if the session is closed.
    pub async fn interrupt(&self, turn: Option<TurnId>) -> Result<Interruption, SessionError> {
        let InterruptReply { turn, run, .. } =
            self.act(InterruptRequest { turn, no_wait: true }).await?;
        Ok(match turn {
            Some(turn) => {
                Interruption::Interrupting(InterruptedTurn { turn, session: self.clone() })
            }
            None if run => Interruption::RunEnded,
            None => Interruption::NotRunning,
        })
    }

    async fn turn_end(&self, turn: TurnId) -> Result<Option<TurnEnd>, SessionError> {
        with_backend!(AnySession, &self.0, session => session.turn_end(turn).await)
    }

    /// Interrupts the open turn and waits for its receipt; `None` if no turn was open.
    ///
    /// # Errors
    /// [`SessionError`] if the session is closed, or fails in the meantime.
    pub async fn interrupt_and_wait(&self) -> Result<Option<TurnEnd>, SessionError> {
        match self.interrupt(None).await? {
            Interruption::Interrupting(turn) => turn.end().await.map(Some),
            Interruption::RunEnded | Interruption::NotRunning => Ok(None),
        }
    }

    /// Holds the session at its next boundary, an idle one at once. Returns the current hold.
    ///
    /// # Errors
    /// [`SessionError`] if the session is closed.
    pub async fn hold(&self) -> Result<Hold, SessionError> {
        self.act(HoldRequest {}).await
    }

    /// Releases the session, so that it continues. Returns the current hold.
    ///
    /// # Errors
    /// [`SessionError`] if the session is closed.
    pub async fn release(&self) -> Result<Hold, SessionError> {
        self.act(ReleaseRequest {}).await
    }

    /// Holds or releases the session, whichever is the opposite of the state that the client shows.
    /// If that state is outdated, the session stays as it is. Returns the current hold.
    ///
    /// # Errors
    /// [`SessionError`] if the session is closed.
    pub async fn toggle_hold(&self, shown: HoldState) -> Result<Hold, SessionError> {
        self.act(ToggleRequest { shown }).await
    }

    /// Renames the session, which also sets its title. The old name becomes free.
    ///
    /// # Errors
    /// [`SessionError::NameTaken`] if another live session has the name; [`SessionError`] if the
    /// name is invalid, or the session is closed.
    pub async fn rename(&self, name: impl Into<String>) -> Result<(), SessionError> {
        self.act(RenameRequest { name: name.into() }).await
    }

    /// Changes the model from the next turn on: `PROVIDER/NAME`, or `PROVIDER` for its default. The
    /// model is found with the supplies of this handle's client.
    ///
    /// # Errors
    /// [`SessionError::ModelSetup`] if there is no such model, or no key for it; [`SessionError`]
    /// if the session is closed.
    pub async fn change_model(&self, model: impl Into<String>) -> Result<(), SessionError> {
        self.act(ChangeModelRequest { model: model.into(), supplies: None }).await
    }

    /// Turns debug logging of the session on or off. The field `debug` of the `tracing` span
    /// `session` carries the setting to subscribers, such as the program's log. The setting is
    /// saved, and the snapshot shows it.
    ///
    /// # Errors
    /// [`SessionError`] if the session is closed.
    pub async fn change_debug(&self, enabled: bool) -> Result<(), SessionError> {
        self.act(DebugRequest { enabled }).await
    }

    /// Changes the asks mode. The new mode also answers the asks that are open.
    ///
    /// # Errors
    /// [`SessionError`] if the session is closed.
    pub async fn change_asks(&self, asks: AsksMode) -> Result<(), SessionError> {
        self.act(AsksRequest { asks }).await
    }

    /// Changes the policy mode, which judges the calls that follow, those of the open turn included.
    /// Open asks stay open, and the rules stay as they are.
    ///
    /// # Errors
    /// [`SessionError`] if the session is closed.
    pub async fn change_policy(&self, policy: PolicyMode) -> Result<(), SessionError> {
        self.act(PolicyRequest { policy }).await
    }

    /// Closes the session: cuts its turn, closes its asks, ends its processes, stops its actor and
    /// frees its name. The session stays saved. Returns when all of this is done.
    ///
    /// # Errors
    /// [`Refused::NotSaving`](holdpoint_common::Refused::NotSaving) if its facts can't be saved at
    /// present: the session stays live, and loses no facts. [`SessionError::Store`] if only its end
    /// could not be saved. [`Refused::Closed`](holdpoint_common::Refused::Closed) if it is closed
    /// already.
    pub async fn close(&self) -> Result<(), SessionError> {
        self.act(CloseRequest { unused_since: None }).await
    }

    /// Closes the session as [`close`](Self::close) does, but only if it is idle and has been given
    /// no prompt or run, and has begun no turn, after the event with the number `since`. This
    /// protects the work of other clients. Background jobs do not keep a session open.
    ///
    /// # Errors
    /// [`Refused::InUse`](holdpoint_common::Refused::InUse) if the session is in use. It stays open
    /// then. Otherwise the errors of [`close`](Self::close).
    pub async fn close_unused(&self, since: u64) -> Result<(), SessionError> {
        self.act(CloseRequest { unused_since: Some(since) }).await
    }

    /// Waits until the session has no open turn or run and no queued prompt, or until it is held. A
    /// closed session is settled.
    ///
    /// # Errors
    /// [`SessionError`] with the code `unknownSession` if the session was deleted, or with another
    /// one if it can't be read. [`SessionError::Stopped`] if the engine has stopped;
    /// [`SessionError::Unreachable`] or [`SessionError::Disconnected`] if its daemon has.
    /// [`Refused::Closed`](holdpoint_common::Refused::Closed) for a daemon's session that is being
    /// closed at that moment.
    pub async fn settled(&self) -> Result<Arc<Snapshot>, SessionError> {
        with_backend!(AnySession, &self.0, session => session.wait_for(has_settled).await)
    }

    /// Waits until the session is not held only to be moved.
    pub(crate) async fn moved(&self) -> Result<Arc<Snapshot>, SessionError> {
        let is_moved = |shown: &Snapshot| !shown.hold.is_for_move();
        with_backend!(AnySession, &self.0, session => session.wait_for(is_moved).await)
    }

    /// Makes the session's actor panic, to test the recovery. Returns when it has.
    #[cfg(feature = "test-support")]
    pub async fn panic_now(&self) {
        match &self.0 {
            AnySession::Local(session) => session.panic_now().await,
            #[cfg(feature = "remote")]
            AnySession::Remote(_) => {}
        }
    }
}

/// Whether no turn is open, and no run or prompt waits unless the session is held.
fn has_settled(snapshot: &Snapshot) -> bool {
    let waits = snapshot.run.is_some() || !snapshot.queue.is_empty();
    snapshot.turn.is_none() && (!waits || snapshot.hold.shown() == HoldState::Standing)
}

impl fmt::Debug for SessionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionHandle").field(self.id()).finish()
    }
}
