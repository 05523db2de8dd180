//! Stopping: every session's actor ends, with its turn, its processes and its last save, and then
//! the system stops.

use actix::prelude::*;
use holdpoint_common::limits::{ABANDON_AFTER, SAVE_LATE, STOP_WITHIN};

use super::{Life, Manager};
use crate::state;

/// Ends every session's actor and stops the system. Work that can continue after a restart is left
/// as it is.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Shutdown;

impl Handler<Shutdown> for Manager {
    type Result = ();

    fn handle(&mut self, _: Shutdown, _: &mut Self::Context) {
        self.stopping = true;
        let mut running = Vec::new();
        for entry in self.sessions.values_mut() {
            if let Life::Live { actor, alive } = std::mem::replace(&mut entry.life, Life::Saved) {
                // Bounded: one for each actor.
                actor.do_send(state::Shutdown);
                running.push(alive);
            }
        }
        // Enough time to end all work, leave behind tools that do not return, and save.
        let patience = (self.engine.limits.grace() + 2 * ABANDON_AFTER + SAVE_LATE).min(STOP_WITHIN);
        actix_rt::spawn(async move {
            let down = async {
                for mut alive in running {
                    while alive.recv().await.is_some() {}
                }
            };
            if tokio::time::timeout(patience, down).await.is_err() {
                tracing::warn!("some tools did not return and were abandoned");
            }
            System::current().stop();
        });
    }
}
