//! A server as the session sees it: its state, and the handle by which calls reach it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdpoint_common::{EndedProcesses, McpServer};
use rmcp::RoleClient;
use rmcp::service::Peer;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::calls::Calls;
use super::driver::Driver;
use super::launch::{Launch, ServerTask};
use super::listing::Listing;
use super::login::ServerLogin;
use crate::process::Processes;

/// How often a server is started for one call, if it ends each time.
const MAX_STARTS: u32 = 3;

/// The state of a server.
#[derive(Debug, Clone)]
pub(super) enum State {
    /// The server is starting.
    Starting,
    /// The server can be called.
    Ready(Arc<Connection>),
    /// The server has ended, for this reason. It is started again when it is next needed.
    Stopped(Arc<str>),
    /// The server did not start, or has ended too often, for this reason. A program is not started
    /// again; an address is tried again later.
    Failed(Arc<str>),
}

/// The connection to a server, with the tools that it has.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) listing: Listing,
}

/// A server of a session, with a task of its own. The task ends when [`close`](Self::close) is
/// called.
pub(super) struct Server {
    pub(super) name: String,
    /// How long a call may take without progress.
    pub(super) timeout: Duration,
    /// How long a call may take, without the time that it waits for the user.
    pub(super) hard_limit: Duration,
    pub(super) grace: Duration,
    /// Whether the server is reached over HTTP. It has no program that can be ended.
    pub(super) is_remote: bool,
    /// The values of the server's variables and headers, which errors must not show.
    pub(super) values: Vec<String>,
    /// The calls that run on the server.
    pub(super) calls: Calls,
    state: watch::Receiver<State>,
    control: Arc<Control>,
    login: ServerLogin,
}

/// The state that the task of a server shares with its handle.
#[derive(Default)]
pub(super) struct Control {
    /// Cancelled when the session ends.
    pub(super) close: CancellationToken,
    /// Notified when a stopped server is needed, or a failed one can be tried again.
    pub(super) needed: Notify,
    /// The processes of the running program.
    running: Mutex<Option<Processes>>,
    /// Whether a call has ended the program.
    was_ended: AtomicBool,
}

impl Control {
    /// Whether a call has ended the program since this was last asked.
    pub(super) fn take_was_ended(&self) -> bool {
        self.was_ended.swap(false, Ordering::Relaxed)
    }

    pub(super) fn set_running(&self, processes: Processes) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(processes);
    }

    /// Ends the processes of the program, and waits for their end.
    pub(super) fn finish(&self) -> EndedProcesses {
        // The lock is released before the wait.
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).clone();
        running.map(|processes| processes.finish()).unwrap_or_default()
    }
}

impl Server {
    /// Begins to start a server, without waiting for it.
    pub(super) fn start(launch: Launch, hard_limit: Duration, driver: &Driver) -> Arc<Self> {
        let (state_sender, state) = watch::channel(State::Starting);
        let control = Arc::new(Control::default());
        let calls = Calls::default();
        let McpServer { timeout_s, ref url, .. } = launch.settings;
        let server = Self {
            name: launch.name.clone(),
            timeout: Duration::from_secs(timeout_s.into()),
            hard_limit,
            grace: launch.session.processes.grace(),
            is_remote: url.is_some(),
            values: launch.values(),
            calls: calls.clone(),
            state,
            control: Arc::clone(&control),
            login: launch.login.clone(),
        };
        let launch = Arc::new(launch);
        driver.spawn(ServerTask { launch, control, calls, state: state_sender }.run());
        Arc::new(server)
    }

    /// The current state.
    pub(super) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Waits until the server is ready or has failed, and starts it again if it has stopped, or has
    /// required a login that there is now.
    ///
    /// # Errors
    /// The reason why it can't be called.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, Arc<str>> {
        let mut state = self.state.clone();
        if self.has_new_login() {
            self.control.needed.notify_one();
            // Without its task, the server has ended.
            let _ = state.wait_for(|state| !matches!(state, State::Failed(_))).await;
        }
        let mut starts = 0;
        loop {
            let found = state.wait_for(|state| !matches!(state, State::Starting)).await;
            match found.map(|state| state.clone()) {
                Ok(State::Ready(connection)) => return Ok(connection),
                Ok(State::Failed(why)) => return Err(why),
                // It can also have started and ended again before this was noticed.
                Ok(State::Stopped(_)) if starts < MAX_STARTS => {
                    starts += 1;
                    self.control.needed.notify_one();
                    let _ = state.wait_for(|state| !matches!(state, State::Stopped(_))).await;
                }
                Ok(State::Stopped(why)) => return Err(why),
                Ok(State::Starting) | Err(_) => return Err("it has ended".into()),
            }
        }
    }

    /// Whether the server has failed because it required a login, and there is a new one.
    pub(super) fn has_new_login(&self) -> bool {
        matches!(self.state(), State::Failed(_)) && self.login.has_changed()
    }

    /// Waits until the server is no longer ready, and returns the reason.
    pub(super) async fn ended(&self) -> Arc<str> {
        let mut state = self.state.clone();
        let ended = state.wait_for(|state| !matches!(state, State::Ready(_))).await;
        match ended.map(|state| state.clone()) {
            Ok(State::Stopped(why) | State::Failed(why)) => why,
            Ok(State::Starting | State::Ready(_)) | Err(_) => "it has ended".into(),
        }
    }

    /// Waits until no call gets this connection any more, because its program has ended.
    pub(super) async fn gone(&self, connection: &Connection) {
        let mut state = self.state.clone();
        let is_current = |state: &State| matches!(state, State::Ready(ready) if std::ptr::eq(&**ready, connection));
        // Without its task, the server is gone, too.
        let _ = state.wait_for(|state| !is_current(state)).await;
    }

    /// Ends a program that can no longer be reached, as if it had ended by itself.
    pub(super) fn end_unreachable(&self) {
        let _ = self.control.finish();
    }

    /// Ends the program and waits for the end of its processes: at most the grace and one second
    /// more. It is started again when it is next needed, however often that happens.
    pub(super) fn end_program(&self) -> EndedProcesses {
        self.control.was_ended.store(true, Ordering::Relaxed);
        self.control.finish()
    }

    /// Begins to end the server, because its session ends. Returns at once.
    pub(super) fn close(&self) {
        self.control.close.cancel();
    }
}
