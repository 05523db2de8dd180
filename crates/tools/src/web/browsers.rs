//! The browsers of all sessions of a program, one a session, each started when it is first needed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdpoint_common::{SessionId, WebSettings};

use super::browser::{Browser, Lease, Plan, find_program};
use super::error::WebError;
use super::guard::{Guard, Resolve, RuleError, Rules, SystemResolver, Verdict, at_sight};
use super::private::Questions;
use super::profile;
use super::running::{Running, RunningBrowser};
use super::tool::Web;
use crate::context::ToolContext;

/// The browsers of all sessions of a program. Clones are the same.
///
/// ```
/// use holdpoint_common::WebSettings;
/// use holdpoint_tools::Toolbox;
/// use holdpoint_tools::web::Browsers;
///
/// let browsers = Browsers::new(WebSettings::default(), std::env::temp_dir().join("holdpoint-web")).unwrap();
/// let tools = Toolbox::new().with(browsers.of_session("s1".parse().unwrap()));
/// assert_eq!(tools.specs().next().unwrap().name, "web");
/// assert!(browsers.running().is_empty(), "a browser is started when it is first needed");
/// ```
#[derive(Debug, Clone)]
pub struct Browsers(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: WebSettings,
    folder: PathBuf,
    resolver: Arc<dyn Resolve>,
    running: Running,
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

impl Browsers {
    /// By these settings. In `folder`, which is made if need be, are the browsers' own folders and the screenshots; it
    /// is for this user alone.
    ///
    /// # Errors
    /// [`RuleError`] if a host that the settings allow or deny is none.
    pub fn new(settings: WebSettings, folder: PathBuf) -> Result<Self, RuleError> {
        Self::with_resolver(settings, folder, Arc::new(SystemResolver))
    }

    /// The same, with names looked up by `resolver`.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn with_resolver(
        settings: WebSettings,
        folder: PathBuf,
        resolver: Arc<dyn Resolve>,
    ) -> Result<Self, RuleError> {
        Rules::new(&settings.allow, &settings.deny)?;
        Ok(Self(Arc::new(Shared { settings, folder, resolver, running: Running::default() })))
    }

    /// Makes the tool `web` for one session, for [`Toolbox::with`](crate::Toolbox::with). The session's browser ends when
    /// this and all it has made are dropped.
    pub fn of_session(&self, session: SessionId) -> impl FnMut() -> Web + Send + use<> {
        let settings = &self.0.settings;
        // They were right before.
        let rules = Rules::new(&settings.allow, &settings.deny).unwrap_or_default();
        let shared = Arc::clone(&self.0);
        let browser = Arc::new(SessionBrowser {
            shared,
            session,
            rules,
            questions: Questions::default(),
            current: Mutex::default(),
        });
        move || Web::new(Arc::clone(&browser))
    }

    /// Removes what browsers of killed processes have left. Starting a browser does that, too.
    pub fn sweep(&self) {
        if let Err(error) = profile::sweep(&self.0.folder) {
            tracing::warn!(folder = %self.0.folder.display(), %error, "what browsers have left can't be looked for");
        }
    }

    /// Those that run now.
    #[must_use]
    pub fn running(&self) -> Vec<RunningBrowser> {
        self.0.running.list()
    }
}

impl SessionBrowser {
    pub(super) fn settings(&self) -> &WebSettings {
        &self.shared.settings
    }

    /// How long a page may take to load.
    pub(super) fn load(&self) -> Duration {
        Duration::from_secs(self.settings().load_s.into())
    }

    /// Whether a page may be opened, as far as that can be told before anybody has agreed. May block.
    pub(super) fn at_sight(&self, url: &str) -> Option<Verdict> {
        at_sight(&self.rules, Arc::clone(&self.shared.resolver), url)
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
        let Shared { settings, folder, resolver, running } = &*self.shared;
        let workspace = context.workspace();
        let mut env = workspace.env().to_vec();
        if visible {
            if workspace.display().is_empty() && cfg!(target_os = "linux") {
                return Err(WebError::failed(
                    "there is no display for a visible window. The user can set web.pause_headless = true in the \
                     configuration: then a page is paused without a window, and reached by the address of its developer \
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
        let path = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_str());
        let program = find_program(settings.chromium.as_deref(), path)?;
        let guard = Guard::start_with(self.rules.clone(), Arc::clone(resolver))
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
            load: self.load(),
            processes: context.processes().like(),
            keep: context.background().clone(),
            roll: running.roll(self.session.clone()),
        })
    }
}
