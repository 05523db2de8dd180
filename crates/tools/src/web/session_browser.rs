//! The browser of one session, started on first use and replaced once a call needs a window.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdpoint_common::{SessionId, WebSettings};

use super::browser::{Browser, LaunchPlan, Lease, find_program};
use super::error::WebError;
use super::guard::{Guard, OwnPorts, Resolve, Rules, Verdict, judge_locally};
use super::private::AskLocks;
use super::profile::Profile;
use super::running::RunningBrowsers;
use crate::context::ToolContext;
use crate::environment::outside;

/// The state that all browsers of a process share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: WebSettings,
    pub(super) folder: PathBuf,
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) running: RunningBrowsers,
    pub(super) own_ports: OwnPorts,
}

/// The browser of one session and its approvals. The browser ends with the session's last tool
/// instance.
#[derive(Debug)]
pub(super) struct SessionBrowser {
    shared: Arc<Shared>,
    session: SessionId,
    rules: Rules,
    ask_locks: AskLocks,
    current: Mutex<Option<Arc<Browser>>>,
}

impl SessionBrowser {
    pub(super) fn new(shared: Arc<Shared>, session: SessionId, rules: Rules) -> Self {
        Self { shared, session, rules, ask_locks: AskLocks::default(), current: Mutex::default() }
    }

    pub(super) fn settings(&self) -> &WebSettings {
        &self.shared.settings
    }

    /// The time limit for loading a page.
    pub(super) fn load_limit(&self) -> Duration {
        Duration::from_secs(self.settings().load_s.into())
    }

    /// Judges a page as far as possible before the user approves. May block.
    pub(super) fn judge_locally(&self, url: &str) -> Option<Verdict> {
        judge_locally(&self.rules, Arc::clone(&self.shared.resolver), &self.shared.own_ports, url)
    }

    pub(super) fn ask_locks(&self) -> &AskLocks {
        &self.ask_locks
    }

    /// The folder of screenshots, which all sessions share.
    pub(super) fn screenshots(&self) -> PathBuf {
        self.shared.folder.join("screenshots")
    }

    /// Leases the session's browser, with a window if `visible`, and starts it if necessary.
    ///
    /// A browser with a window replaces one without, which ends after its last call. All later
    /// calls use the new one, so a login by the user in it applies to them.
    pub(super) fn lease(&self, visible: bool, context: &ToolContext) -> Result<Lease, WebError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lease) = current.as_ref().and_then(|browser| browser.lease(visible)) {
            return Ok(lease);
        }
        let (browser, lease) = Browser::start(self.launch_plan(visible, context)?)?;
        *current = Some(browser);
        Ok(lease)
    }

    fn launch_plan(&self, visible: bool, context: &ToolContext) -> Result<LaunchPlan, WebError> {
        let Shared { settings, folder, resolver, running, own_ports } = &*self.shared;
        let workspace = context.workspace();
        let mut env = outside(workspace.env(), workspace.root());
        if visible {
            if workspace.display().is_empty() && cfg!(target_os = "linux") {
                return Err(WebError::failed(
                    "there is no display for a visible window. The user can set web.pause_headless = true in the \
                     configuration: then a page is paused without a window, and the user reaches it at the address of \
                     its developer tools. With `headless` and without `pause`, a page needs no window",
                ));
            }
            env.extend(workspace.display().iter().cloned());
            // The browser gets another `HOME`, where it would not find the user's X authority file.
            let home = env.iter().find(|(name, _)| name == "HOME").map(|(_, home)| home.clone());
            if let Some(home) = home
                && !env.iter().any(|(name, _)| name == "XAUTHORITY")
            {
                env.push(("XAUTHORITY".to_owned(), format!("{home}/.Xauthority")));
            }
        }
        let program =
            find_program(settings.chromium.as_deref(), workspace.env(), workspace.root())?;
        let guard = Guard::start_among(self.rules.clone(), Arc::clone(resolver), own_ports.clone())
            .map_err(|error| WebError::failed(error.to_string()))?;
        let profile = Profile::make(folder).map_err(|error| {
            let folder = folder.display();
            WebError::failed(format!("can't create the browser's folder in {folder}: {error}"))
        })?;
        // Chromium's sandbox does not work as root.
        let sandbox = settings.sandbox.unwrap_or_else(|| !rustix::process::geteuid().is_root());
        // Chromium's sandbox does not work in ours, and a window needs the user's desktop.
        let outer = context.processes().sandbox().filter(|_| !sandbox && !visible);
        let outer = outer.and_then(|outer| outer.for_browser(profile.path()));
        Ok(LaunchPlan {
            program,
            visible,
            sandbox,
            env,
            guard,
            profile,
            idle: Duration::from_secs(u64::from(settings.idle_minutes) * 60),
            processes: context.processes().sandboxed(outer),
            session_guard: context.background().clone(),
            lister: running.for_session(self.session.clone()),
        })
    }
}
