//! The list of the browsers that run, for whoever shows it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_common::SessionId;

/// A browser that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningBrowser {
    /// Whose it is.
    pub session: SessionId,
    /// Its process.
    pub pid: u32,
    /// Where it is debugged: `127.0.0.1:PORT`.
    pub debugging: String,
    /// It has a window.
    pub visible: bool,
    /// Its own sandbox is on.
    pub sandbox: bool,
}

/// All browsers that run. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Running(Arc<Mutex<Vec<RunningBrowser>>>);

/// Where one session's browsers are listed.
#[derive(Debug, Clone)]
pub(super) struct Roll {
    running: Running,
    session: SessionId,
}

/// A browser that is listed, as long as this is there.
pub(super) struct Listed {
    running: Running,
    pid: u32,
}

impl Running {
    pub(super) fn roll(&self, session: SessionId) -> Roll {
        Roll { running: self.clone(), session }
    }

    pub(super) fn list(&self) -> Vec<RunningBrowser> {
        self.all().clone()
    }

    fn all(&self) -> MutexGuard<'_, Vec<RunningBrowser>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Roll {
    /// Lists a browser that answers at `ws://HOST:PORT/…`.
    pub(super) fn enter(&self, pid: u32, address: &str, visible: bool, sandbox: bool) -> Listed {
        let debugging = address.split('/').nth(2).unwrap_or(address).to_owned();
        let session = self.session.clone();
        self.running.all().push(RunningBrowser { session, pid, debugging, visible, sandbox });
        Listed { running: self.running.clone(), pid }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.running.all().retain(|browser| browser.pid != self.pid);
    }
}
