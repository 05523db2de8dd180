//! What the engine has to do, counted.

use actix::prelude::*;

use super::{Life, Manager};
use crate::load::Load;

/// What there is to do now.
#[derive(Message)]
#[rtype(result = "Load")]
pub(crate) struct GetLoad;

impl Handler<GetLoad> for Manager {
    type Result = MessageResult<GetLoad>;

    fn handle(&mut self, _: GetLoad, _: &mut Self::Context) -> Self::Result {
        let mut load = Load::none(self.base.limits.max_sessions);
        for entry in self.sessions.values() {
            let shown = entry.shown.borrow();
            if !matches!(entry.life, Life::Saved) {
                load.add(&shown);
            }
            // One that has ended unsaved is still known.
            load.saved &= shown.saved;
        }
        MessageResult(load)
    }
}
