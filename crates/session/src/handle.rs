//! One session, as a client holds it.

use std::fmt;
use std::sync::Arc;

use holdpoint_common::api::{Answered, Prompted, RunRequest, RunStarted, TurnEnd};
use holdpoint_common::{Answer, AskId, Hold, HoldShown, SessionId, Snapshot, TurnId};
use tokio::sync::watch;

use crate::actor::Interrupted;
use crate::error::SessionError;
use crate::local::LocalSession;
#[cfg(feature = "remote")]
use crate::remote::RemoteSession;

/// One session. Cheap to clone; keeps nothing alive. A session that was unloaded is opened again by use.
#[derive(Clone)]
pub struct SessionHandle(Way);

/// Where its engine is.
#[derive(Clone)]
pub(crate) enum Way {
    Local(LocalSession),
    #[cfg(feature = "remote")]
    Remote(RemoteSession),
}

/// What an interrupt found.
#[derive(Debug)]
pub enum Interruption {
    /// The turn is being cut. Await its [`end`](InterruptedTurn::end) for the receipt.
    Interrupting(InterruptedTurn),
    /// No turn was open, but a run: it is over.
    RunEnded,
    /// There was no such turn. Nothing changed.
    NotRunning,
}

/// A turn that is being cut.
#[derive(Debug)]
pub struct InterruptedTurn {
    /// The turn.
    pub turn: TurnId,
    session: SessionHandle,
}

impl InterruptedTurn {
    /// Waits until nothing of the turn runs any more.
    ///
    /// # Errors
    /// [`SessionError::Gone`] if the session's actor failed meanwhile; else as [`Sessions::turn_end`](crate::Sessions::turn_end).
    pub async fn end(self) -> Result<TurnEnd, SessionError> {
        let end = self.session.turn_end(self.turn).await?;
        end.ok_or_else(|| SessionError::Gone { session: self.session.id().clone() })
    }
}

impl SessionHandle {
    pub(crate) fn local(session: LocalSession) -> Self {
        Self(Way::Local(session))
    }

    #[cfg(feature = "remote")]
    pub(crate) fn remote(session: RemoteSession) -> Self {
        Self(Way::Remote(session))
    }

    /// How it is reached.
    pub(crate) fn way(&self) -> &Way {
        &self.0
    }

