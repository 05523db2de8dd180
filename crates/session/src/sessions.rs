//! All sessions, as a client sees them.

use std::io::{BufRead, Write};
use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::api::{Answered, InboxAsk, SessionNews, TurnEnd};
use holdpoint_common::{Answer, AskId, SessionId, SessionSummary, Snapshot, Supplies, TurnId, Who};

use crate::error::SessionError;
use crate::handle::SessionHandle;
use crate::local::{LocalSessions, LocalWatch};
use crate::manager::Manager;
use crate::open::{OpenSession, Unloaded};
#[cfg(feature = "remote")]
use crate::remote::{RemoteSessions, RemoteWatch};
use crate::transfer::{ExportError, ImportError};

/// All sessions of an engine, for one client. Cheap to clone.
///
/// The engine is in this process, or (feature `remote`) a daemon's: what can be done is the same.
#[derive(Clone)]
pub struct Sessions(Place);

#[derive(Clone)]
enum Place {
    Local(LocalSessions),
    #[cfg(feature = "remote")]
    Remote(RemoteSessions),
}

/// Sees what becomes of all sessions. Nothing waits for it: what changes faster than it is looked at is told as it is
/// then.
pub struct Watch(Watching);

enum Watching {
    Local(Box<LocalWatch>),
    #[cfg(feature = "remote")]
    Remote(RemoteWatch),
}

impl Watch {
    /// What has changed, once something has; nothing when the engine has stopped, or the way to it is broken.
    pub async fn next(&mut self) -> Option<SessionNews> {
        match &mut self.0 {
            Watching::Local(watch) => watch.next().await,
            #[cfg(feature = "remote")]
            Watching::Remote(watch) => watch.next().await,
        }
    }

    /// Now that nothing comes any more: whether the engine was told to stop. Else the connection to a daemon broke.
    #[must_use]
    pub fn has_stopped(&self) -> bool {
        match &self.0 {
            Watching::Local(_) => true,
            #[cfg(feature = "remote")]
            Watching::Remote(watch) => watch.has_stopped(),
        }
    }
}

impl Sessions {
    pub(crate) fn local(manager: Addr<Manager>, who: Who) -> Self {
        Self(Place::Local(LocalSessions::new(manager, who)))
    }

    /// The sessions of the daemon that listens on this Unix socket, for a client of this name. Nothing is asked of it
    /// yet, and nothing stays connected but what is attached to or watched. What is done with these is to be called
    /// inside of a tokio runtime with I/O.
    #[cfg(feature = "remote")]
    #[must_use]
    pub fn remote(socket: impl Into<std::path::PathBuf>, who: &Who) -> Self {
        Self(Place::Remote(RemoteSessions::new(socket.into(), who)))
    }

    /// The same, for this client: what it does is done in its name. Of a daemon's clients, the daemon knows the process.
    #[must_use]
    pub fn for_client(self, who: Who) -> Self {
        Self(match self.0 {
            Place::Local(sessions) => Place::Local(sessions.for_client(who)),
            #[cfg(feature = "remote")]
            Place::Remote(sessions) => Place::Remote(sessions.for_client(&who)),
        })
    }

    /// The live session of this id, for whoever does not open sessions: one that is only saved, or is unloaded later, stays
    /// so.
    ///
    /// # Errors
    /// [`SessionError::NotLive`] if it is only saved, closed if it is that: of a daemon's session, told with the first thing
    /// that is done to it. [`SessionError::Unknown`].
    pub async fn reach(&self, id: &SessionId) -> Result<SessionHandle, SessionError> {
        Ok(match &self.0 {
            Place::Local(sessions) => SessionHandle::local(sessions.reach(id).await?),
            #[cfg(feature = "remote")]
            Place::Remote(sessions) => SessionHandle::remote(sessions.reach(id).await?),
        })
    }

    /// The same, for a client that brings these along: the environment of tools' processes, and how models are
    /// reached. A session has them for as long as it is live; they are not saved, so that a saved session that is
    /// opened again has what comes from the client that opens it.
    #[must_use]
    pub fn with_supplies(self, supplies: Supplies) -> Self {
        Self(match self.0 {
            Place::Local(sessions) => Place::Local(sessions.with_supplies(supplies)),
            #[cfg(feature = "remote")]
            Place::Remote(sessions) => Place::Remote(sessions.with_supplies(supplies)),
        })
    }

