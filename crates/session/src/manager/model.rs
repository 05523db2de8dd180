//! Another model for a session: found by its name, given to the session's actor, and to those that come after it.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::{SessionId, Supplies, Who};

use super::catalogs::CatalogFor;
use super::{Manager, Reach, stopped};
use crate::actor;
use crate::error::SessionError;
use crate::model::Model;
use crate::outfit::Outfit;

/// Gives a session another model, from its next turn on.
#[derive(Message)]
#[rtype(result = "Result<(), SessionError>")]
pub(crate) struct ChangeModel {
    pub(crate) id: SessionId,
    /// As `PROVIDER/NAME`, or `PROVIDER`.
    pub(crate) model: String,
    /// Where it is found.
    pub(crate) supplies: Arc<Supplies>,
    /// What the session has if it has to be opened for it; nothing: then it is not.
    pub(crate) opens: Option<Arc<Supplies>>,
    pub(crate) by: Who,
}

impl Handler<ChangeModel> for Manager {
    type Result = ResponseFuture<Result<(), SessionError>>;

    fn handle(&mut self, change: ChangeModel, ctx: &mut Self::Context) -> Self::Result {
        let ChangeModel { id, model, supplies, opens, by } = change;
        let manager = ctx.address();
        Box::pin(async move {
            let catalog = manager.send(CatalogFor(supplies.models.clone())).await.map_err(stopped)?;
            let model = catalog.get(&model)?;
            ask_actor(&manager, &id, &model, opens.as_ref(), &by).await?;
            manager.send(Settle { id, model }).await.map_err(stopped)
        })
    }
}

/// Has the session's actor take the model. One that was unloaded meanwhile is asked again: twice is as good as once.
async fn ask_actor(
    manager: &Addr<Manager>,
    id: &SessionId,
    model: &Arc<dyn Model>,
    opens: Option<&Arc<Supplies>>,
    by: &Who,
) -> Result<(), SessionError> {
    let mut seen = 0;
    for _ in 0..2 {
        let live = manager.send(Reach { id: id.clone(), seen, supplies: opens.cloned() });
        let live = live.await.map_err(stopped)??;
        let change = actor::ChangeModel { model: Arc::clone(model), by: by.clone() };
        if let Ok(changed) = live.actor.actor.send(change).await {
            return Ok(changed?);
        }
        seen = live.actor.number;
    }
    Err(SessionError::Gone { session: id.clone() })
}

/// A session was given a model: unless another one came after it, the actors to come have it, too.
#[derive(Message)]
#[rtype(result = "()")]
struct Settle {
    id: SessionId,
    model: Arc<dyn Model>,
}

impl Handler<Settle> for Manager {
    type Result = ();

    fn handle(&mut self, Settle { id, model }: Settle, _: &mut Self::Context) {
        let Some(entry) = self.sessions.get_mut(&id) else { return };
        let is_its = entry.shown.borrow().settings.model == model.name();
        if let Some(outfit) = entry.outfit.take_if(|_| is_its) {
            entry.outfit = Some(Arc::new(Outfit { model, ..(*outfit).clone() }));
        }
    }
}
