//! The sessions of an engine, as a client uses them.

use std::io::{BufRead, Write};
use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::api::{
    AnswerRequest, Answered, CloseRequest, HandedOver, InboxAsk, ListQuery, MoveRequest,
    RenameRequest, SessionList, SessionNews, TurnEnd,
};
use holdpoint_common::{
    Answer, AskId, OpenSession, SessionError, SessionId, SessionSummary, Snapshot, Supplies,
    TurnId, Who,
};

use crate::backend::{Backend, SessionVerb, WatchBackend, with_backend};
use crate::handle::SessionHandle;
use crate::local::{LocalSessions, LocalWatch};
use crate::manager::Manager;
#[cfg(feature = "remote")]
use crate::remote::{RemoteSessions, RemoteWatch};
use crate::transfer::{ExportError, ImportError};

/// All sessions of an engine, for one client. Cheap to clone.
///
/// The engine is in this process or, with the feature `remote`, in a daemon. The operations are the
/// same.
#[derive(Clone)]
pub struct Sessions(AnySessions);

#[derive(Clone)]
enum AnySessions {
    Local(LocalSessions),
    #[cfg(feature = "remote")]
    Remote(RemoteSessions),
}

/// A stream of session changes. A slow reader gets the latest state; intermediate changes are
/// coalesced.
pub struct Watch(AnyWatch);

enum AnyWatch {
    Local(Box<LocalWatch>),
    #[cfg(feature = "remote")]
    Remote(RemoteWatch),
}

impl Watch {
    /// Waits for the next change; `None` when the engine has stopped, or the connection to it
    /// broke.
    pub async fn next(&mut self) -> Option<SessionNews> {
        with_backend!(AnyWatch, &mut self.0, watch => watch.next().await)
    }

    /// Whether the stream ended because the engine was stopped. If not, the connection to the
    /// daemon broke.
    #[must_use]
    pub fn has_stopped(&self) -> bool {
        with_backend!(AnyWatch, &self.0, watch => watch.has_stopped())
    }
}

impl Sessions {
    pub(crate) fn local(manager: Addr<Manager>, who: Who) -> Self {
        Self(AnySessions::Local(LocalSessions::new(manager, who)))
    }

    /// The sessions of the daemon that listens on this Unix socket, for a client with this name.
    /// Connects on use, and stays connected only for attachments and watches. Must be used inside a
    /// tokio runtime with I/O.
    #[cfg(feature = "remote")]
    #[must_use]
    pub fn remote(socket: impl Into<std::path::PathBuf>, who: &Who) -> Self {
        Self(AnySessions::Remote(RemoteSessions::new(socket.into(), who)))
    }

    /// The same sessions, used in the name of this client. A daemon determines the client's process
    /// itself.
    #[must_use]
    pub fn for_client(self, who: Who) -> Self {
        Self(match self.0 {
            AnySessions::Local(sessions) => AnySessions::Local(sessions.for_client(who)),
            #[cfg(feature = "remote")]
            AnySessions::Remote(sessions) => AnySessions::Remote(sessions.for_client(who)),
        })
    }

    /// The live session with this id, for clients that do not open sessions. A session that is only
    /// saved, or is unloaded later, is not opened.
    ///
    /// # Errors
    /// [`SessionError::NotLive`] if the session is only saved, [`Refused::Closed`] if it is closed,
    /// and [`SessionError::UnknownSession`] if there is no such session. For a daemon's session,
    /// the first operation on the handle reports the first two.
    ///
    /// [`Refused::Closed`]: holdpoint_common::Refused::Closed
    pub async fn reach(&self, id: &SessionId) -> Result<SessionHandle, SessionError> {
        with_backend!(AnySessions, &self.0, sessions => Ok(sessions.reach(id).await?.into()))
    }

    /// The same sessions, with this client's supplies: the environment of tool processes, the
    /// provider settings and the system prompt. A session keeps them while it is live. They are not
    /// saved, so a saved session gets the supplies of the client that opens it.
    #[must_use]
    pub fn with_supplies(self, supplies: Supplies) -> Self {
        Self(match self.0 {
            AnySessions::Local(sessions) => AnySessions::Local(sessions.with_supplies(supplies)),
            #[cfg(feature = "remote")]
            AnySessions::Remote(sessions) => AnySessions::Remote(sessions.with_supplies(supplies)),
        })
    }

    /// Opens a new session.
    ///
    /// # Errors
    /// [`SessionError`] if the folder or the model can't be used, the name is taken, or there is no
    /// room.
    pub async fn open(&self, open: OpenSession) -> Result<SessionHandle, SessionError> {
        with_backend!(AnySessions, &self.0, sessions => Ok(sessions.open(open).await?.into()))
    }