    /// Opens a fresh session.
    ///
    /// # Errors
    /// [`SessionError`] if the folder or the model can't be used, the name is taken, or there is no room.
    pub async fn open(&self, open: OpenSession) -> Result<SessionHandle, SessionError> {
        Ok(match &self.0 {
            Place::Local(sessions) => SessionHandle::local(sessions.open(open).await?),
            #[cfg(feature = "remote")]
            Place::Remote(sessions) => SessionHandle::remote(sessions.open(open).await?),
        })
    }

    /// The session of this id, name, or unique prefix of an id; opened if it is only saved. Of a name, the live one,
    /// else the newest.
    ///
    /// # Errors
    /// [`SessionError`] if there is none, or it can't be opened.
    pub async fn get(&self, what: &str) -> Result<SessionHandle, SessionError> {
        Ok(match &self.0 {
            Place::Local(sessions) => SessionHandle::local(sessions.get(what).await?),
            #[cfg(feature = "remote")]
            Place::Remote(sessions) => SessionHandle::remote(sessions.get(what).await?),
        })
    }

    /// The session of this id, name, or unique prefix of an id, as it is now: one that is only saved stays so.
    ///
    /// # Errors
    /// [`SessionError`] if there is none, or it can't be read.
    pub async fn look(&self, what: &str) -> Result<Arc<Snapshot>, SessionError> {
        match &self.0 {
            Place::Local(sessions) => sessions.look(what).await,
            #[cfg(feature = "remote")]
            Place::Remote(sessions) => sessions.look(what).await,
        }
    }

    /// Writes a session out as text, as far as it is saved: what [`transfer`](crate::transfer) says.
    ///
    /// # Errors
    /// [`ExportError`] if there is no such session, it can't be read, or `out` fails: what was written then has no last
    /// line.
    pub async fn export(&self, what: &str, out: &mut (dyn Write + Send)) -> Result<(), ExportError> {
        match &self.0 {
            Place::Local(sessions) => sessions.export(what, out).await,
            #[cfg(feature = "remote")]
            Place::Remote(sessions) => sessions.export(what, out).await,
        }
    }

    /// Takes a session in that was written out: under its own id if no other has it, else under a fresh one.
    ///
    /// # Errors
    /// [`ImportError`], with the number of the line, if the text is not as it was written; or if it can't be saved.
    pub async fn import(&self, text: &mut (dyn BufRead + Send)) -> Result<SessionId, ImportError> {
        match &self.0 {
            Place::Local(sessions) => sessions.import(text).await,
            #[cfg(feature = "remote")]
            Place::Remote(sessions) => sessions.import(text).await,
        }
    }

