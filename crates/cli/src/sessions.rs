//! The daemon's sessions, as commands use them.

use holdpoint_common::{Config, SessionId, SessionStatus, Supplies, Who};
use holdpoint_session::folders::Folders;
use holdpoint_session::model::Catalog;
use holdpoint_session::state::Refused;
use holdpoint_session::{SessionError, Sessions};

use crate::daemon::Daemon;
use crate::error::CliError;

/// The sessions of the daemon, which is started if none runs, for the command of this name.
///
/// # Errors
/// The configuration is wrong, or the daemon can't be reached or started.
pub(crate) async fn sessions(folders: &Folders, command: &str) -> Result<Sessions, CliError> {
    of_config(folders, command, &folders.config()?).await
}

/// The same, for a command that watches sessions or stops them: with a daemon that runs it does so whatever the
/// configuration says, as if that said nothing.
///
/// # Errors
/// The configuration is wrong and no daemon runs, or it can't be reached or started.
pub(crate) async fn control(folders: &Folders, command: &str) -> Result<Sessions, CliError> {
    let config = match folders.config() {
        Err(_) if Daemon::find(folders).await?.is_some() => Config::default(),
        config => config?,
    };
    of_config(folders, command, &config).await
}

async fn of_config(folders: &Folders, command: &str, config: &Config) -> Result<Sessions, CliError> {
    let catalog = Catalog::new(config, |name| std::env::var(name).ok());
    of_daemon(folders, command, supplies(config, &catalog)).await
}

/// The same, where it is known what they are supplied with.
pub(crate) async fn of_daemon(folders: &Folders, command: &str, supplies: Supplies) -> Result<Sessions, CliError> {
    let daemon = Daemon::connect_or_start(folders).await?;
    Ok(Sessions::remote(daemon.socket, &who(command)).with_supplies(supplies))
}

/// What a session that is opened here has: this process's environment, and how models are reached.
pub(crate) fn supplies(config: &Config, catalog: &Catalog) -> Supplies {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    Supplies {
        // The session lets through to tools what its list allows.
        env: std::env::vars_os().filter_map(text).collect(),
        models: Some(catalog.supplies()),
        system_prompt: config.system_prompt.clone(),
    }
}

/// Closes and deletes a session in which nothing was said.
pub(crate) async fn forget(sessions: &Sessions, id: &SessionId) {
    let Ok(now) = sessions.look(id.as_str()).await else { return };
    let said = now.last_turn.is_some() || !now.queue.is_empty();
    let untouched = now.status == SessionStatus::Idle && !said && now.clients <= 1;
    if !untouched {
        return;
    }
    if matches!(sessions.close(id).await, Ok(()) | Err(SessionError::Refused(Refused::Closed))) {
        // One that stays is listed, and does no harm.
        let _ = sessions.delete(id.as_str()).await;
    }
}

/// This process, as others see it.
pub(crate) fn who(command: &str) -> Who {
    Who { name: command.to_owned(), pid: Some(std::process::id()) }
}
