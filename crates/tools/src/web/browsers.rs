//! The browsers of a process: one for each session, started on first use.

use std::path::PathBuf;
use std::sync::Arc;

use holdpoint_common::{SessionId, WebSettings};

use super::guard::{OwnPorts, Resolve, RuleError, Rules, SystemResolver};
use super::profile;
use super::running::{RunningBrowser, RunningBrowsers};
use super::session_browser::{SessionBrowser, Shared};
use super::tool::Web;

/// The browsers of all sessions of a program. Clones share one set of browsers.
///
/// ```
/// use holdpoint_common::WebSettings;
/// use holdpoint_tools::Toolbox;
/// use holdpoint_tools::web::Browsers;
///
/// let browsers =
///     Browsers::new(WebSettings::default(), std::env::temp_dir().join("holdpoint-web")).unwrap();
/// let tools = Toolbox::new().with(browsers.of_session("s1".parse().unwrap()));
/// assert_eq!(tools.specs().next().unwrap().name, "web");
/// assert!(browsers.running().is_empty(), "a browser is started when it is first needed");
/// ```
#[derive(Debug, Clone)]
pub struct Browsers(Arc<Shared>);

impl Browsers {
    /// Creates the browsers' shared state from `settings`. `folder` holds the browsers' own folders
    /// and the screenshots; it is created with mode 0700 when it is first needed.
    ///
    /// # Errors
    /// [`RuleError`] if an entry of `web.allow` or `web.deny` is not a host.
    pub fn new(settings: WebSettings, folder: PathBuf) -> Result<Self, RuleError> {
        Self::with_resolver(settings, folder, Arc::new(SystemResolver))
    }

    /// Like [`new`](Self::new), with names looked up by `resolver`.
    ///
    /// # Errors
    /// The same as for [`new`](Self::new).
    pub fn with_resolver(
        settings: WebSettings,
        folder: PathBuf,
        resolver: Arc<dyn Resolve>,
    ) -> Result<Self, RuleError> {
        Rules::new(&settings.allow, &settings.deny)?;
        let running = RunningBrowsers::default();
        let own_ports = OwnPorts::default();
        Ok(Self(Arc::new(Shared { settings, folder, resolver, running, own_ports })))
    }

    /// Returns a constructor of the tool `web` for one session, for
    /// [`Toolbox::with`](crate::Toolbox::with). The session's browser ends when the constructor and
    /// all tools that it made are dropped.
    pub fn of_session(&self, session: SessionId) -> impl FnMut() -> Web + Send + use<> {
        let settings = &self.0.settings;
        // `with_resolver` has checked the rules.
        let rules = Rules::new(&settings.allow, &settings.deny).unwrap_or_default();
        let shared = Arc::clone(&self.0);
        let browser = Arc::new(SessionBrowser::new(shared, session, rules));
        move || Web::new(Arc::clone(&browser))
    }

    /// Removes the browser folders that killed processes have left. Starting a browser does this
    /// too.
    pub fn sweep(&self) {
        if let Err(error) = profile::sweep(&self.0.folder) {
            tracing::warn!(folder = %self.0.folder.display(), %error, "looking for leftover browser folders failed");
        }
    }

    /// The browsers that are running now.
    #[must_use]
    pub fn running(&self) -> Vec<RunningBrowser> {
        self.0.running.list()
    }
}
