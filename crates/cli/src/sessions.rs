//! Gives commands access to the daemon's sessions.

use holdpoint_common::{
    Config, Hold, Refused, SessionId, Snapshot, Supplies, Who, session_mcp_servers,
};
use holdpoint_session::folders::Folders;
use holdpoint_session::model::Catalog;
use holdpoint_session::{SessionError, SessionHandle, Sessions};
use holdpoint_tools::shown::prose_line;

use crate::daemon::Daemon;
use crate::error::CliError;

/// Returns the daemon's sessions for the command of this name. Starts the daemon if none runs.
///
/// # Errors
/// Fails if the configuration is wrong, or the daemon can't be reached or started.
pub(crate) async fn sessions(folders: &Folders, command: &str) -> Result<Sessions, CliError> {
    sessions_with_config(folders, command, &folders.config()?).await
}

/// Like [`sessions`], for commands that watch or stop sessions. These must work even with a broken
/// configuration, which therefore counts as empty while a daemon runs.
///
/// # Errors
/// Fails if the configuration is wrong and no daemon runs, or if the daemon can't be reached or
/// started.
pub(crate) async fn control_sessions(
    folders: &Folders,
    command: &str,
) -> Result<Sessions, CliError> {
    let config = match folders.config() {
        Err(_) if Daemon::find(folders).await?.is_some() => Config::default(),
        config => config?,
    };
    sessions_with_config(folders, command, &config).await
}

async fn sessions_with_config(
    folders: &Folders,
    command: &str,
    config: &Config,
) -> Result<Sessions, CliError> {
    let catalog = Catalog::new(config, |name| std::env::var(name).ok());
    daemon_sessions(folders, command, supplies(config, &catalog)).await
}

/// Like [`sessions`], with supplies that are known already.
pub(crate) async fn daemon_sessions(
    folders: &Folders,
    command: &str,
    supplies: Supplies,
) -> Result<Sessions, CliError> {
    let daemon = Daemon::connect_or_start(folders).await?;
    Ok(Sessions::remote(daemon.socket, &who(command)).with_supplies(supplies))
}

/// The supplies of sessions that this process opens: its environment, the provider settings, the
/// system prompt and the MCP servers.
pub(crate) fn supplies(config: &Config, catalog: &Catalog) -> Supplies {
    let to_utf8 = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    Supplies {
        // Only the variables that sessions use are sent.
        env: std::env::vars_os().filter_map(to_utf8).collect(),
        models: Some(catalog.supplies()),
        system_prompt: config.system_prompt.clone(),
        mcp: session_mcp_servers(config.mcp.clone(), |name| std::env::var(name).ok()),
    }
}

/// Whether the session is completely saved. An acknowledged command does not imply it, because a
/// session continues when saving fails. A session that no longer exists counts as saved.
pub(crate) async fn is_saved(sessions: &Sessions, id: &SessionId) -> bool {
    match sessions.look(id.as_str()).await {
        Ok(session) => session.saved,
        Err(error) => matches!(error, SessionError::UnknownSession { .. }),
    }
}

/// Closes and deletes a session that was never used. It is kept if another client uses it
/// meanwhile.
pub(crate) async fn discard_unused(sessions: &Sessions, id: &SessionId) {
    let Ok(before) = sessions.look(id.as_str()).await else { return };
    discard_if_unchanged(sessions, &before).await;
}

/// Like [`discard_unused`], with a snapshot taken earlier.
async fn discard_if_unchanged(sessions: &Sessions, before: &Snapshot) {
    let id = &before.settings.id;
    // One client may be the caller, with a detach still on its way. A hold is not a use.
    if before.turn.is_some() || before.clients > 1 || is_used(before) {
        return;
    }
    if !matches!(
        sessions.close_unused(id, before.seq).await,
        Ok(()) | Err(SessionError::Refused(Refused::Closed))
    ) {
        return;
    }
    // If another client closed the session first, it may have used it before. The close itself adds
    // one event, and the end of a hold another.
    let added = 1 + u64::from(before.hold != Hold::Off);
    let Ok(after) = sessions.look(id.as_str()).await else { return };
    if !is_used(&after) && after.seq <= before.seq + added {
        // A session that can't be deleted stays listed, which does no harm.
        let _ = sessions.delete(id.as_str()).await;
    }
}

/// Whether the session ever had a prompt or a run. A handed-back prompt still set the title.
fn is_used(session: &Snapshot) -> bool {
    let has_work = !session.queue.is_empty() || session.run.is_some();
    let had_work = session.last_turn.is_some() || session.last_run.is_some();
    has_work || had_work || session.title != session.settings.name
}

/// Identifies this process to other clients.
pub(crate) fn who(command: &str) -> Who {
    Who { name: command.to_owned(), pid: Some(std::process::id()) }
}

/// The message that a session stays open although its command ends, and how to close it.
pub(crate) fn stays_open_text(session: &SessionHandle) -> String {
    let name = session.snapshot().settings.name.clone();
    format!(
        "session {} stays open; `holdpoint close {}` closes it",
        prose_line(&name),
        session.id()
    )
}

#[cfg(test)]
mod tests {
    use holdpoint_common::SessionStatus;
    use holdpoint_session::{Engine, OpenSession};

    use super::*;

    /// An engine with one fresh session.
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
    async fn m_e1_a_session_without_a_prompt_is_deleted() {
        let (_engine, sessions, session) = fresh().await;
        discard_unused(&sessions, session.id()).await;
        assert!(!is_there(&sessions, &session).await);
    }

    #[tokio::test]
    async fn m_b2_a_prompt_sent_while_its_session_is_discarded_is_kept() {
        let (_engine, sessions, session) = fresh().await;
        let before = session.snapshot();
        session.prompt("hang").await.unwrap();
        discard_if_unchanged(&sessions, &before).await;
        let after = sessions.look(session.id().as_str()).await.unwrap();
        assert_eq!(after.title, "hang");
        assert_eq!(after.status, SessionStatus::Running, "the turn was not cut");
        // A prompt that only waited leaves no turn.
        let (_engine, sessions, session) = fresh().await;
        let before = session.snapshot();
        session.hold().await.unwrap();
        session.prompt("say One.").await.unwrap();
        discard_if_unchanged(&sessions, &before).await;
        assert!(is_there(&sessions, &session).await);
        // A handed-back prompt leaves no turn either.
        let (_engine, sessions, session) = fresh().await;
        session.hold().await.unwrap();
        session.prompt("say One.").await.unwrap();
        session.close().await.unwrap();
        assert!(sessions.look(session.id().as_str()).await.unwrap().queue.is_empty());
        discard_unused(&sessions, session.id()).await;
        assert!(is_there(&sessions, &session).await);
    }
}
