//! Changing a session's model: found by name, given to the session's actor and to later ones.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::api::ChangeModelRequest;
use holdpoint_common::{SessionId, Supplies, Who};

use super::catalogs::CatalogFor;
use super::{Manager, OnSession, Reach, stopped_error};
use crate::actor;
use crate::error::SessionError;
use crate::model::Model;
use crate::session_env::SessionEnv;
use crate::state::ByClient;

impl Handler<OnSession<ChangeModelRequest>> for Manager {
    type Result = ResponseFuture<Result<(), SessionError>>;

    fn handle(&mut self, change: OnSession<ChangeModelRequest>, ctx: &mut Self::Context) -> Self::Result {
        let OnSession { id, request: ByClient { verb, by }, supplies_to_open } = change;
        let manager = ctx.address();
        Box::pin(async move {
            let catalog = manager.send(CatalogFor(verb.supplies)).await.map_err(stopped_error)?;
            let model = catalog.get(&verb.model)?;
            ask_actor(&manager, &id, &model, supplies_to_open.as_ref(), &by).await?;
            manager.send(KeepModel { id, model }).await.map_err(stopped_error)
        })
    }
}

/// Gives the model to the session's actor. If that was unloaded in the meantime, it is asked again,
/// which does no harm.
async fn ask_actor(
    manager: &Addr<Manager>,
    id: &SessionId,
    model: &Arc<dyn Model>,
    supplies_to_open: Option<&Arc<Supplies>>,
    by: &Who,
) -> Result<(), SessionError> {
    let mut seen = 0;
    for _ in 0..2 {
        let live = manager.send(Reach { id: id.clone(), seen, supplies: supplies_to_open.cloned() });
        let live = live.await.map_err(stopped_error)??;
        let change = actor::UseModel { model: Arc::clone(model), by: by.clone() };
        if let Ok(changed) = live.actor.actor.send(change).await {
            return Ok(changed?);
        }
        seen = live.actor.number;
    }
    Err(SessionError::Gone { session: id.clone() })
}

/// Keeps a session's new model for later actors, unless another change has followed.
#[derive(Message)]
#[rtype(result = "()")]
struct KeepModel {
    id: SessionId,
    model: Arc<dyn Model>,
}

impl Handler<KeepModel> for Manager {
    type Result = ();

    fn handle(&mut self, KeepModel { id, model }: KeepModel, _: &mut Self::Context) {
        let Some(entry) = self.sessions.get_mut(&id) else { return };
        let is_its = entry.shown.borrow().settings.model == model.name();
        if let Some(env) = entry.env.take_if(|_| is_its) {
            entry.env = Some(Arc::new(SessionEnv { model, ..(*env).clone() }));
        }
    }
}
