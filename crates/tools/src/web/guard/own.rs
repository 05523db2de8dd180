//! The ports of the process's own browsers and guards, which pages must not reach.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The debugging and proxy ports of a process's browsers, which no page of any of them can reach.
/// Clones share one list.
#[derive(Debug, Clone, Default)]
pub struct OwnPorts(Arc<Mutex<Vec<u16>>>);

/// A port that is unreachable for pages until this is dropped.
#[derive(Debug)]
pub(super) struct ReservedPort {
    own_ports: OwnPorts,
    port: u16,
}

impl OwnPorts {
    pub(super) fn reserve(&self, port: u16) -> ReservedPort {
        self.ports().push(port);
        ReservedPort { own_ports: self.clone(), port }
    }

    pub(super) fn contains(&self, port: u16) -> bool {
        self.ports().contains(&port)
    }

    fn ports(&self) -> MutexGuard<'_, Vec<u16>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ReservedPort {
    fn drop(&mut self) {
        // Removes one entry only: the port's next owner may have added it again already.
        let mut ports = self.own_ports.ports();
        if let Some(at) = ports.iter().position(|port| *port == self.port) {
            ports.swap_remove(at);
        }
    }
}
