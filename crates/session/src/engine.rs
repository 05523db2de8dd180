//! The engine: the threads that run sessions, models and tools. A process has one.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use actix::prelude::*;
use holdpoint_common::{Limits, McpServers, SandboxSettings, SessionSettings, Who};
use holdpoint_tools::{
    AskUser, EditFile, Glob, Grep, HttpClients, Jobs, ListDir, McpTools, ReadFile, Shell,
    Supervisor, Tasks, Toolbox, WriteFile,
};
use thiserror::Error;
use tokio::runtime;

#[cfg(feature = "folders")]
use crate::folder_servers::FolderSource;
use crate::hosted::Approvals;
use crate::instructions::UserFile;
use crate::local::{LoadMeter, RefusalLog, SessionLocator};
use crate::manager::{Manager, Shutdown};
use crate::model::Catalog;
use crate::sandboxes::Sandboxes;
#[cfg(not(feature = "folders"))]
use crate::session_env::source_maker;
use crate::session_env::{EngineEnv, McpMaker, ToolboxMaker};
use crate::sessions::Sessions;
use crate::store::{Memory, SessionStore};
use crate::turn::Ticks;

/// The number of threads that run session actors.
const SESSION_THREADS: usize = 2;
/// The number of threads that run turns and model streams. One thread parses half a million pieces
/// a second, and a stream costs 50% more CPU time if its connection and its runner wake each other
/// across threads.
const MODEL_THREADS: usize = 1;

/// The system prompt of every model, unless the embedder sets another.
const SYSTEM_PROMPT: &str = include_str!("../prompts/system.md");

/// Runs sessions. Dropping it interrupts their turns, ends their processes and joins the threads.
pub struct Engine {
    manager: Addr<Manager>,
    thread: Option<JoinHandle<()>>,
}

/// Configures an engine before it starts.
#[must_use]
pub struct EngineBuilder {
    catalog: Catalog,
    store: Arc<dyn SessionStore>,
    limits: Limits,
    toolbox: ToolboxMaker,
    mcp: Option<McpMaker>,
    #[cfg(feature = "folders")]
    trust: Option<crate::folders::TrustStore>,
    approvals: Option<Arc<dyn Approvals>>,
    supervisor: Supervisor,
    own_folders: Vec<PathBuf>,
    sandbox_folder: Option<PathBuf>,
    sandbox: SandboxSettings,
    host_rules: [Vec<String>; 2],
    system: Arc<str>,
    user_instructions: Option<UserFile>,
}

/// The error of an engine that could not start.
#[derive(Debug, Error)]
#[error("the engine could not start: {message}")]
pub struct StartError {
    message: String,
}

impl Engine {
    /// Builds an engine with these models, the built-in tools and a store in memory.
    pub fn builder(catalog: Catalog) -> EngineBuilder {
        EngineBuilder {
            catalog,
            store: Arc::new(Memory::default()),
            limits: Limits::default(),
            toolbox: Arc::new(|_| builtin_tools()),
            mcp: None,
            #[cfg(feature = "folders")]
            trust: None,
            approvals: None,
            supervisor: Supervisor::None,
            own_folders: Vec::new(),
            sandbox_folder: None,
            sandbox: SandboxSettings::default(),
            host_rules: Default::default(),
            system: SYSTEM_PROMPT.into(),
            user_instructions: None,
        }
    }

    /// The sessions of this engine, for a client with this name.
    #[must_use]
    pub fn sessions(&self, who: Who) -> Sessions {
        Sessions::local(self.manager.clone(), who)
    }

    /// A meter of the engine's load, for use from any thread.
    #[must_use]
    pub fn load_meter(&self) -> LoadMeter {
        LoadMeter::new(&self.manager)
    }

    /// Finds the machines of sessions.
    #[must_use]
    pub fn session_locator(&self) -> SessionLocator {
        SessionLocator::new(&self.manager)
    }

