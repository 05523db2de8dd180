//! One running browser: started on a thread of its own, used by any number of calls, ended with all its processes.

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

pub(super) use launch::LAUNCH_WITHIN;
pub(super) use program::find_program;

use super::cdp::Client;
use super::error::WebError;
use super::guard::Guard;
use super::running::Roll;
use crate::ask::Subject;
use crate::background::Background;
use crate::process::Processes;

/// What a browser is started with.
pub(super) struct Plan {
    /// The program.
    pub(super) program: PathBuf,
    /// It has a window.
    pub(super) visible: bool,
    /// Its own sandbox is on.
    pub(super) sandbox: bool,
    /// Its environment: this and nothing else.
    pub(super) env: Vec<(String, String)>,
    /// Where it reaches the network.
    pub(super) guard: Guard,
    /// Where folders of browsers are.
    pub(super) folders: PathBuf,
    /// After how long without use it is ended.
    pub(super) idle: Duration,
    /// Its processes: none has been started.
    pub(super) processes: Processes,
    /// Held until nothing of it is left.
    pub(super) keep: Background,
    /// Where it is listed while it runs.
    pub(super) roll: Roll,
}

/// A browser that has been started.
#[derive(Debug)]
pub(super) struct Browser {
    visible: bool,
    processes: Processes,
    /// It is of no use any more.
    ended: CancellationToken,
    /// What is asked before there is a page is about it.
    subject: Subject,
    state: watch::Receiver<State>,
    uses: watch::Sender<usize>,
}

/// How far it is.
#[derive(Debug, Clone)]
enum State {
    Starting,
    Up(Arc<Up>),
    Failed(Arc<str>),
}

/// A browser that answers.
#[derive(Debug)]
pub(super) struct Up {
    /// The way to it.
    pub(super) chrome: Client,
    /// Where what nobody waits for is done.
    pub(super) runtime: Handle,
    /// Where it reaches the network.
    pub(super) guard: Arc<Guard>,
    /// Its debugging port on 127.0.0.1.
    pub(super) port: u16,
}

/// A browser in use. While there is one, it does not end for want of use; a browser that is still starting ends when
/// there is none.
#[derive(Debug)]
pub(super) struct Lease(Arc<Browser>);

impl Browser {
    /// Starts one, and returns at once.
    ///
    /// # Errors
    /// There are no threads.
    pub(super) fn start(plan: Plan) -> Result<Arc<Self>, WebError> {
        let (tell_state, state) = watch::channel(State::Starting);
        let (uses, used) = watch::channel(0);
        let ended = CancellationToken::new();
        let (kept, subject) = Subject::new();
        let (visible, processes) = (plan.visible, plan.processes.clone());
        let browser = Self { visible, processes, ended: ended.clone(), subject, state, uses };
        let life = launch::Life { plan, ended, kept, used, state: tell_state };
        let thread = thread::Builder::new().name("browser".to_owned()).spawn(move || life.run());
        thread.map_err(|error| WebError::failed(format!("no thread for the browser: {error}")))?;
        Ok(Arc::new(browser))
    }

    /// Whether it can still be used, and where a window is needed, has one.
    pub(super) fn serves(&self, visible: bool) -> bool {
        // One that did not start is known to before its end is.
        let failed = matches!(*self.state.borrow(), State::Failed(_));
        !failed && !self.ended.is_cancelled() && (self.visible || !visible)
    }

    /// Uses it.
    pub(super) fn lease(self: &Arc<Self>) -> Lease {
        self.uses.send_modify(|uses| *uses += 1);
        Lease(Arc::clone(self))
    }

    /// Begins to end it with all its processes. Returns at once.
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
    /// Cancelled once the browser is of no use any more.
    pub(super) fn ended(&self) -> &CancellationToken {
        &self.0.ended
    }

    /// What an ask is about that has no page yet.
    pub(super) fn subject(&self) -> &Subject {
        &self.0.subject
    }

    /// Waits until it answers.
    pub(super) async fn up(&self) -> Result<Arc<Up>, WebError> {
        let mut state = self.0.state.clone();
        let state = state.wait_for(|state| !matches!(state, State::Starting)).await;
        match state.map(|state| state.clone()) {
            Ok(State::Up(up)) => Ok(up),
            Ok(State::Failed(why)) => Err(WebError::failed(why.as_ref())),
            Ok(State::Starting) | Err(_) => Err(WebError::Ended),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut last = false;
        self.0.uses.send_modify(|uses| {
            *uses -= 1;
            last = *uses == 0;
        });
        if last && matches!(*self.0.state.borrow(), State::Starting) {
            self.0.end();
        }
    }
}
