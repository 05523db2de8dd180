//! Measuring the load of the engine.

use actix::prelude::*;

use super::{Life, Manager};
use crate::load::Load;

/// Gets the present load.
#[derive(Message)]
#[rtype(result = "Load")]
pub(crate) struct GetLoad;

impl Handler<GetLoad> for Manager {
    type Result = MessageResult<GetLoad>;

    fn handle(&mut self, _: GetLoad, _: &mut Self::Context) -> Self::Result {
        let mut load = Load::none(self.engine.limits.max_sessions);
        for entry in self.sessions.values() {
            let shown = entry.shown.borrow();
            if !matches!(entry.life, Life::Saved) {
                load.add(&shown);
            }
            // A session that ended with unsaved facts still has an entry.
            load.saved &= shown.saved;
        }
        MessageResult(load)
    }
}
