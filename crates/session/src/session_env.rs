//! The environment of sessions: the part that all sessions of an engine share, and each session's
//! own.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use holdpoint_common::{
    Limits, McpServers, PolicyError, PolicyMode, SessionError, SessionId, SessionSettings,
    Snapshot, Supplies,
};
use holdpoint_tools::{
    HttpClients, McpTools, Policy, Processes, Supervisor, ToolSource, ToolSpec, Toolbox, Widening,
    Workspace, environment,
};
use tokio::runtime;
use tokio::sync::watch;

use crate::context::{Bounds, Tokenizer};
use crate::gone_servers;
use crate::hosted::{Approvals, Hosted};
use crate::http_clients::{Authorities, http_clients};
use crate::instructions::UserFile;
use crate::model::{Catalog, Model, ModelRequest};
use crate::sandboxes::{ProcessEnv, SandboxedSession, Sandboxes};
use crate::state::{Moment, State};
use crate::store::SessionStore;
use crate::turn::Ticks;

pub(crate) type ToolboxMaker = Arc<dyn Fn(&SessionSettings) -> Toolbox + Send + Sync>;
pub(crate) type McpMaker = Arc<dyn Fn(McpServers, HttpClients) -> Box<dyn McpTools> + Send + Sync>;
/// Creates the source of a session's tools, if it needs one.
pub(crate) type SourceMaker =
    Arc<dyn Fn(McpServers, HttpClients) -> Option<Box<dyn ToolSource>> + Send + Sync>;

/// A source for the servers of a client alone, if there are any.
pub(crate) fn source_maker(make: McpMaker) -> SourceMaker {
    Arc::new(move |servers, http| if servers.is_empty() { None } else { Some(make(servers, http)) })
}

/// The store, catalog, limits and runtime that all sessions of an engine share.
pub(crate) struct EngineEnv {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) toolbox: ToolboxMaker,
    pub(crate) mcp: Option<SourceMaker>,
    pub(crate) authorities: Arc<Authorities>,
    pub(crate) approvals: Option<Arc<dyn Approvals>>,
    pub(crate) supervisor: Supervisor,
    pub(crate) own_folders: Vec<PathBuf>,
    pub(crate) sandboxes: Sandboxes,
    pub(crate) system: Arc<str>,
    pub(crate) user_instructions: Option<UserFile>,
    /// The descriptions of the tools of the first session. Other sessions share those that are equal.
    pub(crate) tools: OnceLock<SharedTools>,
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) text_ticks: Arc<Ticks>,
    pub(crate) runtime: runtime::Handle,
}

/// The descriptions of tools, and their size in a request in bytes.
#[derive(Clone)]
pub(crate) struct SharedTools {
    specs: Arc<[Arc<ToolSpec>]>,
    bytes: u64,
}

/// The model or the agent of a session.
pub(crate) enum Worker {
    /// A model, with the tools of the session.
    Model(Arc<dyn Model>),
    /// A hosted agent, with tools of its own.
    Agent(Hosted),
}

impl Worker {
    /// The name of the model.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Model(model) => model.name().to_owned(),
            Self::Agent(hosted) => hosted.model().name().to_owned(),
        }
    }
}

/// The environment of one session: its model, workspace, tools and limits.
#[derive(Clone)]
pub(crate) struct SessionEnv {
    pub(crate) id: SessionId,
    pub(crate) model: Arc<dyn Model>,
    /// The workspace with the current policy. All clones share it, so that a change of the policy
    /// reaches the open turn and the next actor.
    pub(crate) workspace: watch::Sender<Arc<Workspace>>,
    pub(crate) toolbox: ToolboxMaker,
    /// The descriptions of tools that sessions share.
    pub(crate) tool_specs: Arc<[Arc<ToolSpec>]>,
    /// The agent that the session hosts, which is also its model.
    pub(crate) hosted: Option<Hosted>,
    pub(crate) mcp: Option<SourceMaker>,
    pub(crate) mcp_servers: McpServers,
    /// The HTTP clients of the MCP servers.
    pub(crate) http: HttpClients,
    pub(crate) supervisor: Supervisor,
    pub(crate) limits: Arc<Limits>,
    pub(crate) system: Arc<str>,
    pub(crate) user_instructions: Option<UserFile>,
    pub(crate) fixed_bytes: u64,
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) text_ticks: Arc<Ticks>,
    pub(crate) runtime: runtime::Handle,
    /// Why the session is not saved, if the store is not durable.
    pub(crate) not_saved: Option<Arc<str>>,
}

impl SessionEnv {
    /// The bounds of a request; `None` if the model has no context of its own.
    pub(crate) fn bounds(&self) -> Option<Bounds> {
        let has_context = self.model.has_context();
        has_context.then(|| Bounds::new(&self.limits, &self.model.settings()))
    }
}

/// The reason that clients see if the store is not durable.
const IN_MEMORY: &str = "the session is kept in memory only and lost when its process ends";

impl EngineEnv {
    /// Whether facts of a session are missing from its log. In a store that is not durable, facts
    /// never count as saved, but its logs are complete.
    pub(crate) fn lacks_saves(&self, shown: &Snapshot) -> bool {
        !shown.saved && self.store.is_durable()
    }

    /// Why sessions are not saved, if the store is not durable.
    pub(crate) fn not_saved(&self) -> Option<Arc<str>> {
        (!self.store.is_durable()).then(|| IN_MEMORY.into())
    }

    /// The approximate size in bytes of the part that all requests of the session share: this
    /// system prompt and the tools. The tools differ little between sessions, so they are measured
    /// once.
    pub(crate) fn fixed_bytes(&self, settings: &SessionSettings, system: &str) -> u64 {
        self.shared_tools(settings).bytes + system.len() as u64
    }

