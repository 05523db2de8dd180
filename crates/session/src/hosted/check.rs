//! A check of a known agent without a session: it is started in the sandbox that a session would have,
//! in an empty folder, and has to introduce itself.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use holdpoint_common::{AgentSettings, Config, PolicyMode, SandboxLevel};
use holdpoint_tools::{
    BackgroundJobs, Policy, Processes, Sandbox, SourceContext, Supervisor, Workspace, environment,
};
use tokio::runtime;

use super::agent::Agent;
use super::known::KnownAgent;
use super::link::Link;
use super::needs::Needs;
use super::protocol::Introduction;
use super::start;
use crate::folders::Folders;
use crate::names::fresh_id;
use crate::sandboxes::{SandboxedSession, Sandboxes};

/// How long an agent may take until it has introduced itself.
const LIMIT: Duration = Duration::from_secs(60);

/// An agent that has introduced itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedAgent {
    /// Name and version of the program, if it reports them, at most 64 bytes each.
    pub program: Option<(String, String)>,
    /// Ways to log in that it offers, at most 8 of at most 64 bytes.
    pub logins: Vec<String>,
    /// Level of the sandbox.
    pub level: SandboxLevel,
}

/// Starts a known agent and waits until it has introduced itself, at most 60 seconds. `env` is the
/// environment of its user. The agent gets everything that its line of the table names.
///
/// # Errors
/// The reason why the agent can't be started or did not answer.
pub async fn check_agent(
    known: &KnownAgent,
    config: &Config,
    folders: &Folders,
    supervisor: Supervisor,
    env: &[(String, String)],
) -> Result<CheckedAgent, String> {
    let id = fresh_id();
    let folder = EmptyFolder::create(&format!("holdpoint-check-{id}"))?;
    let sandboxes = Sandboxes::new(
        Some(folders.sandbox()),
        config.sandbox.clone(),
        true,
        supervisor.clone(),
        folders.all(),
        [config.web.allow.clone(), config.web.deny.clone()],
        runtime::Handle::current(),
    );
    let process_env = environment::allowed(env.iter().cloned());
    let session = SandboxedSession {
        id: id.clone(),
        workspace: folder.0.clone(),
        env: process_env.clone(),
        policy: PolicyMode::default(),
        hosts_agent: true,
        settings: config.sandbox.clone(),
    };
    let sandbox = sandboxes.sandbox(session).await;
    let level = sandbox.as_ref().map_or(SandboxLevel::Off, Sandbox::level);
    let processes = Processes::labelled(supervisor, config.limits.grace(), id.as_str());
    let workspace = Workspace::new(folder.0.clone(), process_env, Policy::default());
    let context = SourceContext {
        processes: processes.sandboxed(sandbox.clone()),
        workspace: Arc::new(workspace.with_sandbox(sandbox)),
        background: BackgroundJobs::new(Arc::new(())),
    };
    let introduced = introduced(known, &context, env).await;
    sandboxes.remove(&id).await;
    let Introduction { program, logins, .. } = introduced?;
    Ok(CheckedAgent { program, logins, level })
}

async fn introduced(
    known: &KnownAgent,
    context: &SourceContext,
    env: &[(String, String)],
) -> Result<Introduction, String> {
    let settings = AgentSettings::from_command(vec![known.name.to_owned()]);
    let agent = Arc::new(Agent::new(&settings, env, None));
    let (determining, workspace) = (Arc::clone(&agent), Arc::clone(&context.workspace));
    let needs = tokio::task::spawn_blocking(move || Needs::of(&determining, &workspace)).await;
    let needs = needs.map_err(|panic| panic.to_string())??;
    let link = Link::shared(&settings);
    let mut link = link.lock().await;
    start::spawn(&mut link, &agent, &needs, context).await?;
    let why = match tokio::time::timeout(LIMIT, start::introduction(&mut link)).await {
        Ok(Ok(introduction)) => {
            let _ = link.end("it was checked".to_owned()).await;
            return Ok(introduction);
        }
        Ok(Err(why)) => why,
        Err(_) => format!("it did not answer within {} s", LIMIT.as_secs()),
    };
    let (why, _) = link.end(why).await;
    Err(why)
}

/// An empty folder, which is removed when it is dropped.
struct EmptyFolder(PathBuf);

impl EmptyFolder {
    fn create(name: &str) -> Result<Self, String> {
        let path = std::env::temp_dir().join(name);
        let failed = |error| format!("can't create {}: {error}", path.display());
        DirBuilder::new().mode(0o700).create(&path).map_err(failed)?;
        let real = path.canonicalize().map_err(failed)?;
        Ok(Self(real))
    }
}

impl Drop for EmptyFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "can't remove a folder");
        }
    }
}
