//! A session without an actor, whose log one caller has for itself: to change it, to delete it, or
//! to start an actor.

use std::rc::Rc;
use std::sync::Arc;

use holdpoint_common::api::{CloseRequest, RenameRequest};
use holdpoint_common::{EndedProcesses, Outcome, Refused, SessionError, SessionId, Who};
use tokio::sync::oneshot;

use super::lifecycle::Input;
use super::registry::Registry;
use crate::saved::OfflineSession;
use crate::state::{ByClient, Phase, Report, RunnerReport};
use crate::store::Home;

/// A session without an actor, for one caller. Dropping it lets the next caller have the session.
pub(super) struct Owned {
    pub(super) registry: Rc<Registry>,
    pub(super) id: SessionId,
    /// Why an actor could not be started.
    pub(super) failed: Option<SessionError>,
    /// Whether the session has an actor now, to which the log belongs.
    pub(super) started: bool,
}

impl Owned {
    pub(super) fn new(registry: Rc<Registry>, id: SessionId) -> Self {
        Self { registry, id, failed: None, started: false }
    }

    /// Takes a place for an actor, after making room if necessary.
    pub(super) async fn take_place(&self) -> Result<(), SessionError> {
        let (caller, granted) = oneshot::channel();
        self.registry.input(Input::NeedPlace { id: self.id.clone(), caller });
        granted.await.unwrap_or(Err(SessionError::Stopped))
    }

    /// Closes the session: its queued prompts are handed back, and its asks are closed.
    pub(super) async fn close(self, request: &ByClient<CloseRequest>) -> Result<(), SessionError> {
        let mut session = self.load().await?;
        session.handle_input(&self.as_recorded(request, &session))?;
        if let Phase::Interrupting(turn, _) = session.state().phase() {
            // There is no runner to wait for.
            let turn = turn.id;
            let report = Report::Finished {
                outcome: Outcome::Interrupted,
                error: None,
                tools: Vec::new(),
                processes: EndedProcesses::default(),
            };
            session.handle_input(RunnerReport { turn, report })?;
        }
        self.save(session).await
    }

    pub(super) async fn rename(
        self,
        request: &ByClient<RenameRequest>,
    ) -> Result<(), SessionError> {
        let mut session = self.load().await?;
        session.handle_input(&self.as_recorded(request, &session))?;
        self.save(session).await
    }

    /// A request as it is recorded. On a machine that is not the session's home, its client is named as
    /// clients of other machines are: the id of a process has a meaning only on its machine.
    pub(super) fn as_recorded<V: Clone>(
        &self,
        request: &ByClient<V>,
        session: &OfflineSession<'_>,
    ) -> ByClient<V> {
        let mut request = request.clone();
        if let (Home::Elsewhere(_), Some(machine)) =
            (session.home(), self.registry.engine.store.machine())
        {
            let name = format!("{}@{machine}", request.by.name);
            request.by = Who { name, pid: None };
        }
        request
    }

    pub(super) async fn delete(self) -> Result<(), SessionError> {
        if let Some(session) = self.registry.lifecycle().get_mut(&self.id) {
            session.record = None;
        }
        self.registry.engine.store.delete(&self.id).await?;
        self.registry.engine.sandboxes.remove(&self.id).await;
        self.registry.roster.borrow_mut().saved_changed();
        Ok(())
    }

    /// Notes whether a client closed the session.
    pub(super) fn set_closed(&self, closed: bool) {
        if let Some(session) = self.registry.lifecycle().get_mut(&self.id) {
            session.closed = closed;
        }
    }

    pub(super) async fn load(&self) -> Result<OfflineSession<'_>, SessionError> {
        let engine = &self.registry.engine;
        let lacks_end = self.registry.lifecycle().get(&self.id).is_some_and(|session| {
            let record = session.record.as_ref();
            session.closed
                && record.is_some_and(|record| engine.lacks_saves(&record.shown.borrow()))
        });
        // The end of the session is missing from its log.
        if lacks_end {
            return Err(SessionError::Refused(Refused::Closed));
        }
        OfflineSession::load(engine, &self.id).await
    }

    pub(super) async fn save(&self, session: OfflineSession<'_>) -> Result<(), SessionError> {
        let (state, _) = session.save().await?;
        self.set_closed(matches!(state.phase(), Phase::Closed));
        let snapshot = Arc::new(state.snapshot(state.last(), 0, self.registry.engine.not_saved()));
        self.registry.edit_record(&self.id, |record| record.shown.send_replace(snapshot));
        self.registry.roster.borrow_mut().saved_changed();
        Ok(())
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if !self.started {
            self.registry.release(&self.id, self.failed.take());
        }
    }
}