    fn shared_tools(&self, settings: &SessionSettings) -> &SharedTools {
        self.tools.get_or_init(|| {
            let specs: Arc<[_]> = (self.toolbox)(settings).specs().cloned().collect();
            let request = ModelRequest { tools: Arc::clone(&specs), ..ModelRequest::default() };
            SharedTools { specs, bytes: request.fixed_bytes() }
        })
    }

    /// The workspace of a live session with another policy mode. Its sandbox depends on the mode.
    pub(crate) async fn with_policy_mode(
        &self,
        workspace: &Workspace,
        settings: &SessionSettings,
        mode: PolicyMode,
    ) -> Workspace {
        let session = sandboxed(settings, mode, workspace.env().to_vec());
        let sandbox = self.sandboxes.sandbox(session).await;
        workspace.clone().with_policy_mode(mode).with_sandbox(sandbox)
    }

    /// The environment of the processes of a session that is opened again.
    pub(crate) async fn process_env(
        &self,
        settings: &SessionSettings,
        root: &Path,
        supplies: &Supplies,
    ) -> Result<ProcessEnv, SessionError> {
        let session = sandboxed(settings, settings.policy, supplies.env.clone());
        self.sandboxes.process_env(session, root.to_owned()).await
    }

    pub(crate) fn build_env(
        &self,
        worker: Worker,
        settings: &SessionSettings,
        root: PathBuf,
        supplies: &Supplies,
        ProcessEnv { vars, sandbox }: ProcessEnv,
    ) -> Result<SessionEnv, PolicyError> {
        let home = vars.iter().find(|(name, _)| name == "HOME").map(|(_, home)| Path::new(home));
        let policy = Policy::new(settings.policy, &settings.rules, home)?
            .protecting(self.own_folders.clone());
        let display = environment::display(supplies.env.iter().cloned());
        let system =
            supplies.system_prompt.as_deref().map_or_else(|| Arc::clone(&self.system), Arc::from);
        let (model, hosted) = match worker {
            Worker::Model(model) => (model, None),
            Worker::Agent(hosted) => (hosted.model(), Some(hosted)),
        };
        let routes = supplies.models.as_ref();
        let routes = routes.map(|models| (models.proxies.clone(), models.certificates.clone()));
        let (proxies, certificates) = routes.unwrap_or_else(|| self.catalog.routes());
        let http = http_clients(Arc::clone(&self.authorities), proxies, certificates);
        Ok(SessionEnv {
            id: settings.id.clone(),
            model,
            workspace: watch::Sender::new(Arc::new(
                Workspace::new(root, vars, policy).with_display(display).with_sandbox(sandbox),
            )),
            toolbox: Arc::clone(&self.toolbox),
            tool_specs: Arc::clone(&self.shared_tools(settings).specs),
            hosted,
            mcp: self.mcp.clone(),
            mcp_servers: supplies.mcp.clone(),
            http,
            supervisor: self.supervisor.clone(),
            limits: Arc::clone(&self.limits),
            fixed_bytes: self.fixed_bytes(settings, &system),
            system,
            user_instructions: self.user_instructions.clone(),
            tokenizer: Arc::clone(&self.tokenizer),
            text_ticks: Arc::clone(&self.text_ticks),
            runtime: self.runtime.clone(),
            not_saved: self.not_saved(),
        })
    }
}

/// A session that has its settings, with these variables and in this policy mode.
fn sandboxed(
    settings: &SessionSettings,
    policy: PolicyMode,
    env: Vec<(String, String)>,
) -> SandboxedSession {
    SandboxedSession {
        id: settings.id.clone(),
        workspace: PathBuf::from(&settings.workspace),
        env,
        policy,
        hosts_agent: settings.agent.is_some(),
        settings: settings.sandbox.clone(),
    }
}

impl SessionEnv {
    /// Creates the tools of the session.
    pub(crate) fn make_toolbox(&self, state: &State) -> Toolbox {
        if let Some(hosted) = &self.hosted {
            return hosted.toolbox(state);
        }
        let gone = gone_servers::notice(state.servers_used(), &self.mcp_servers);
        let mut toolbox = (self.toolbox)(state.settings());
        toolbox.share_specs(&self.tool_specs);
        let toolbox = gone.into_iter().fold(toolbox, Toolbox::with_notice);
        match &self.mcp {
            Some(mcp) => match mcp(self.mcp_servers.clone(), Arc::clone(&self.http)) {
                Some(source) => toolbox.with_source(source),
                None => toolbox,
            },
            None if self.mcp_servers.is_empty() => toolbox,
            None => {
                tracing::warn!("the MCP servers are ignored: the engine has no client for them");
                toolbox
            }
        }
    }

    /// The workspace with the current policy.
    pub(crate) fn workspace(&self) -> Arc<Workspace> {
        Arc::clone(&self.workspace.borrow())
    }

    /// An empty set of processes, in the sandbox of the workspace with these widenings. Their label
    /// lets a daemon find the session of a client that it refuses.
    pub(crate) fn processes(
        &self,
        workspace: &Workspace,
        grace: Duration,
        widenings: &[Widening],
    ) -> Processes {
        let sandbox = workspace.sandbox().and_then(|sandbox| sandbox.widened(widenings));
        Processes::labelled(self.supervisor.clone(), grace, self.id.as_str()).sandboxed(sandbox)
    }

    /// The moment for a decision, where `next` is the number of its first fact.
    pub(crate) fn moment(&self, next: u64) -> Moment<'_> {
        Moment {
            now: SystemTime::now().into(),
            next,
            limits: &self.limits,
            fixed_bytes: self.fixed_bytes,
        }
    }
}
