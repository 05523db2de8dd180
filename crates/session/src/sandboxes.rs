//! The sandboxes of sessions: their level, their profile and their folders.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use holdpoint_common::{PolicyMode, SandboxLevel, SandboxSettings, SessionError, SessionId};
use holdpoint_tools::{Sandbox, SandboxProfile, SandboxSupport, Supervisor, environment};
use tokio::runtime;

use crate::names::fresh_id;

/// Makes the sandboxes of an engine's sessions. Disks can be slow, so blocking threads do it.
pub(crate) struct Sandboxes {
    maker: Arc<Maker>,
    /// The settings of sessions that are opened without any.
    default: SandboxSettings,
    runtime: runtime::Handle,
}

struct Maker {
    /// `None` if the program has no folder for sandboxes.
    folders: Option<SandboxFolders>,
    supervisor: Supervisor,
    /// The program's own folders, which no sandbox contains.
    own_folders: Vec<PathBuf>,
    /// The rules for hosts that a proxy may reach, or not: `allow` and `deny`.
    host_rules: [Vec<String>; 2],
    /// The levels that work, once the strongest one does.
    support: OnceLock<SandboxSupport>,
}

struct SandboxFolders {
    caches: PathBuf,
    trial: PathBuf,
    /// A folder for the temporary files of each session.
    temporary: PathBuf,
    /// A folder for the files of each session that were put aside.
    aside: PathBuf,
    /// Whether the sessions, and so their files, end with the engine.
    end_with_engine: bool,
}

/// The session that a sandbox is for.
pub(crate) struct SandboxedSession {
    pub(crate) id: SessionId,
    pub(crate) workspace: PathBuf,
    /// The environment variables of its processes, or those of its client before an opening.
    pub(crate) env: Vec<(String, String)>,
    pub(crate) policy: PolicyMode,
    /// Whether the session hosts an agent, whose tools are not ours.
    pub(crate) hosts_agent: bool,
    pub(crate) settings: SandboxSettings,
}

/// The environment variables and the sandbox of a session's processes.
pub(crate) struct ProcessEnv {
    pub(crate) vars: Vec<(String, String)>,
    /// `None` if the session has no sandbox.
    pub(crate) sandbox: Option<Sandbox>,
}

impl Sandboxes {
    /// `is_saved` is whether the sessions are saved.
    pub(crate) fn new(
        folder: Option<PathBuf>,
        default: SandboxSettings,
        is_saved: bool,
        supervisor: Supervisor,
        own_folders: Vec<PathBuf>,
        host_rules: [Vec<String>; 2],
        runtime: runtime::Handle,
    ) -> Self {
        let folders = folder.map(|folder| {
            let engine = if is_saved { String::new() } else { fresh_id().as_str().to_owned() };
            SandboxFolders {
                caches: folder.join("caches"),
                trial: folder.join("trial"),
                temporary: folder.join("tmp").join(&engine),
                aside: folder.join("aside").join(&engine),
                end_with_engine: !is_saved,
            }
        });
        let support = OnceLock::new();
        let maker = Maker { folders, supervisor, own_folders, host_rules, support };
        Self { maker: Arc::new(maker), default, runtime }
    }

    /// The settings of sessions that are opened without any.
    pub(crate) fn default_settings(&self) -> SandboxSettings {
        self.default.clone()
    }

    /// The sandbox of a session; `None` if it has none. If the level does not work, the sandbox
    /// refuses every program.
    pub(crate) async fn sandbox(&self, session: SandboxedSession) -> Option<Sandbox> {
        let level = session.settings.level;
        if level == SandboxLevel::Off {
            return None;
        }
        let maker = Arc::clone(&self.maker);
        let made = self.runtime.spawn_blocking(move || maker.sandbox(&session)).await;
        made.unwrap_or_else(|error| Some(Sandbox::refusing(level, error.to_string())))
    }

    /// The environment of the processes of a session that is opened in this folder, with the allowed
    /// variables of its client.
    ///
    /// # Errors
    /// [`SessionError::Stopped`] if the engine stops meanwhile; [`SessionError::Sandbox`] after a
    /// panic.
    pub(crate) async fn process_env(
        &self,
        session: SandboxedSession,
        folder: PathBuf,
    ) -> Result<ProcessEnv, SessionError> {
        let level = session.settings.level;
        let vars = environment::allowed(session.env);
        let has_sandbox = level != SandboxLevel::Off;
        if !has_sandbox && vars.iter().all(|(name, _)| name != "PATH") {
            return Ok(ProcessEnv { vars, sandbox: None });
        }
        let maker = Arc::clone(&self.maker);
        let making = self.runtime.spawn_blocking(move || {
            let env = environment::with_direct_entries(vars, &folder);
            let session = SandboxedSession { env, ..session };
            let sandbox = if has_sandbox { maker.sandbox(&session) } else { None };
            ProcessEnv { vars: session.env, sandbox }
        });
        making.await.map_err(|error| match error.is_panic() {
            true => SessionError::Sandbox { level, message: error.to_string() },
            false => SessionError::Stopped,
        })
    }