    /// The session with this id, name or unique prefix of an id, which is opened if it is only
    /// saved. If several sessions have the name, the live one is meant, otherwise the newest.
    ///
    /// # Errors
    /// [`SessionError`] if there is no such session, or it can't be opened.
    pub async fn get(&self, given: &str) -> Result<SessionHandle, SessionError> {
        with_backend!(AnySessions, &self.0, sessions => Ok(sessions.get(given).await?.into()))
    }

    /// The snapshot of the session with this id, name or unique prefix of an id. A session that is
    /// only saved is not opened.
    ///
    /// # Errors
    /// [`SessionError`] if there is no such session, or it can't be read.
    pub async fn look(&self, given: &str) -> Result<Arc<Snapshot>, SessionError> {
        with_backend!(AnySessions, &self.0, sessions => sessions.look(given).await)
    }

    /// Exports the saved part of a session as text, in the format of [`transfer`](crate::transfer).
    ///
    /// # Errors
    /// [`ExportError`] if there is no such session, it can't be read, or a write to `out` fails.
    /// Incomplete text has no last line.
    pub async fn export(
        &self,
        given: &str,
        out: &mut (dyn Write + Send),
    ) -> Result<(), ExportError> {
        with_backend!(AnySessions, &self.0, sessions => sessions.export(given, out).await)
    }

    /// Imports an exported session under its own id, or under a new one if that is taken.
    ///
    /// # Errors
    /// [`ImportError`] if the text is not a valid export, with the number of the line, or if the
    /// session can't be saved.
    pub async fn import(&self, text: &mut (dyn BufRead + Send)) -> Result<SessionId, ImportError> {
        with_backend!(AnySessions, &self.0, sessions => sessions.import(text).await)
    }

    /// The open asks of all sessions, live and saved, oldest first. For a session that is too
    /// damaged to be read, only its first ask is included, if its summary has one.
    ///
    /// # Errors
    /// The errors of [`list`](Self::list).
    pub async fn inbox(&self) -> Result<Vec<InboxAsk>, SessionError> {
        with_backend!(AnySessions, &self.0, sessions => sessions.inbox().await)
    }

    /// The open asks of the session with this id, live or saved. Faults of other sessions have no
    /// effect.
    ///
    /// # Errors
    /// [`SessionError`] if there is no such session, or it can't be read.
    pub async fn asks(&self, id: &SessionId) -> Result<Vec<InboxAsk>, SessionError> {
        with_backend!(AnySessions, &self.0, sessions => sessions.asks(id).await)
    }

    /// Carries out a verb on the session with this id, without opening it. A session that is only
    /// saved can be closed and renamed; other verbs need a live one.
    ///
    /// # Errors
    /// [`SessionError::NotLive`] if the verb needs a live session and this one is only saved;
    /// [`SessionError`] if there is no such session, or it refuses the verb.
    pub async fn act<V: SessionVerb>(
        &self,
        id: &SessionId,
        verb: V,
    ) -> Result<V::Reply, SessionError> {
        verb.check_session(id)?;
        with_backend!(AnySessions, &self.0, sessions => sessions.act(id, verb).await)
    }

    /// Answers the ask with this id, in any session. A session that is only saved is opened for it,
    /// unless the answer would be refused: then the session stays as it is. If the session's machine
    /// does not respond, the answer is saved, and takes effect when the session is opened there.
    ///
    /// # Errors
    /// The errors of [`SessionHandle::answer`]; [`SessionError`] if there is no such session, or it
    /// can't be opened.
    pub async fn answer(&self, ask: &AskId, answer: Answer) -> Result<Answered, SessionError> {
        match self
            .act(&ask.session, AnswerRequest { ask: ask.clone(), answer: answer.clone() })
            .await
        {
            // The session is only saved, and would accept the answer.
            Err(SessionError::NotLive { .. }) => {
                self.get(ask.session.as_str()).await?.answer(ask, answer).await
            }
            answered => answered,
        }
    }

