//! All sessions of a daemon.

use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;

use holdpoint_common::api::{Inbox, InboxAsk, ListQuery, MoveRequest, SessionList, TurnEnd};
use holdpoint_common::{OpenSession, SessionError, SessionId, Snapshot, Supplies, TurnId, Who};
use hyper::body::Bytes;
use tokio::sync::mpsc;

use super::connection::{Connection, escape_segment, http_error, read_reply};
use super::http::Method;
use super::{RemoteSession, RemoteWatch};
use crate::backend::{Backend, SessionVerb, WhenUnloaded};
use crate::transfer::{self, ExportError, ImportError, MAX_LAST_LINE_BYTES};

/// All sessions of a daemon, for one client.
#[derive(Clone)]
pub(crate) struct RemoteSessions(Connection);

impl RemoteSessions {
    pub(crate) fn new(socket: PathBuf, who: &Who) -> Self {
        Self(Connection::new(socket.into(), who))
    }
}

impl RemoteSessions {
    pub(crate) async fn move_session(
        &self,
        given: &str,
        request: MoveRequest,
    ) -> Result<Arc<Snapshot>, SessionError> {
        let request = MoveRequest { supplies: (*self.0.supplies).clone(), ..request };
        self.0.post(&format!("{}/move", path_of(given)?), &request).await
    }
}

impl Backend for RemoteSessions {
    type Session = RemoteSession;
    type Watch = RemoteWatch;

    fn for_client(self, who: Who) -> Self {
        Self(self.0.for_client(&who))
    }

    fn with_supplies(self, supplies: Supplies) -> Self {
        Self(self.0.with_supplies(supplies))
    }

    async fn open(&self, open: OpenSession) -> Result<RemoteSession, SessionError> {
        let unusable = |message: &str| {
            let path = open.workspace.display().to_string();
            SessionError::Workspace { path, message: message.to_owned() }
        };
        // Made absolute here, because the daemon has another current folder.
        let workspace =
            std::path::absolute(&open.workspace).map_err(|error| unusable(&error.to_string()))?;
        if workspace.to_str().is_none() {
            return Err(unusable("its path is not UTF-8"));
        }
        let request = OpenSession { workspace, supplies: (*self.0.supplies).clone(), ..open };
        let snapshot: Arc<Snapshot> = self.0.post("/v1/sessions", &request).await?;
        Ok(RemoteSession::new(self.0.clone(), WhenUnloaded::Open, snapshot))
    }

    async fn get(&self, given: &str) -> Result<RemoteSession, SessionError> {
        let path = format!("{}/open", path_of(given)?);
        let snapshot: Arc<Snapshot> = self.0.post(&path, &*self.0.supplies).await?;
        Ok(RemoteSession::new(self.0.clone(), WhenUnloaded::Open, snapshot))
    }

    async fn reach(&self, id: &SessionId) -> Result<RemoteSession, SessionError> {
        let snapshot = self.look(id.as_str()).await?;
        // No session has this id, but another one has it as its name.
        if snapshot.settings.id != *id {
            return Err(SessionError::UnknownSession { given: id.to_string() });
        }
        Ok(RemoteSession::new(self.0.clone(), WhenUnloaded::Fail, snapshot))
    }

    async fn look(&self, given: &str) -> Result<Arc<Snapshot>, SessionError> {
        self.0.get(&path_of(given)?).await
    }

    async fn delete(&self, given: &str) -> Result<(), SessionError> {
        self.0.request(Method::DELETE, &path_of(given)?, None).await.map(|_| ())
    }

    async fn act<V: SessionVerb>(
        &self,
        id: &SessionId,
        mut verb: V,
    ) -> Result<V::Reply, SessionError> {
        verb.supply(&self.0.supplies);
        self.0.post(&format!("/v1{}", verb.path(id)), &verb).await
    }

    async fn turn_end(
        &self,
        id: &SessionId,
        turn: TurnId,
    ) -> Result<Option<TurnEnd>, SessionError> {
        self.0.get(&format!("/v1/sessions/{id}/turns/{turn}")).await
    }

    async fn list(&self, query: ListQuery) -> Result<SessionList, SessionError> {
        let ListQuery { limit, after } = query;
        let limit = limit.map(|limit| format!("limit={limit}"));
        let after = after.map(|after| format!("after={after}"));
        let query: Vec<_> = limit.into_iter().chain(after).collect();
        let path = if query.is_empty() { "/v1/sessions" } else { "/v1/sessions?" };
        self.0.get(&format!("{path}{}", query.join("&"))).await
    }

    async fn inbox(&self) -> Result<Vec<InboxAsk>, SessionError> {
        Ok(self.0.get::<Inbox>("/v1/asks").await?.asks)
    }

    async fn asks(&self, id: &SessionId) -> Result<Vec<InboxAsk>, SessionError> {
        Ok(self.0.get::<Inbox>(&format!("/v1/sessions/{id}/asks")).await?.asks)
    }

    async fn watch(&self) -> Result<RemoteWatch, SessionError> {
        RemoteWatch::open(&self.0).await
    }

    async fn export(&self, given: &str, out: &mut (dyn Write + Send)) -> Result<(), ExportError> {
        let mut text = self.0.stream(&format!("{}/log", path_of(given)?)).await?;
        let mut tail = Vec::new();
        while let Some(chunk) = text.chunk().await.map_err(http_error)? {
            out.write_all(&chunk)?;
            tail.extend_from_slice(&chunk[chunk.len().saturating_sub(MAX_LAST_LINE_BYTES)..]);
            tail.drain(..tail.len().saturating_sub(MAX_LAST_LINE_BYTES));
        }
        out.flush()?;
        if transfer::has_footer(&tail) { Ok(()) } else { Err(ExportError::Truncated) }
    }

    async fn import(&self, text: &mut (dyn BufRead + Send)) -> Result<SessionId, ImportError> {
        // Waits for the first bytes before connecting, because the source may be slow to begin.
        text.fill_buf()?;
        let (pieces, body) = mpsc::channel(1);
        let (sent, response) = tokio::join!(send(text, pieces), self.0.upload("/v1/import", body));
        sent?;
        let snapshot: Arc<Snapshot> = read_reply(response?).await?;
        Ok(snapshot.settings.id.clone())
    }
}

/// The path of a session, given by its id, a prefix of that, or its name.
fn path_of(given: &str) -> Result<String, SessionError> {
    // With an empty segment, this would be the path of the list of all sessions.
    if given.is_empty() {
        return Err(SessionError::UnknownSession { given: String::new() });
    }
    Ok(format!("/v1/sessions/{}", escape_segment(given)))
}

/// Sends a text in pieces, until the receiver is gone.
async fn send(
    text: &mut (dyn BufRead + Send),
    pieces: mpsc::Sender<io::Result<Bytes>>,
) -> io::Result<()> {
    loop {
        let piece = match text.fill_buf() {
            Ok([]) => return Ok(()),
            Ok(piece) => Bytes::copy_from_slice(piece),
            Err(error) => {
                // Marks the text as incomplete.
                let broken = io::Error::from(error.kind());
                let _ = pieces.send(Err(broken)).await;
                return Err(error);
            }
        };
        text.consume(piece.len());
        if pieces.send(Ok(piece)).await.is_err() {
            // The daemon has found a fault, which is in its reply.
            return Ok(());
        }
    }
}
