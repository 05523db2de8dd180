//! The daemon's sessions, as commands use them.

use holdpoint_common::{Config, SessionId, SessionStatus, Snapshot, Supplies, Who};
use holdpoint_session::folders::Folders;
use holdpoint_session::model::Catalog;
use holdpoint_session::state::Refused;
use holdpoint_session::{SessionError, SessionHandle, Sessions};
use holdpoint_tools::shown::prose_line;

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

/// Whether all of a session is on the disk, asked after a command was acknowledged: the session goes on where it can't be
/// saved. One that is gone meanwhile is not reported.
pub(crate) async fn is_saved(sessions: &Sessions, id: &SessionId) -> bool {
    sessions.look(id.as_str()).await.map_or(true, |session| session.saved)
}

/// Closes and deletes a session in which nothing was said. One to which something is said meanwhile stays.
pub(crate) async fn forget(sessions: &Sessions, id: &SessionId) {
    let Ok(before) = sessions.look(id.as_str()).await else { return };
    forget_seen(sessions, &before).await;
}

/// The same, of one that was looked at before.
async fn forget_seen(sessions: &Sessions, before: &Snapshot) {
    let id = &before.settings.id;
    if before.status != SessionStatus::Idle || before.clients > 1 || is_said(before) {
        return;
    }
    if !matches!(sessions.close_unused(id, before.seq).await, Ok(()) | Err(SessionError::Refused(Refused::Closed))) {
        return;
    }
    // Another client may have used the session first: that raised its event number.
    let Ok(after) = sessions.look(id.as_str()).await else { return };
    if !is_said(&after) && after.seq <= before.seq + 1 {
        // One that stays is listed, and does no harm.
        let _ = sessions.delete(id.as_str()).await;
    }
}

/// Whether the session ever had a prompt or a run. A prompt that was handed back still set the title.
fn is_said(session: &Snapshot) -> bool {
    let waits = !session.queue.is_empty() || session.run.is_some();
    let ended = session.last_turn.is_some() || session.last_run.is_some();
    waits || ended || session.title != session.settings.name
}

/// This process, as others see it.
pub(crate) fn who(command: &str) -> Who {
    Who { name: command.to_owned(), pid: Some(std::process::id()) }
}

/// That a session stays, which is closed at its end else, and what closes it.
pub(crate) fn stays(session: &SessionHandle) -> String {
    let name = session.snapshot().settings.name.clone();
    format!("session {} stays: `holdpoint close {}` closes it", prose_line(&name), session.id())
}

#[cfg(test)]
mod tests {
    use holdpoint_session::{Engine, OpenSession};

    use super::*;

    /// An engine, and a session that was opened in it, as it was then.
    async fn fresh() -> (Engine, Sessions, SessionHandle) {
        let engine = Engine::builder(Catalog::default()).start().unwrap();
        let sessions = engine.sessions(who("test"));
        let session = sessions.open(OpenSession::in_folder(std::env::temp_dir())).await.unwrap();
        (engine, sessions, session)
    }

    async fn is_there(sessions: &Sessions, session: &SessionHandle) -> bool {
        sessions.look(session.id().as_str()).await.is_ok()
    }

    #[tokio::test]
    async fn m_e1_a_session_in_which_nothing_was_said_is_deleted() {
        let (_engine, sessions, session) = fresh().await;
        forget(&sessions, session.id()).await;
        assert!(!is_there(&sessions, &session).await);
    }

    #[tokio::test]
    async fn m_b2_what_is_said_while_a_session_is_forgotten_is_kept() {
        let (_engine, sessions, session) = fresh().await;
        let before = session.snapshot();
        session.prompt("hang").await.unwrap();
        forget_seen(&sessions, &before).await;
        let after = sessions.look(session.id().as_str()).await.unwrap();
        assert_eq!(after.title, "hang");
        assert_eq!(after.status, SessionStatus::Running, "it is not cut");
        // Of a prompt that only waited, no turn is left.
        let (_engine, sessions, session) = fresh().await;
        let before = session.snapshot();
        session.hold().await.unwrap();
        session.prompt("say One.").await.unwrap();
        forget_seen(&sessions, &before).await;
        assert!(is_there(&sessions, &session).await);
        // Nor where it was handed back before.
        let (_engine, sessions, session) = fresh().await;
        session.hold().await.unwrap();
        session.prompt("say One.").await.unwrap();
        session.close().await.unwrap();
        assert!(sessions.look(session.id().as_str()).await.unwrap().queue.is_empty());
        forget(&sessions, session.id()).await;
        assert!(is_there(&sessions, &session).await);
    }
}