    /// The open asks of all sessions, live and saved: the oldest first. Of a session of which too much is lost, the first
    /// of its asks, if the list knows of it.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub async fn inbox(&self) -> Result<Vec<InboxAsk>, SessionError> {
        match &self.0 {
            Place::Local(sessions) => sessions.inbox().await,
            #[cfg(feature = "remote")]
            Place::Remote(sessions) => sessions.inbox().await,
        }
    }

    /// The open asks of the session of this id, live or saved. What is wrong with others does not matter.
    ///
    /// # Errors
    /// [`SessionError`] if there is none, or it can't be read.
    pub async fn asks(&self, id: &SessionId) -> Result<Vec<InboxAsk>, SessionError> {
        match &self.0 {
            Place::Local(sessions) => sessions.asks(id).await,
            #[cfg(feature = "remote")]
            Place::Remote(sessions) => sessions.asks(id).await,
        }
    }

    /// Answers an ask by its id, whichever session's it is. One that is only saved is opened for it, unless the answer is
    /// refused: then nothing changes.
    ///
    /// # Errors
    /// As [`SessionHandle::answer`]; [`SessionError`] if there is no such session, or it can't be opened.
    pub async fn answer(&self, ask: &AskId, answer: Answer) -> Result<Answered, SessionError> {
        match &self.0 {
            Place::Local(sessions) => sessions.answer(ask, answer, Unloaded::Opens).await,
            #[cfg(feature = "remote")]
            Place::Remote(sessions) => sessions.answer(ask, answer).await,
        }
    }

    /// The same, for a server whose clients say themselves what sessions are opened with: one that is only saved stays so.
    ///
    /// # Errors
    /// As [`answer`](Self::answer); [`SessionError::NotLive`] if it is only saved, and would take the answer.
    pub async fn answer_live(&self, ask: &AskId, answer: Answer) -> Result<Answered, SessionError> {
        match &self.0 {
            Place::Local(sessions) => sessions.answer(ask, answer, Unloaded::Stays).await,
            #[cfg(feature = "remote")]
            Place::Remote(sessions) => sessions.answer(ask, answer).await,
        }
    }

    /// Begins to watch all sessions: first every one as it is, then whichever has changed.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub async fn watch(&self) -> Result<Watch, SessionError> {
        Ok(Watch(match &self.0 {
            Place::Local(sessions) => Watching::Local(Box::new(sessions.watch().await?)),
            #[cfg(feature = "remote")]
            Place::Remote(sessions) => Watching::Remote(sessions.watch().await?),
        }))
    }

    /// Gives the session of this id another name, which is its title, too. One that is only saved stays so.
    ///
    /// # Errors
    /// As [`SessionHandle::rename`].
    pub async fn rename(&self, id: &SessionId, name: impl Into<String>) -> Result<(), SessionError> {
        match &self.0 {
            Place::Local(sessions) => sessions.rename(id, name.into()).await,
            #[cfg(feature = "remote")]
            Place::Remote(sessions) => sessions.rename(id, name.into()).await,
        }
    }

    /// Ends the session of this id, as [`SessionHandle::close`] does. One that is only saved is not opened for it: what it
    /// waits with is handed back, what it asks is answered.
    ///
    /// # Errors
    /// As [`SessionHandle::close`].
    pub async fn close(&self, id: &SessionId) -> Result<(), SessionError> {
        self.close_if(id, None).await
    }

    /// The same, but as [`SessionHandle::close_unused`] only if it is not in use.
    ///
    /// # Errors
    /// As [`SessionHandle::close_unused`].
    pub async fn close_unused(&self, id: &SessionId, since: u64) -> Result<(), SessionError> {
        self.close_if(id, Some(since)).await
    }

    async fn close_if(&self, id: &SessionId, unused_since: Option<u64>) -> Result<(), SessionError> {
        match &self.0 {
            Place::Local(sessions) => sessions.close(id, unused_since).await,
            #[cfg(feature = "remote")]
            Place::Remote(sessions) => sessions.close(id, unused_since).await,
        }
    }

    /// How this turn of a session has ended, once it has: with its receipt, if it was cut. `None` if the session has no such
    /// turn. A session that is only saved stays so.
    ///
    /// # Errors
    /// [`SessionError`] if there is no such session, or it can't be read; [`SessionError::Disconnected`] if its daemon
    /// fails meanwhile.
    pub async fn turn_end(&self, id: &SessionId, turn: TurnId) -> Result<Option<TurnEnd>, SessionError> {
        match &self.0 {
            Place::Local(sessions) => sessions.turn_end(id, turn).await,
            #[cfg(feature = "remote")]
            Place::Remote(sessions) => sessions.turn_end(id, turn).await,
        }
    }

    /// Deletes the saved session of this id or name, with all that was said in it: any that has no actor, whether it was
    /// closed or only unloaded.
    ///
    /// # Errors
    /// [`SessionError::Live`] if it has an actor; [`SessionError::Ambiguous`] if several sessions have the name;
    /// [`SessionError::Inexact`] if this is only a prefix of an id;
    /// [`SessionError`] if there is none, or the store fails.
    pub async fn delete(&self, what: &str) -> Result<(), SessionError> {
        match &self.0 {
            Place::Local(sessions) => sessions.delete(what).await,
            #[cfg(feature = "remote")]
            Place::Remote(sessions) => sessions.delete(what).await,
        }
    }

    /// Every session: live ones first, the newest first.
    ///
    /// # Errors
    /// [`SessionError::Stopped`] if the engine has stopped, [`SessionError::Store`] if the saved ones can't be read.
    pub async fn list(&self) -> Result<Vec<SessionSummary>, SessionError> {
        match &self.0 {
            Place::Local(sessions) => sessions.list().await,
            #[cfg(feature = "remote")]
            Place::Remote(sessions) => sessions.list().await,
        }
    }
}
