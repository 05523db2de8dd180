//! The browser of one session: started for the first call that needs it, in another way once a person has to see it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdpoint_common::{SessionId, WebSettings};

use super::browser::{Browser, Lease, Plan, find_program};
use super::error::WebError;
use super::guard::{Guard, OwnPorts, Resolve, Rules, Verdict, at_sight};
use super::private::Questions;
use super::running::Running;
use crate::context::ToolContext;
use crate::environment::outside;

/// What the browsers of a program have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: WebSettings,
    pub(super) folder: PathBuf,
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) running: Running,
    pub(super) own: OwnPorts,
}

/// The browser of one session, and what was allowed in it. Ends with the last instance of the session's tool.
#[derive(Debug)]
pub(super) struct SessionBrowser {
    shared: Arc<Shared>,
    session: SessionId,
    rules: Rules,
    questions: Questions,
    current: Mutex<Option<Arc<Browser>>>,
}

impl SessionBrowser {
    /// One that is started when it is first needed.
    pub(super) fn new(shared: Arc<Shared>, session: SessionId, rules: Rules) -> Self {
        Self { shared, session, rules, questions: Questions::default(), current: Mutex::default() }
    }

    pub(super) fn settings(&self) -> &WebSettings {
        &self.shared.settings
    }

    /// How long a page may take to load.
    pub(super) fn load(&self) -> Duration {
        Duration::from_secs(self.settings().load_s.into())
    }

    /// Whether a page may be opened, as far as that can be told before anybody has agreed. May block.
    pub(super) fn at_sight(&self, url: &str) -> Option<Verdict> {
        at_sight(&self.rules, Arc::clone(&self.shared.resolver), &self.shared.own, url)
    }

    /// The questions about private hosts.
    pub(super) fn questions(&self) -> &Questions {
        &self.questions
    }

    /// Where screenshots are kept.
    pub(super) fn screenshots(&self) -> PathBuf {
        self.shared.folder.join("screenshots")
    }

    /// The session's browser, with a window if there has to be one; started if need be.
    ///
    /// A visible one takes the place of one without a window, which ends when its last call does. It then serves all
    /// calls: what the user did in it, say to log in, holds for them.
    pub(super) fn lease(&self, visible: bool, context: &ToolContext) -> Result<Lease, WebError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(browser) = current.as_ref().filter(|browser| browser.serves(visible)) {
            return Ok(browser.lease());
        }
        let browser = Browser::start(self.plan(visible, context)?)?;
        let lease = browser.lease();
        *current = Some(browser);
        Ok(lease)
    }

    fn plan(&self, visible: bool, context: &ToolContext) -> Result<Plan, WebError> {
        let Shared { settings, folder, resolver, running, own } = &*self.shared;
        let workspace = context.workspace();
        let mut env = outside(workspace.env(), workspace.root());
        if visible {
            if workspace.display().is_empty() && cfg!(target_os = "linux") {
                return Err(WebError::failed(
                    "there is no display for a visible window. With web.pause_headless = true in the configuration, \
                     which is the user's, a page is paused without one, and reached by the address of its developer \
                     tools. Without `pause`, and with `headless`, a page needs no window",
                ));
            }
            env.extend(workspace.display().iter().cloned());
            // The browser has another home.
            let home = env.iter().find(|(name, _)| name == "HOME").map(|(_, home)| home.clone());
            if let Some(home) = home
                && !env.iter().any(|(name, _)| name == "XAUTHORITY")
            {
                env.push(("XAUTHORITY".to_owned(), format!("{home}/.Xauthority")));
            }
        }
        let program = find_program(settings.chromium.as_deref(), workspace.env(), workspace.root())?;
        let guard = Guard::start_among(self.rules.clone(), Arc::clone(resolver), own.clone())
            .map_err(|error| WebError::failed(error.to_string()))?;
        Ok(Plan {
            program,
            visible,
            // As root it does not start with it.
            sandbox: settings.sandbox.unwrap_or_else(|| !rustix::process::geteuid().is_root()),
            env,
            guard,
            folders: folder.clone(),
            idle: Duration::from_secs(u64::from(settings.idle_minutes) * 60),
            processes: context.processes().like(),
            keep: context.background().clone(),
            roll: running.roll(self.session.clone()),
        })
    }
}
