//! One browser process and its thread: start, leases, and the end of all its processes.

mod drive;
mod launch;
mod program;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(super) use launch::LAUNCH_LIMIT;
pub(super) use program::find_program;

use super::cdp::Client;
use super::error::WebError;
use super::guard::Guard;
use super::profile::Profile;
use super::running::SessionLister;
use crate::ask::Subject;
use crate::background::BackgroundJobs;
use crate::process::Processes;

/// The settings and resources that a browser starts with.
pub(super) struct LaunchPlan {
    pub(super) program: PathBuf,
    pub(super) visible: bool,
    /// Whether Chromium's own sandbox is on.
    pub(super) sandbox: bool,
    /// The complete environment; the browser inherits no other variable.
    pub(super) env: Vec<(String, String)>,
    pub(super) guard: Guard,
    pub(super) profile: Profile,
    /// The time without a lease after which the browser ends.
    pub(super) idle: Duration,
    /// The browser's processes. Empty until it starts.
    pub(super) processes: Processes,
    /// Keeps the session from ending until the browser's last process has ended, as every clone of
    /// the jobs does.
    pub(super) session_guard: BackgroundJobs,
    /// The list that shows the browser while it runs.
    pub(super) lister: SessionLister,
}

/// A browser that was started and may still be starting.
#[derive(Debug)]
pub(super) struct Browser {
    visible: bool,
    processes: Processes,
    /// Cancelled when the browser can no longer be used.
    ended: CancellationToken,
    /// The subject of asks that are raised before a tab exists.
    subject: Subject,
    state: watch::Receiver<State>,
    lease_count: watch::Sender<usize>,
}

#[derive(Debug, Clone)]
enum State {
    Starting,
    Connected(Arc<BrowserConnection>),
    Failed(Arc<str>),
}

/// The connection to a browser that is up.
#[derive(Debug)]
pub(super) struct BrowserConnection {
    pub(super) chrome: Client,
    /// The browser's own runtime, for commands that no caller waits for.
    pub(super) runtime: Handle,
    pub(super) guard: Arc<Guard>,
    /// The DevTools port on 127.0.0.1.
    pub(super) port: u16,
}

/// The right to use a browser. A browser without leases ends at once if it is still starting, and
/// after [`LaunchPlan::idle`] otherwise.
#[derive(Debug)]
pub(super) struct Lease(Arc<Browser>);

impl Browser {
    /// Starts a browser on a new thread, without waiting for it. Returns it with its first lease.
    ///
    /// # Errors
    /// The thread can't be spawned.
    pub(super) fn start(plan: LaunchPlan) -> Result<(Arc<Self>, Lease), WebError> {
        let (state_sender, state) = watch::channel(State::Starting);
        let (lease_count, lease_count_receiver) = watch::channel(1);
        let ended = CancellationToken::new();
        let (subject_guard, subject) = Subject::new();
        let browser = Self {
            visible: plan.visible,
            processes: plan.processes.clone(),
            ended: ended.clone(),
            subject,
            state,
            lease_count,
        };
        let browser_thread = launch::BrowserThread {
            plan,
            ended,
            subject_guard,
            lease_count: lease_count_receiver,
            state: state_sender,
        };
        let thread =
            thread::Builder::new().name("browser".to_owned()).spawn(move || browser_thread.run());
        thread.map_err(|error| {
            WebError::failed(format!("can't start a thread for the browser: {error}"))
        })?;
        let browser = Arc::new(browser);
        let lease = Lease(Arc::clone(&browser));
        Ok((browser, lease))
    }

    /// A lease, if the browser can still be used and, if `visible`, has a window.
    pub(super) fn lease(self: &Arc<Self>, visible: bool) -> Option<Lease> {
        // A failed start sets `State::Failed` before it cancels `ended`.
        let failed = matches!(*self.state.borrow(), State::Failed(_));
        if failed || (visible && !self.visible) {
            return None;
        }
        // An unused browser cancels `ended` under the lock of the count, so it can't end between
        // this check and the new count.
        let leased = self.lease_count.send_if_modified(|leases| {
            let usable = !self.ended.is_cancelled();
            *leases += usize::from(usable);
            usable
        });
        leased.then(|| Lease(Arc::clone(self)))
    }

    /// Starts to end the browser and all its processes, without waiting for them.
    pub(super) fn end(&self) {
        self.ended.cancel();
        self.processes.end();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.end();
    }
}

impl Lease {
    /// Cancelled when the browser can no longer be used.
    pub(super) fn ended(&self) -> &CancellationToken {
        &self.0.ended
    }

    /// The subject of asks that are raised before a tab exists.
    pub(super) fn subject(&self) -> &Subject {
        &self.0.subject
    }

    /// Waits until the browser is up or has failed to start.
    pub(super) async fn connection(&self) -> Result<Arc<BrowserConnection>, WebError> {
        let mut state = self.0.state.clone();
        let state = state.wait_for(|state| !matches!(state, State::Starting)).await;
        match state.map(|state| state.clone()) {
            Ok(State::Connected(connection)) => Ok(connection),
            Ok(State::Failed(why)) => Err(WebError::failed(why.as_ref())),
            Ok(State::Starting) | Err(_) => Err(WebError::Ended),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut ends = false;
        self.0.lease_count.send_modify(|leases| {
            *leases -= 1;
            ends = *leases == 0 && matches!(*self.0.state.borrow(), State::Starting);
            if ends {
                self.0.ended.cancel();
            }
        });
        if ends {
            self.0.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Supervisor;

    fn starting() -> (Arc<Browser>, Lease, watch::Sender<State>) {
        let (state_sender, state) = watch::channel(State::Starting);
        let browser = Arc::new(Browser {
            visible: false,
            processes: Processes::new(Supervisor::None, Duration::ZERO),
            ended: CancellationToken::new(),
            subject: Subject::new().1,
            state,
            lease_count: watch::channel(1).0,
        });
        let lease = Lease(Arc::clone(&browser));
        (browser, lease, state_sender)
    }

    /// No call may lease a browser that will end for lack of leases.
    #[test]
    fn m_e7_web_a_starting_browser_ends_together_with_its_last_lease() {
        for round in 0..1_000 {
            let (browser, lease, _state) = starting();
            let count = browser.lease_count.subscribe();
            let ended = browser.ended.clone();
            let watching = thread::spawn(move || {
                while *count.borrow() > 0 {
                    std::hint::spin_loop();
                }
                ended.is_cancelled()
            });
            drop(lease);
            assert!(watching.join().unwrap(), "round {round}");
            assert!(browser.lease(false).is_none());
        }
    }
}
