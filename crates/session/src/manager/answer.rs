//! Answers to saved sessions, which get an actor only if they would accept the answer.

use std::rc::Rc;
use std::time::SystemTime;

use holdpoint_common::api::{AnswerRequest, Answered};
use holdpoint_common::{SessionError, SessionId};

use super::lifecycle::IfSaved;
use super::owned::Owned;
use super::registry::{Reached, Registry};
use crate::saved::{self, Folded};
use crate::state::{AnswerAway, ByClient, Moment, decide};
use crate::store::Home;

impl Registry {
    /// Checks whether a saved session would accept this answer. If it is at home on another machine, it
    /// can't be opened here: the answer is saved, and takes effect when it is opened there. `None` if an
    /// actor has to answer.
    pub(super) async fn answer_saved(
        self: &Rc<Self>,
        id: &SessionId,
        request: &ByClient<AnswerRequest>,
    ) -> Result<Option<Answered>, SessionError> {
        if self.lifecycle().is_live(id) {
            return Ok(None);
        }
        self.mended().await;
        let engine = &self.engine;
        let log = engine.store.open(id).await?;
        let Folded { state, .. } = saved::fold(id, &*log).await?;
        let fixed_bytes = engine.fixed_bytes(state.settings(), &engine.system);
        let (now, limits) = (SystemTime::now().into(), &engine.limits);
        decide(&state, Moment { now, next: state.last() + 1, limits, fixed_bytes }, request)?;
        let saved = log.saved().await?;
        if !saved.is_some_and(|saved| matches!(saved.home, Home::Elsewhere(_))) {
            return Ok(None);
        }
        match self.access(id, 0, IfSaved::Change).await? {
            Reached::Saved(owned) => owned.answer_away(request).await,
            Reached::Live(_) => Ok(None),
        }
    }
}

impl Owned {
    /// Records an answer, unless this machine is the session's home. Work that a crash has cut ends
    /// before.
    async fn answer_away(
        self,
        request: &ByClient<AnswerRequest>,
    ) -> Result<Option<Answered>, SessionError> {
        let mut session = self.load().await?;
        let Home::Elsewhere(home) = session.home() else { return Ok(None) };
        session.end_cut_work()?;
        session.handle_input(AnswerAway(&self.as_recorded(request, &session)))?;
        self.save(session).await?;
        Ok(Some(Answered { ask: request.verb.ask.clone(), saved: true, home: Some(home) }))
    }
}