    /// Moves the session with this id, name or unique prefix of an id to another folder, on this machine
    /// or another one. Waits until nothing of it runs; it is held for that. If this future is dropped
    /// before, the session stays where it is. Returns the session as it is there.
    ///
    /// # Errors
    /// [`SessionError`] if there is no such session, folder or machine, or the machine can't be reached.
    pub async fn move_session(
        &self,
        given: &str,
        request: MoveRequest,
    ) -> Result<Arc<Snapshot>, SessionError> {
        match &self.0 {
            AnySessions::Local(sessions) => {
                let (id, handed_over) = sessions.move_here(given, request).await?;
                self.receive(&id, handed_over).await
            }
            #[cfg(feature = "remote")]
            AnySessions::Remote(sessions) => sessions.move_session(given, request).await,
        }
    }

    /// Receives a session that was handed over to a folder of this machine: opens it if it was live. It is
    /// opened even if this future is dropped.
    ///
    /// # Errors
    /// [`SessionError`] if the session can't be opened.
    pub async fn receive(
        &self,
        id: &SessionId,
        HandedOver { live }: HandedOver,
    ) -> Result<Arc<Snapshot>, SessionError> {
        if live {
            let (sessions, id) = (self.clone(), id.clone());
            let opening = async move { sessions.get(id.as_str()).await?.moved().await };
            return tokio::spawn(opening).await.map_err(|_| SessionError::Stopped)?;
        }
        self.look(id.as_str()).await
    }

    /// Starts to watch all sessions. The stream begins with the present state of every session.
    ///
    /// # Errors
    /// The errors of [`list`](Self::list).
    pub async fn watch(&self) -> Result<Watch, SessionError> {
        Ok(Watch(match &self.0 {
            AnySessions::Local(sessions) => AnyWatch::Local(Box::new(sessions.watch().await?)),
            #[cfg(feature = "remote")]
            AnySessions::Remote(sessions) => AnyWatch::Remote(sessions.watch().await?),
        }))
    }

    /// Renames the session with this id, which also sets its title. A session that is only saved is
    /// not opened.
    ///
    /// # Errors
    /// The errors of [`SessionHandle::rename`].
    pub async fn rename(
        &self,
        id: &SessionId,
        name: impl Into<String>,
    ) -> Result<(), SessionError> {
        self.act(id, RenameRequest { name: name.into() }).await
    }

    /// Closes the session with this id, as [`SessionHandle::close`] does. A session that is only
    /// saved is not opened: its queued prompts are handed back, and its asks are closed.
    ///
    /// # Errors
    /// The errors of [`SessionHandle::close`].
    pub async fn close(&self, id: &SessionId) -> Result<(), SessionError> {
        self.act(id, CloseRequest { unused_since: None }).await
    }

    /// Closes the session with this id, as [`SessionHandle::close_unused`] does, if it has not been
    /// used since the event with the number `since`.
    ///
    /// # Errors
    /// The errors of [`SessionHandle::close_unused`].
    pub async fn close_unused(&self, id: &SessionId, since: u64) -> Result<(), SessionError> {
        self.act(id, CloseRequest { unused_since: Some(since) }).await
    }

    /// Waits for the end of this turn and returns it, with the receipt if the turn was cut; `None`
    /// if the session has no such turn. A session that is only saved is not opened.
    ///
    /// # Errors
    /// [`SessionError`] if there is no such session, or it can't be read;
    /// [`SessionError::Disconnected`] if its daemon fails in the meantime.
    pub async fn turn_end(
        &self,
        id: &SessionId,
        turn: TurnId,
    ) -> Result<Option<TurnEnd>, SessionError> {
        with_backend!(AnySessions, &self.0, sessions => sessions.turn_end(id, turn).await)
    }

    /// Deletes the saved session with this id or name, and its whole log. The session must not have
    /// an actor; it need not be closed.
    ///
    /// # Errors
    /// [`SessionError::Live`] if it has an actor; [`SessionError::Ambiguous`] if several sessions
    /// have the name; [`SessionError::Inexact`] if `given` is only a prefix of an id;
    /// [`SessionError`] if there is no such session, or the store fails.
    pub async fn delete(&self, given: &str) -> Result<(), SessionError> {
        with_backend!(AnySessions, &self.0, sessions => sessions.delete(given).await)
    }

    /// All sessions: first the live ones, then the saved ones, each newest first.
    ///
    /// # Errors
    /// [`SessionError::Stopped`] if the engine has stopped, [`SessionError::Store`] if the saved
    /// sessions can't be read.
    pub async fn list(&self) -> Result<Vec<SessionSummary>, SessionError> {
        Ok(self.list_page(ListQuery::default()).await?.sessions)
    }

    /// A page of the sessions, in the same order.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub async fn list_page(&self, query: ListQuery) -> Result<SessionList, SessionError> {
        with_backend!(AnySessions, &self.0, sessions => sessions.list(query).await)
    }
}
