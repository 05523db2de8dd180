//! The Confirm before a browser reaches a private host, once per host and session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use super::guard::Ask;
use crate::shown;

/// The locks for a session's asks about private hosts. Only one ask about a host is open at a time:
/// other calls wait for its answer instead of asking again.
#[derive(Debug, Default)]
pub(super) struct AskLocks(Mutex<HashMap<String, Weak<AsyncMutex<()>>>>);

impl AskLocks {
    /// Waits until no other call asks about this host.
    pub(super) async fn lock_host(&self, host: &str) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            locks.retain(|_, lock| lock.strong_count() > 0);
            let lock = locks.get(host).and_then(Weak::upgrade).unwrap_or_default();
            locks.insert(host.to_owned(), Arc::downgrade(&lock));
            lock
        };
        lock.lock_owned().await
    }
}

/// The message of an ask that is about the host alone.
pub(super) fn question(ask: &Ask) -> String {
    format!("Let the browser reach {}?", shown::line(&ask.host))
}

/// The consequence of an approval, by which [`is_approved`](crate::ToolContext::is_approved)
/// recognizes it. The text has two lines, and input such as a URL is shown on one line, so no input
/// can imitate it.
pub(super) fn consequence(ask: &Ask) -> String {
    let addresses: Vec<_> = ask.addresses.iter().map(ToString::to_string).collect();
    format!(
        "{} is on this machine or in a private network: {}\nIf you approve, pages in this session's browser can reach \
         it on any port until the session ends.",
        shown::line(&ask.host),
        addresses.join(", ")
    )
}
