//! Changing a session's model: the new one is found by name, and given to the session's actor and
//! to later actors.

use std::rc::Rc;
use std::sync::Arc;

use holdpoint_common::api::ChangeModelRequest;
use holdpoint_common::{SessionError, SessionId, Supplies, Who};

use super::registry::Registry;
use crate::actor;
use crate::model::Model;
use crate::session_env::SessionEnv;
use crate::state::ByClient;

impl Registry {
    /// Changes the session's model. With supplies, a saved session is opened first.
    pub(super) async fn change_model(
        self: &Rc<Self>,
        id: &SessionId,
        request: ByClient<ChangeModelRequest>,
        supplies_to_open: Option<&Supplies>,
    ) -> Result<(), SessionError> {
        let ByClient { verb, by } = request;
        let model = self.catalog_for(verb.supplies).get(&verb.model)?;
        self.use_model(id, &model, supplies_to_open, &by).await?;
        // The next actor after a failure gets the same model, unless another change has followed.
        self.edit_record(id, |record| {
            let is_current = record.shown.borrow().settings.model == model.name();
            if let Some(env) = record.env.take_if(|_| is_current) {
                record.env = Some(Arc::new(SessionEnv { model, ..(*env).clone() }));
            }
        });
        Ok(())
    }

    /// Gives the model to the session's actor. If the actor has ended in the meantime, tries once
    /// more with the next one; a repeated change does no harm.
    async fn use_model(
        self: &Rc<Self>,
        id: &SessionId,
        model: &Arc<dyn Model>,
        supplies_to_open: Option<&Supplies>,
        by: &Who,
    ) -> Result<(), SessionError> {
        let mut seen = 0;
        for _ in 0..2 {
            let live = self.reach(id, seen, supplies_to_open).await?;
            if let Some(agent) = &live.shown.borrow().settings.agent {
                let message = format!(
                    "the session hosts the agent `{}`, which chooses its model itself",
                    agent.name
                );
                return Err(SessionError::Model { message });
            }
            let change = actor::UseModel { model: Arc::clone(model), by: by.clone() };
            if let Ok(changed) = live.actor.address.send(change).await {
                return Ok(changed?);
            }
            seen = live.actor.number;
        }
        Err(SessionError::Gone { session: id.clone() })
    }
}
