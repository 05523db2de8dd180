//! Stopping: every session's actor ends, with its turn, its processes and its last save, and then
//! the system stops.

use std::rc::Rc;

use actix::prelude::*;
use holdpoint_common::limits::{ABANDON_AFTER, SAVE_LATE, STOP_WITHIN};

use super::lifecycle::Input;
use super::registry::Registry;
use crate::state;

impl Registry {
    /// Ends every session's actor and stops the system. Work that can continue after a restart is
    /// left as it is.
    pub(super) fn shut_down(self: &Rc<Self>) {
        self.input(Input::Stop);
        let mut running = Vec::new();
        for record in self.lifecycle().records_mut() {
            if let Some(actor) = record.actor.take() {
                // Bypasses the mailbox's bound, but sends only one message to each actor.
                actor.address.do_send(state::Shutdown);
                running.push(actor.alive);
            }
        }
        // Enough time to end all work, leave behind tools that do not return, and save.
        let timeout = (self.engine.limits.grace() + 2 * ABANDON_AFTER + SAVE_LATE).min(STOP_WITHIN);
        actix_rt::spawn(async move {
            let all_ended = async {
                for mut alive in running {
                    while alive.recv().await.is_some() {}
                }
            };
            if tokio::time::timeout(timeout, all_ended).await.is_err() {
                tracing::warn!("some tools did not return and were abandoned");
            }
            System::current().stop();
        });
    }
}
