//! The browsers of all sessions of a program, one a session, each started when it is first needed.

use std::path::PathBuf;
use std::sync::Arc;

use holdpoint_common::{SessionId, WebSettings};

use super::guard::{OwnPorts, Resolve, RuleError, Rules, SystemResolver};
use super::profile;
use super::running::{Running, RunningBrowser};
use super::session_browser::{SessionBrowser, Shared};
use super::tool::Web;

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
        let (running, own) = (Running::default(), OwnPorts::default());
        Ok(Self(Arc::new(Shared { settings, folder, resolver, running, own })))
    }

    /// Makes the tool `web` for one session, for [`Toolbox::with`](crate::Toolbox::with). The session's browser ends when
    /// this and all it has made are dropped.
    pub fn of_session(&self, session: SessionId) -> impl FnMut() -> Web + Send + use<> {
        let settings = &self.0.settings;
        // They were right before.
        let rules = Rules::new(&settings.allow, &settings.deny).unwrap_or_default();
        let shared = Arc::clone(&self.0);
        let browser = Arc::new(SessionBrowser::new(shared, session, rules));
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