    /// The environment of the processes of a new session, and its settings with a level that works in
    /// place of `auto`.
    ///
    /// # Errors
    /// [`SessionError::Sandbox`] if the settings are invalid or the level does not work;
    /// [`SessionError::Stopped`] if the engine stops meanwhile.
    pub(crate) async fn resolve(
        &self,
        session: SandboxedSession,
    ) -> Result<(SandboxSettings, ProcessEnv), SessionError> {
        let settings = session.settings.clone();
        let refused = |message| SessionError::Sandbox { level: settings.level, message };
        settings.check().map_err(refused)?;
        let folder = session.workspace.clone();
        let env = self.process_env(session, folder).await?;
        let level = match &env.sandbox {
            None => SandboxLevel::Off,
            Some(sandbox) => match sandbox.refusal() {
                None => sandbox.level(),
                Some(why) => return Err(refused(why.to_owned())),
            },
        };
        Ok((SandboxSettings { level, ..settings }, env))
    }

    /// Removes the files of a deleted session.
    pub(crate) async fn remove(&self, id: &SessionId) {
        let Some(SandboxFolders { temporary, aside, .. }) = &self.maker.folders else { return };
        let folders = [temporary, aside].map(|folder| folder.join(id.as_str()));
        // The session is deleted in any case.
        let _ = self.runtime.spawn_blocking(move || folders.iter().for_each(|f| remove(f))).await;
    }
}

impl Maker {
    fn sandbox(&self, session: &SandboxedSession) -> Option<Sandbox> {
        let level = session.settings.level;
        let Some(folders) = &self.folders else {
            return match level {
                SandboxLevel::Auto => None,
                _ => Some(Sandbox::refusing(level, "the program has no folder for sandboxes")),
            };
        };
        match self.profile(folders, session) {
            Ok(profile) => self.support(folders).sandbox(level, profile),
            Err(why) => Some(Sandbox::refusing(level, why)),
        }
    }

    /// The levels that work. They are tried again while the strongest one does not work, because
    /// the reason can be temporary.
    fn support(&self, folders: &SandboxFolders) -> SandboxSupport {
        if let Some(support) = self.support.get() {
            return support.clone();
        }
        let support = SandboxSupport::probe(&self.supervisor, &folders.trial);
        match support.why_not(SandboxLevel::Bwrap) {
            // Another thread may have tried them at the same time.
            None => drop(self.support.set(support.clone())),
            Some(bwrap) => {
                let landlock = support.why_not(SandboxLevel::Landlock);
                tracing::warn!(bwrap, landlock, "some levels of the sandbox do not work");
            }
        }
        support
    }

    fn profile(
        &self,
        folders: &SandboxFolders,
        session: &SandboxedSession,
    ) -> Result<SandboxProfile, String> {
        let SandboxedSession { id, workspace, env, policy, hosts_agent, settings } = session;
        // A client can name another home folder than that of the user.
        let named = env.iter().rev().find(|(name, _)| name == "HOME");
        let named = named.and_then(|(_, home)| Path::new(home).canonicalize().ok());
        let own = std::env::home_dir().and_then(|home| home.canonicalize().ok());
        let home = named.or_else(|| own.clone()).unwrap_or_else(|| "/".into());
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
        let caches = folders.caches.join(&hash[..16]);
        let temporary = folders.temporary.join(id.as_str());
        let profile = SandboxProfile::new(workspace, &home, temporary, caches)
            .writable(writable)
            .other_home(own)
            .hidden(settings.hidden.iter().map(expand))
            .own_folders(self.own_folders.clone())
            .host_rules(&self.host_rules[0], &self.host_rules[1])
            .network(settings.network)
            // The policy keeps our own tools from writing, but not those of an agent.
            .read_only(*hosts_agent && *policy == PolicyMode::Readonly);
        Ok(match policy {
            // It allows all changes.
            PolicyMode::All => profile,
            _ => profile.aside(folders.aside.join(id.as_str())),
        })
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        if let Some(SandboxFolders { temporary, aside, end_with_engine: true, .. }) = &self.folders
        {
            remove(temporary);
            // The user may miss a change that was denied.
            remove_empty(aside);
        }
    }
}

/// Removes a folder and those below it that contain no file.
fn remove_empty(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_empty(&entry.path());
        }
    }
    // Fails if there is a file.
    let _ = std::fs::remove_dir(folder);
}

/// Removes a folder, if it exists.
fn remove(folder: &Path) {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!(path = %folder.display(), %error, "can't remove files of a session");
        }
        Ok(()) | Err(_) => {}
    }
}
