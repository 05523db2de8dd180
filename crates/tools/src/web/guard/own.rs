//! Ports of this machine that belong to the browsers of this program, and are no page's.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Ports of this machine that pages of no browser reach: what the browsers of a program are debugged and guarded at.
/// Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct OwnPorts(Arc<Mutex<Vec<u16>>>);

/// A port that is out of reach as long as this is there.
#[derive(Debug)]
pub(super) struct Kept {
    of: OwnPorts,
    port: u16,
}

impl OwnPorts {
    pub(super) fn keep(&self, port: u16) -> Kept {
        self.ports().push(port);
        Kept { of: self.clone(), port }
    }

    pub(super) fn contains(&self, port: u16) -> bool {
        self.ports().contains(&port)
    }

    fn ports(&self) -> MutexGuard<'_, Vec<u16>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // Once: who has the port next may have entered it already.
        let mut ports = self.of.ports();
        if let Some(at) = ports.iter().position(|port| *port == self.port) {
            ports.swap_remove(at);
        }
    }
}
