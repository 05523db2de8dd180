//! The sandboxes of sessions: their level, their profile and their folders.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use holdpoint_common::{SandboxLevel, SandboxSettings, SessionError, SessionId};
use holdpoint_tools::{Sandbox, SandboxProfile, SandboxSupport, Supervisor};
use tokio::runtime;
use tokio::sync::OnceCell;

/// Makes the sandboxes of an engine's sessions.
pub(crate) struct Sandboxes {
    /// The folder with the temporary files and caches of all sandboxes. Without one, there are no
    /// sandboxes.
    folder: Option<PathBuf>,
    supervisor: Supervisor,
    /// The program's own folders, which no sandbox contains.
    own_folders: Vec<PathBuf>,
    runtime: runtime::Handle,
    /// The levels that work, tried when a session first needs one.
    support: OnceCell<SandboxSupport>,
}

/// The session that a sandbox is for.
pub(crate) struct SandboxedSession<'a> {
    pub(crate) id: &'a SessionId,
    pub(crate) workspace: &'a Path,
    pub(crate) env: &'a [(String, String)],
    pub(crate) settings: &'a SandboxSettings,
}

impl Sandboxes {
    pub(crate) fn new(
        folder: Option<PathBuf>,
        supervisor: Supervisor,
        own_folders: Vec<PathBuf>,
        runtime: runtime::Handle,
    ) -> Self {
        Self { folder, supervisor, own_folders, runtime, support: OnceCell::new() }
    }

    /// The sandbox of a session; `None` if it has none. If the level does not work, the sandbox
    /// refuses every program.
    pub(crate) async fn sandbox(&self, session: &SandboxedSession<'_>) -> Option<Sandbox> {
        let level = session.settings.level;
        if level == SandboxLevel::Off {
            return None;
        }
        let folder = self.folder.as_deref().unwrap_or(Path::new("/nonexistent"));
        let profile = self.profile(folder, session);
        let support = self.support.get_or_init(|| self.probe(&profile, session.env)).await;
        support.sandbox(level, profile)
    }

    /// Tries the levels on a blocking thread.
    async fn probe(&self, profile: &SandboxProfile, env: &[(String, String)]) -> SandboxSupport {
        if self.folder.is_none() {
            return SandboxSupport::none("the program has no folder for sandboxes");
        }
        let (supervisor, env, profile) = (self.supervisor.clone(), env.to_vec(), profile.clone());
        let probe = move || SandboxSupport::probe(&supervisor, &env, &profile);
        let probed = self.runtime.spawn_blocking(probe).await;
        probed.unwrap_or_else(|error| SandboxSupport::none(&error.to_string()))
    }

    /// The settings with a level that works, in place of `auto`.
    ///
    /// # Errors
    /// [`SessionError::Sandbox`] if the level does not work.
    pub(crate) async fn resolve(
        &self,
        session: &SandboxedSession<'_>,
    ) -> Result<SandboxSettings, SessionError> {
        if let Err(message) = session.settings.check() {
            return Err(SessionError::Sandbox { level: session.settings.level, message });
        }
        let sandbox = self.sandbox(session).await;
        if let Some(sandbox) = &sandbox
            && let Some(message) = sandbox.refusal()
        {
            let message = message.to_owned();
            return Err(SessionError::Sandbox { level: sandbox.level(), message });
        }
        let level = sandbox.map_or(SandboxLevel::Off, |sandbox| sandbox.level());
        Ok(SandboxSettings { level, ..session.settings.clone() })
    }

    fn profile(&self, folder: &Path, session: &SandboxedSession<'_>) -> SandboxProfile {
        let SandboxedSession { id, workspace, env, settings } = session;
        let home = env.iter().rev().find(|(name, _)| name == "HOME");
        let home: Option<PathBuf> = home.map(|(_, home)| home.into());
        let expanded = |paths: &[String]| -> Vec<PathBuf> {
            let expand = |path: &String| match (path.strip_prefix("~/"), &home) {
                (Some(rest), Some(home)) => Some(Path::join(home, rest)),
                (Some(_), None) => None,
                (None, _) => Some(path.into()),
            };
            paths.iter().filter_map(expand).collect()
        };
        let hash = blake3::hash(workspace.as_os_str().as_encoded_bytes()).to_hex();
        let caches = folder.join("caches").join(&hash[..16]);
        SandboxProfile::new(*workspace, self.temporary(folder, id), caches)
            .home(home.clone())
            .writable(expanded(&settings.writable))
            .hidden(expanded(&settings.hidden))
            .own_folders(self.own_folders.clone())
            .network(settings.network)
    }

    fn temporary(&self, folder: &Path, id: &SessionId) -> PathBuf {
        folder.join("tmp").join(id.as_str())
    }

    /// Removes the temporary files of a deleted session.
    pub(crate) async fn remove(&self, id: &SessionId) {
        let Some(folder) = &self.folder else { return };
        let temporary = self.temporary(folder, id);
        let remove = move || match std::fs::remove_dir_all(&temporary) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(path = %temporary.display(), %error, "can't remove temporary files");
            }
            Ok(()) | Err(_) => {}
        };
        // The session is deleted in any case.
        let _ = self.runtime.spawn_blocking(remove).await;
    }
}
