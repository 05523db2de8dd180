//! The tools of this program's sessions: the built-in ones, and `web` with a browser for each
//! session.

use holdpoint_common::{Config, SessionSettings};
use holdpoint_session::builtin_tools;
use holdpoint_session::folders::Folders;
use holdpoint_tools::Toolbox;
use holdpoint_tools::web::Browsers;

use crate::error::CliError;

/// The hint on how to write a host.
const HOST_HINT: &str = "a host is `example.com`, with its subdomains, or an address; a port limits it: `example.com:8080`, `[::1]:8080`";

/// Prepares the browsers of all sessions. No browser process is started yet.
///
/// # Errors
/// Fails if the configuration allows or denies an invalid host.
pub(crate) fn browsers(config: &Config, folders: &Folders) -> Result<Browsers, CliError> {
    Browsers::new(config.web.clone(), folders.web())
        .map_err(|error| CliError::usage(format!("[web]: {error}")).hint(HOST_HINT))
}

/// Returns a function that makes the tools of a session.
pub(crate) fn tools(
    browsers: &Browsers,
) -> impl Fn(&SessionSettings) -> Toolbox + Send + Sync + use<> {
    let browsers = browsers.clone();
    move |session| builtin_tools().with(browsers.of_session(session.id.clone()))
}
