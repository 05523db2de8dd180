//! The sandboxes of sessions: their level, their profile and their folders.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use holdpoint_common::{SandboxLevel, SandboxSettings, SessionError, SessionId};
use holdpoint_tools::{Sandbox, SandboxProfile, SandboxSupport, Supervisor};
use tokio::runtime;

/// Makes the sandboxes of an engine's sessions.
pub(crate) struct Sandboxes {
    /// The folder with the temporary files and caches of all sandboxes. Without one, there are no
    /// sandboxes.
    folder: Option<PathBuf>,
    supervisor: Supervisor,
    /// The program's own folders, which no sandbox contains.
    own_folders: Vec<PathBuf>,
    runtime: runtime::Handle,
    /// The levels that work, once the strongest one does.
    support: OnceLock<SandboxSupport>,
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
        Self { folder, supervisor, own_folders, runtime, support: OnceLock::new() }
    }

    /// The sandbox of a session; `None` if it has none. If the level does not work, the sandbox
    /// refuses every program.
    pub(crate) async fn sandbox(&self, session: &SandboxedSession<'_>) -> Option<Sandbox> {
        let level = session.settings.level;
        if level == SandboxLevel::Off {
            return None;
        }
        let Some(folder) = &self.folder else {
            let why = "the program has no folder for sandboxes";
            return SandboxSupport::none(why)
                .sandbox(level, SandboxProfile::new("/", "/", "/", "/"));
        };
        let profile = match self.profile(folder, session) {
            Ok(profile) => profile,
            Err(why) => return Some(Sandbox::refusing(level, why)),
        };
        self.support(folder).await.sandbox(level, profile)
    }

    /// The levels that work. They are tried again while the strongest one does not work, because
    /// the reason can be temporary.
    async fn support(&self, folder: &Path) -> SandboxSupport {
        if let Some(support) = self.support.get() {
            return support.clone();
        }
        let (supervisor, folder) = (self.supervisor.clone(), folder.join("trial"));
        let probe = move || SandboxSupport::probe(&supervisor, &folder);
        let probed = self.runtime.spawn_blocking(probe).await;
        let support = probed.unwrap_or_else(|error| SandboxSupport::none(&error.to_string()));
        match support.why_not(SandboxLevel::Bwrap) {
            None => {
                let _ = self.support.set(support.clone());
            }
            Some(bwrap) => {
                let landlock = support.why_not(SandboxLevel::Landlock);
                tracing::warn!(bwrap, landlock, "some levels of the sandbox do not work");
            }
        }
        support
    }

    /// The settings with a level that works, in place of `auto`.
    ///
    /// # Errors
    /// [`SessionError::Sandbox`] if the settings are invalid or the level does not work.
    pub(crate) async fn resolve(
        &self,
        session: &SandboxedSession<'_>,
    ) -> Result<SandboxSettings, SessionError> {
        let settings = session.settings;
        let refused = |message| SessionError::Sandbox { level: settings.level, message };
        settings.check().map_err(refused)?;
        let level = match self.sandbox(session).await {
            None => SandboxLevel::Off,
            Some(sandbox) => match sandbox.refusal() {
                None => sandbox.level(),
                Some(why) => return Err(refused(why.to_owned())),
            },
        };
        Ok(SandboxSettings { level, ..settings.clone() })
    }

    fn profile(
        &self,
        folder: &Path,
        session: &SandboxedSession<'_>,
    ) -> Result<SandboxProfile, String> {
        let SandboxedSession { id, workspace, env, settings } = session;
        let home = env.iter().rev().find(|(name, _)| name == "HOME");
        let home = home.and_then(|(_, home)| Path::new(home).canonicalize().ok());
        let home = home.filter(|home| home.is_absolute());
        let home = home.ok_or("HOME is not a folder, so the files to hide can't be found")?;
        let expand = |path: &String| match path.strip_prefix("~/") {
            Some(rest) => home.join(rest),
            None => path.into(),
        };
        let writable: Vec<_> = settings.writable.iter().map(expand).collect();
        for path in &writable {
            // A process of another session may have made the link.
            if let Ok(real) = path.canonicalize()
                && real != *path
            {
                let [path, real] = [path, &real].map(|path| path.display());
                return Err(format!("`writable` has a link: use {real} in place of {path}"));
            }
        }
        let hash = blake3::hash(workspace.as_os_str().as_encoded_bytes()).to_hex();
        let caches = folder.join("caches").join(&hash[..16]);
        Ok(SandboxProfile::new(*workspace, &home, self.temporary(folder, id), caches)
            .writable(writable)
            .hidden(settings.hidden.iter().map(expand))
            .own_folders(self.own_folders.clone())
            .network(settings.network))
    }

    fn temporary(&self, folder: &Path, id: &SessionId) -> PathBuf {
        folder.join("tmp").join(id.as_str())
    }

    /// Removes the temporary files of a deleted session.
    pub(crate) async fn remove(&self, id: &SessionId) {
        let folder = self.removed_with(id);
        // The session is deleted in any case.
        let _ = self.runtime.spawn_blocking(move || drop(folder)).await;
    }

    /// The folder for the temporary files of a session, which is removed when the value is dropped.
    pub(crate) fn removed_with(&self, id: &SessionId) -> Option<RemovedFolder> {
        self.folder.as_ref().map(|folder| RemovedFolder(self.temporary(folder, id)))
    }
}

/// A folder that is removed when this value is dropped.
pub(crate) struct RemovedFolder(PathBuf);

impl Drop for RemovedFolder {
    fn drop(&mut self) {
        match std::fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(path = %self.0.display(), %error, "can't remove temporary files");
            }
            Ok(()) | Err(_) => {}
        }
    }
}