    /// The session.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        match &self.0 {
            Way::Local(session) => session.id(),
            #[cfg(feature = "remote")]
            Way::Remote(session) => session.id(),
        }
    }

    /// The snapshot the session last published. It is replaced before the event that changed it reaches
    /// anyone. Of a daemon's session: the last that came, by this handle's attachments or with it.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.shown().borrow().clone()
    }

    /// Reads the snapshot of a daemon's session anew. That of an engine in this process is always the last one.
    ///
    /// # Errors
    /// [`SessionError`] if the daemon can't be asked, or has no such session any more.
    pub async fn refresh(&self) -> Result<(), SessionError> {
        match &self.0 {
            Way::Local(_) => Ok(()),
            #[cfg(feature = "remote")]
            Way::Remote(session) => session.refresh().await,
        }
    }

    fn shown(&self) -> watch::Receiver<Arc<Snapshot>> {
        match &self.0 {
            Way::Local(session) => session.shown(),
            #[cfg(feature = "remote")]
            Way::Remote(session) => session.shown().clone(),
        }
    }

    /// Gives it something to do. The session is running, or the prompt waits, before this returns.
    ///
    /// # Errors
    /// [`SessionError`] if the prompt is empty or too long, or the queue is full.
    pub async fn prompt(&self, text: impl Into<String>) -> Result<Prompted, SessionError> {
        match &self.0 {
            Way::Local(session) => session.prompt(text.into()).await,
            #[cfg(feature = "remote")]
            Way::Remote(session) => session.prompt(text.into()).await,
        }
    }

    /// Begins a run: a goal, worked through in iterations until no task is left or it is interrupted.
    ///
    /// # Errors
    /// [`SessionError`] if the goal is empty or too long, a task is no task, or a turn or a run is open.
    pub async fn start_run(&self, request: RunRequest) -> Result<RunStarted, SessionError> {
        match &self.0 {
            Way::Local(session) => session.start_run(request).await,
            #[cfg(feature = "remote")]
            Way::Remote(session) => session.start_run(request).await,
        }
    }

    /// Answers an ask by its id.
    ///
    /// # Errors
    /// [`SessionError::Answer`] says why the answer had no effect: already answered (and by whom), closed,
    /// of the wrong kind, incomplete, or never asked.
    pub async fn answer(&self, ask: &AskId, answer: Answer) -> Result<Answered, SessionError> {
        match &self.0 {
            Way::Local(session) => session.answer(ask, answer).await,
            #[cfg(feature = "remote")]
            Way::Remote(session) => session.answer(ask, answer).await,
        }
    }

    /// Ends the open turn now: whichever it is, or only `turn`. Returns at once.
    ///
    /// # Errors
    /// [`SessionError`] if the session is closed.
    pub async fn interrupt(&self, turn: Option<TurnId>) -> Result<Interruption, SessionError> {
        let found = match &self.0 {
            Way::Local(session) => session.interrupt(turn).await,
            #[cfg(feature = "remote")]
            Way::Remote(session) => session.interrupt(turn).await,
        };
        Ok(match found? {
            Interrupted::Interrupting(turn) => {
                Interruption::Interrupting(InterruptedTurn { turn, session: self.clone() })
            }
            Interrupted::RunEnded => Interruption::RunEnded,
            Interrupted::NotRunning => Interruption::NotRunning,
        })
    }

    async fn turn_end(&self, turn: TurnId) -> Result<Option<TurnEnd>, SessionError> {
        match &self.0 {
            Way::Local(session) => session.turn_end(turn).await,
            #[cfg(feature = "remote")]
            Way::Remote(session) => session.turn_end(turn).await,
        }
    }

    /// Ends the open turn and waits for the receipt; `None` if none was open.
    ///
    /// # Errors
    /// [`SessionError`] if the session is closed or fails meanwhile.
    pub async fn interrupt_and_wait(&self) -> Result<Option<TurnEnd>, SessionError> {
        match self.interrupt(None).await? {
            Interruption::Interrupting(turn) => turn.end().await.map(Some),
            Interruption::RunEnded | Interruption::NotRunning => Ok(None),
        }
    }

    /// Stops it at its next boundary; an idle session stops at once. Returns what the hold is now.
    ///
    /// # Errors
    /// [`SessionError`] if the session is closed.
    pub async fn hold(&self) -> Result<Hold, SessionError> {
        match &self.0 {
            Way::Local(session) => session.hold().await,
            #[cfg(feature = "remote")]
            Way::Remote(session) => session.hold().await,
        }
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// [`SessionError`] if the session is closed.
    pub async fn release(&self) -> Result<Hold, SessionError> {
        match &self.0 {
            Way::Local(session) => session.release().await,
            #[cfg(feature = "remote")]
            Way::Remote(session) => session.release().await,
        }
    }

    /// Holds or releases: the other of what the client was showing. If that is no longer so, nothing changes.
    /// Returns what the hold is now.
    ///
    /// # Errors
    /// [`SessionError`] if the session is closed.
    pub async fn toggle_hold(&self, shown: HoldShown) -> Result<Hold, SessionError> {
        match &self.0 {
            Way::Local(session) => session.toggle_hold(shown).await,
            #[cfg(feature = "remote")]
            Way::Remote(session) => session.toggle_hold(shown).await,
        }
    }

    /// Gives it another name, which is its title, too. What it was called before is free.
    ///
    /// # Errors
    /// [`SessionError::NameTaken`] if another live session has the name; [`SessionError`] if nothing can be called
    /// that, or the session is closed.
    pub async fn rename(&self, name: impl Into<String>) -> Result<(), SessionError> {
        match &self.0 {
            Way::Local(session) => session.rename(name.into()).await,
            #[cfg(feature = "remote")]
            Way::Remote(session) => session.rename(name.into()).await,
        }
    }

    /// Gives it another model, `PROVIDER/NAME`, or `PROVIDER` for its default: from its next turn on. It is found as the
    /// client of this handle reaches models.
    ///
    /// # Errors
    /// [`SessionError::Model`] if there is no such model, or no key for it; [`SessionError`] if the session is closed.
    pub async fn change_model(&self, model: impl Into<String>) -> Result<(), SessionError> {
        match &self.0 {
            Way::Local(session) => session.change_model(model.into()).await,
            #[cfg(feature = "remote")]
            Way::Remote(session) => session.change_model(model.into()).await,
        }
    }

    /// Has it logged at debug level, or not any more: its `tracing` span, `session`, has the field `debug`, by which a
    /// subscriber tells (the program's log does). Stays until it is changed; the snapshot says what it is.
    ///
    /// # Errors
    /// [`SessionError`] if the session is closed.
    pub async fn change_debug(&self, enabled: bool) -> Result<(), SessionError> {
        match &self.0 {
            Way::Local(session) => session.change_debug(enabled).await,
            #[cfg(feature = "remote")]
            Way::Remote(session) => session.change_debug(enabled).await,
        }
    }

    /// Ends the session: its turn is cut, its asks are answered, its processes end, its actor stops, its name
    /// is free. The session stays saved. Returns when all that is done.
    ///
    /// # Errors
    /// [`Refused::NotSaving`](crate::state::Refused::NotSaving) if what it has done can't be saved at present: it stays
    /// live, and nothing is lost. [`SessionError::Store`] if only its end could not be saved.
    /// [`Refused::Closed`](crate::state::Refused::Closed) if it is that already.
    pub async fn close(&self) -> Result<(), SessionError> {
        self.close_if(None).await
    }

    /// The same, but only if it has nothing to do, and behind the event of this number nobody has given it a prompt or a run,
    /// and none began: what is others' is not cut. Background jobs keep no session open.
    ///
    /// # Errors
    /// [`Refused::InUse`](crate::state::Refused::InUse) if it is in use, and stays as it is. Else as [`close`](Self::close).
    pub async fn close_unused(&self, since: u64) -> Result<(), SessionError> {
        self.close_if(Some(since)).await
    }

    async fn close_if(&self, unused_since: Option<u64>) -> Result<(), SessionError> {
        match &self.0 {
            Way::Local(session) => session.close(unused_since).await,
            #[cfg(feature = "remote")]
            Way::Remote(session) => session.close(unused_since).await,
        }
    }

    /// Waits until no turn and no run is open and no prompt waits, or it is held. A session that is closed has settled.
    ///
    /// # Errors
    /// [`SessionError`], with the code `unknownSession` if it was deleted; if it can't be read; [`SessionError::Stopped`] if the engine
    /// has stopped, [`SessionError::Unreachable`] or [`SessionError::Disconnected`] if its daemon has. Of a daemon's session
    /// that is just being closed, [`Refused::Closed`](crate::state::Refused::Closed).
    pub async fn settled(&self) -> Result<Arc<Snapshot>, SessionError> {
        match &self.0 {
            Way::Local(session) => session.settled(has_settled).await,
            #[cfg(feature = "remote")]
            Way::Remote(session) => session.settled(has_settled).await,
        }
    }

    /// Makes the session's actor panic: a fault to be survived. Returns when it has.
    #[cfg(feature = "test-support")]
    pub async fn panic_now(&self) {
        match &self.0 {
            Way::Local(session) => session.panic_now().await,
            #[cfg(feature = "remote")]
            Way::Remote(_) => {}
        }
    }
}

/// Nothing is open and nothing waits, or what waits is held.
fn has_settled(snapshot: &Snapshot) -> bool {
    let waits = snapshot.run.is_some() || !snapshot.queue.is_empty();
    snapshot.turn.is_none() && (!waits || snapshot.hold.shown() == HoldShown::Standing)
}

impl fmt::Debug for SessionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionHandle").field(self.id()).finish()
    }
}
