//! The tools of this program's sessions: those that are built in, and `web`, each session with a browser of its own.

use holdpoint_common::{Config, SessionSettings};
use holdpoint_session::builtin_tools;
use holdpoint_session::folders::Folders;
use holdpoint_tools::Toolbox;
use holdpoint_tools::web::Browsers;

use crate::error::CliError;

/// How hosts are named.
const HOSTS: &str =
    "a host is `example.com`, with all below it, or an address; `example.com:8080`, `[::1]:8080` at one port";

/// The browsers of all sessions. None is started by this.
///
/// # Errors
/// The configuration allows or denies hosts that are none.
pub(crate) fn browsers(config: &Config, folders: &Folders) -> Result<Browsers, CliError> {
    Browsers::new(config.web.clone(), folders.web())
        .map_err(|error| CliError::usage(format!("[web]: {error}")).hint(HOSTS))
}

/// What makes the tools of a session.
pub(crate) fn tools(browsers: &Browsers) -> impl Fn(&SessionSettings) -> Toolbox + Send + Sync + use<> {
    let browsers = browsers.clone();
    move |session| builtin_tools().with(browsers.of_session(session.id.clone()))
}