    /// Records clients that the embedder refuses because a tool call has started them.
    #[must_use]
    pub fn refusal_log(&self) -> RefusalLog {
        RefusalLog::new(&self.manager)
    }
}

/// The built-in tools of a session.
#[must_use]
pub fn builtin_tools() -> Toolbox {
    Toolbox::new()
        .with(Shell::default)
        .with(Jobs::default)
        .with(ReadFile::default)
        .with(WriteFile::default)
        .with(EditFile::default)
        .with(ListDir::default)
        .with(Glob::default)
        .with(Grep::default)
        .with(Tasks::default)
        .with(AskUser::default)
}

impl EngineBuilder {
    /// Sets the limits and the default sandbox of a configuration, and the folders and instructions
    /// of a program with these folders.
    #[cfg(feature = "folders")]
    pub fn configured(
        self,
        config: &holdpoint_common::Config,
        folders: &crate::folders::Folders,
    ) -> Self {
        self.limits(config.limits.clone())
            .own_folders(folders.all())
            .sandbox_folder(folders.sandbox())
            .sandbox(config.sandbox.clone())
            .host_rules(&config.web.allow, &config.web.deny)
            .user_instructions(folders.instructions_file(), crate::folders::open_unchangeable)
            .agents(folders.agents())
    }

    /// Sets the store that keeps the logs.
    pub fn store(self, store: impl SessionStore) -> Self {
        Self { store: Arc::new(store), ..self }
    }

    /// Sets the limits of the engine.
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Gives each session the tools that `make` returns.
    pub fn tools(self, make: impl Fn(&SessionSettings) -> Toolbox + Send + Sync + 'static) -> Self {
        Self { toolbox: Arc::new(make), ..self }
    }

    /// Sets the client of MCP servers: `make` returns the source of their tools, such as
    /// `holdpoint_tools::mcp::McpSource`, which also needs the HTTP clients. Without one, MCP servers
    /// in the supplies of clients are ignored.
    pub fn mcp(
        self,
        make: impl Fn(McpServers, HttpClients) -> Box<dyn McpTools> + Send + Sync + 'static,
    ) -> Self {
        Self { mcp: Some(Arc::new(make)), ..self }
    }

    /// Also starts the MCP servers that the folder of a session names in `.mcp.json`, if the user
    /// trusts their content. Otherwise the session reports that they are not started. Without this,
    /// or without a client of MCP servers, the file is not read.
    #[cfg(feature = "folders")]
    pub fn folder_servers(self, trust: crate::folders::TrustStore) -> Self {
        Self { trust: Some(trust), ..self }
    }

    /// Remembers the hosted agents that the user approves for all sessions. Without this, each session
    /// asks about a known agent.
    #[cfg(feature = "folders")]
    pub fn agents(self, agents: crate::folders::AgentStore) -> Self {
        Self { approvals: Some(Arc::new(agents)), ..self }
    }

    /// Sets the supervisor that ends the processes of tools. Without one, a process that leaves its
    /// process group is not ended, and no process is ended if this process is killed.
    pub fn supervisor(self, supervisor: Supervisor) -> Self {
        Self { supervisor, ..self }
    }

    /// Sets the folders of the program itself, such as its configuration and state. The files there
    /// control permissions, so under `ask` and `edits` every write to them asks, even if a rule
    /// allows it. See [`Policy::protecting`](holdpoint_tools::Policy::protecting).
    pub fn own_folders(self, folders: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Self { own_folders: folders.into_iter().map(Into::into).collect(), ..self }
    }

    /// Sets the rules for hosts that a command in a sandbox reaches after an ask, in the format of
    /// `web.allow` and `web.deny`. Hosts in a private network need a rule that allows them.
    pub fn host_rules(self, allow: &[String], deny: &[String]) -> Self {
        Self { host_rules: [allow.to_vec(), deny.to_vec()], ..self }
    }

