//! The list of the browsers that are running, for display.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_common::SessionId;

/// A browser that is running, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningBrowser {
    /// The session that uses the browser.
    pub session: SessionId,
    /// The id of the browser's process.
    pub pid: u32,
    /// The address of its DevTools, as `127.0.0.1:PORT`.
    pub debugging: String,
    /// Whether the browser has a window.
    pub visible: bool,
    /// Whether Chromium's own sandbox is on.
    pub sandbox: bool,
}

/// All running browsers. Clones share one list.
#[derive(Debug, Clone, Default)]
pub(super) struct RunningBrowsers(Arc<Mutex<Vec<RunningBrowser>>>);

/// Adds the browsers of one session to the list of running browsers.
#[derive(Debug, Clone)]
pub(super) struct SessionLister {
    running: RunningBrowsers,
    session: SessionId,
}

/// Keeps a browser listed until dropped.
pub(super) struct Listed {
    running: RunningBrowsers,
    pid: u32,
}

impl RunningBrowsers {
    pub(super) fn for_session(&self, session: SessionId) -> SessionLister {
        SessionLister { running: self.clone(), session }
    }

    pub(super) fn list(&self) -> Vec<RunningBrowser> {
        self.all().clone()
    }

    fn all(&self) -> MutexGuard<'_, Vec<RunningBrowser>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionLister {
    /// Lists a browser with the DevTools address `ws://HOST:PORT/…`.
    pub(super) fn add(&self, pid: u32, address: &str, visible: bool, sandbox: bool) -> Listed {
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
