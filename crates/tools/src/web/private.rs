//! Private hosts: what a person is told before the browser reaches one, once for a host and a session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

use super::guard::Ask;
use crate::shown;

/// The questions of a session: one at a time about a host, so that a call that wants to go there as well waits for the
/// answer instead of asking, too.
#[derive(Debug, Default)]
pub(super) struct Questions(Mutex<HashMap<String, Weak<Turn<()>>>>);

impl Questions {
    /// Waits until nobody asks about this host.
    pub(super) async fn turn(&self, host: &str) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| turn.strong_count() > 0);
            let turn = turns.get(host).and_then(Weak::upgrade).unwrap_or_default();
            turns.insert(host.to_owned(), Arc::downgrade(&turn));
            turn
        };
        turn.lock_owned().await
    }
}

/// The question about it alone.
pub(super) fn question(ask: &Ask) -> String {
    format!("Let the browser reach {}?", shown::line(&ask.host))
}

/// What agreeing means. Of two lines, so that no line of anybody else's can say it.
pub(super) fn meaning(ask: &Ask) -> String {
    let addresses: Vec<_> = ask.addresses.iter().map(ToString::to_string).collect();
    format!(
        "{} is on this machine or in a private network: {}\nIf you agree, pages of this session's browser reach it, at any \
         port, until the session ends.",
        shown::line(&ask.host),
        addresses.join(", ")
    )
}
