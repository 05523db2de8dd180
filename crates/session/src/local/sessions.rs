//! All sessions of an engine in this process.

use std::io::{BufRead, Write};
use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::api::{InboxAsk, ListQuery, SessionList, TurnEnd};
use holdpoint_common::{
    Ask, OpenSession, SessionError, SessionId, SessionSummary, Snapshot, Supplies, TurnId, Who,
};

use super::verbs::Target;
use super::{ClientContext, LocalSession, LocalWatch, turn_end};
use crate::backend::{Backend, SessionVerb, WhenUnloaded};
use crate::manager::{
    DeleteSession, Find, GetEngineEnv, GetSnapshot, Imported, List, Manager, Open, Reach,
    SeenSnapshot,
};
use crate::session_env::EngineEnv;
use crate::transfer::{self, ExportError, ImportError};

/// All sessions of an engine in this process, for one client.
#[derive(Clone)]
pub(crate) struct LocalSessions(pub(super) ClientContext);

impl LocalSessions {
    pub(crate) fn new(manager: Addr<Manager>, who: Who) -> Self {
        Self(ClientContext { manager, who, supplies: Arc::default() })
    }

    async fn get_snapshot(&self, given: &str) -> Result<SeenSnapshot, SessionError> {
        self.0
            .manager
            .send(GetSnapshot { given: given.to_owned() })
            .await
            .map_err(|_| SessionError::Stopped)?
    }

    pub(super) async fn engine(&self) -> Result<Arc<EngineEnv>, SessionError> {
        self.0.manager.send(GetEngineEnv).await.map_err(|_| SessionError::Stopped)
    }
}

impl Backend for LocalSessions {
    type Session = LocalSession;
    type Watch = LocalWatch;

    fn for_client(self, who: Who) -> Self {
        Self(ClientContext { who, ..self.0 })
    }

    fn with_supplies(self, supplies: Supplies) -> Self {
        Self(ClientContext { supplies: Arc::new(supplies), ..self.0 })
    }

    async fn open(&self, open: OpenSession) -> Result<LocalSession, SessionError> {
        self.check_machine(open.machine.as_deref()).await?;
        let open = Open { open, supplies: Arc::clone(&self.0.supplies) };
        let live = self.0.manager.send(open).await.map_err(|_| SessionError::Stopped)??;
        Ok(LocalSession::new(self.0.clone(), WhenUnloaded::Open, live))
    }

    async fn get(&self, given: &str) -> Result<LocalSession, SessionError> {
        let find = Find { given: given.to_owned(), supplies: Arc::clone(&self.0.supplies) };
        let live = self.0.manager.send(find).await.map_err(|_| SessionError::Stopped)??;
        Ok(LocalSession::new(self.0.clone(), WhenUnloaded::Open, live))
    }

    async fn reach(&self, id: &SessionId) -> Result<LocalSession, SessionError> {
        let reach = Reach { id: id.clone(), seen: 0, supplies: None };
        let live = self.0.manager.send(reach).await.map_err(|_| SessionError::Stopped)??;
        Ok(LocalSession::new(self.0.clone(), WhenUnloaded::Fail, live))
    }

    async fn look(&self, given: &str) -> Result<Arc<Snapshot>, SessionError> {
        Ok(self.get_snapshot(given).await?.snapshot)
    }

    async fn delete(&self, given: &str) -> Result<(), SessionError> {
        self.0
            .manager
            .send(DeleteSession(given.to_owned()))
            .await
            .map_err(|_| SessionError::Stopped)?
    }

    async fn act<V: SessionVerb>(&self, id: &SessionId, verb: V) -> Result<V::Reply, SessionError> {
        Target::Live(self.clone(), id.clone()).carry_out(verb).await
    }

    async fn turn_end(
        &self,
        id: &SessionId,
        turn: TurnId,
    ) -> Result<Option<TurnEnd>, SessionError> {
        turn_end::wait(self, id, turn).await
    }

    async fn list(&self, query: ListQuery) -> Result<SessionList, SessionError> {
        self.0.manager.send(List(query)).await.map_err(|_| SessionError::Stopped)?
    }

    async fn inbox(&self) -> Result<Vec<InboxAsk>, SessionError> {
        let mut inbox = Vec::new();
        for session in self.list(ListQuery::default()).await?.sessions {
            let SessionSummary { id, name, workspace, machine, away, .. } = session;
            let Some(first) = session.waits_for else { continue };
            match self.asks(&id).await {
                Ok(asks) => inbox.extend(asks.into_iter().map(|asked| {
                    // Here, a session of another machine is only saved.
                    let live = asked.live || machine.is_some() && session.live;
                    InboxAsk { live, machine: machine.clone(), away, ..asked }
                })),
                // The session was deleted in the meantime.
                Err(SessionError::UnknownSession { .. }) => {}
                // A damaged session must not hide the asks of the others.
                Err(error @ SessionError::Damaged { .. }) => {
                    tracing::warn!(session = %id, %error, "damaged session; only its first ask is listed");
                    let (session, live) = (id, session.live);
                    let ask = first;
                    inbox.push(InboxAsk { session, name, workspace, live, machine, away, ask });
                }
                Err(error) => return Err(error),
            }
        }
        inbox.sort_by(|left, right| {
            (left.ask.since, &left.ask.id).cmp(&(right.ask.since, &right.ask.id))
        });
        Ok(inbox)
    }

    async fn asks(&self, id: &SessionId) -> Result<Vec<InboxAsk>, SessionError> {
        let SeenSnapshot { snapshot, live } = self.get_snapshot(id.as_str()).await?;
        let settings = &snapshot.settings;
        // No session has this id, but another one has it as its name.
        if settings.id != *id {
            return Err(SessionError::UnknownSession { given: id.to_string() });
        }
        let (name, workspace) = (&settings.name, &settings.workspace);
        let ask = |ask: &Ask| InboxAsk {
            session: id.clone(),
            name: name.clone(),
            workspace: workspace.clone(),
            live,
            machine: None,
            away: None,
            ask: ask.clone(),
        };
        Ok(snapshot.asks.iter().map(ask).collect())
    }

    async fn watch(&self) -> Result<LocalWatch, SessionError> {
        LocalWatch::open(self.0.manager.clone()).await
    }

    async fn export(&self, given: &str, out: &mut (dyn Write + Send)) -> Result<(), ExportError> {
        let id = self.look(given).await?.settings.id.clone();
        transfer::export(&*self.engine().await?.store, &id, out).await
    }

    async fn import(&self, text: &mut (dyn BufRead + Send)) -> Result<SessionId, ImportError> {
        let engine = self.engine().await?;
        let id = transfer::import(&*engine.store, &engine.limits, text).await?;
        // Notifies the watchers.
        self.0.manager.send(Imported).await.map_err(|_| SessionError::Stopped)?;
        Ok(id)
    }
}