    /// Sets the folder for the temporary files and caches of sandboxes. It is created when the first
    /// sandbox is used. Without a folder, the only level of a sandbox is `off`.
    pub fn sandbox_folder(self, folder: impl Into<PathBuf>) -> Self {
        Self { sandbox_folder: Some(folder.into()), ..self }
    }

    /// Sets the sandbox of the sessions that are opened without one. By default, it has the
    /// strongest level that works.
    pub fn sandbox(self, settings: SandboxSettings) -> Self {
        Self { sandbox: settings, ..self }
    }

    /// Sets the system prompt of all models.
    pub fn system_prompt(self, text: impl Into<Arc<str>>) -> Self {
        Self { system: text.into(), ..self }
    }

    /// Sets the user's own instruction file, which need not exist. Each turn opens it with `open`,
    /// which must not block, and should refuse a file that another user can change, as
    /// `folders::open_unchangeable` does: the model takes its text as the user's words.
    pub fn user_instructions(
        self,
        path: impl Into<PathBuf>,
        open: fn(&Path) -> io::Result<File>,
    ) -> Self {
        Self { user_instructions: Some(UserFile { path: path.into(), open }), ..self }
    }

    /// Starts the engine and its threads.
    ///
    /// # Errors
    /// [`StartError`] if a limit is invalid, or the system provides no threads.
    pub fn start(self) -> Result<Engine, StartError> {
        let failed = |error: &dyn std::fmt::Display| StartError { message: error.to_string() };
        self.limits.check().map_err(|error| failed(&error))?;
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(MODEL_THREADS)
            .thread_name("holdpoint-model")
            .enable_all()
            .build()
            .map_err(|error| failed(&error))?;
        let is_saved = self.store.is_durable();
        let text_interval = self.limits.text_interval();
        #[cfg(feature = "folders")]
        let mcp = FolderSource::maker(self.mcp, self.trust);
        #[cfg(not(feature = "folders"))]
        let mcp = self.mcp.map(source_maker);
        let engine = EngineEnv {
            catalog: Arc::new(self.catalog),
            store: self.store,
            limits: Arc::new(self.limits),
            toolbox: self.toolbox,
            mcp,
            authorities: Arc::default(),
            sandboxes: Sandboxes::new(
                self.sandbox_folder,
                self.sandbox,
                is_saved,
                self.supervisor.clone(),
                self.own_folders.clone(),
                self.host_rules,
                runtime.handle().clone(),
            ),
            approvals: self.approvals,
            supervisor: self.supervisor,
            own_folders: self.own_folders,
            system: self.system,
            user_instructions: self.user_instructions,
            tools: OnceLock::new(),
            tokenizer: Arc::default(),
            text_ticks: Arc::new(Ticks::every(text_interval)),
            runtime: runtime.handle().clone(),
        };
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let thread =
            std::thread::Builder::new().name("holdpoint-engine".to_owned()).spawn(move || {
                let system = System::new();
                system.block_on(async {
                    let arbiters = (0..SESSION_THREADS).map(|_| Arbiter::new()).collect();
                    let context = Context::<Manager>::new();
                    // If the caller is gone, the address is dropped, which ends the manager.
                    let _ = sender.send(context.address());
                    let manager =
                        actix_rt::spawn(context.into_future(Manager::new(engine, arbiters)));
                    actix_rt::spawn(async move {
                        // The engine is useless without its manager, and its drop waits for this
                        // thread.
                        if manager.await.is_err() {
                            tracing::error!("the manager failed; the engine stops");
                        }
                        System::current().stop();
                    });
                });
                if let Err(error) = system.run() {
                    tracing::error!(%error, "the engine's actor system failed");
                }
                runtime.shutdown_background();
            });
        let thread = Some(thread.map_err(|error| failed(&error))?);
        let manager = receiver.into_iter().next().ok_or_else(|| failed(&"its thread ended"))?;
        Ok(Engine { manager, thread })
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.manager.do_send(Shutdown);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the engine's thread panicked");
        }
    }
}
