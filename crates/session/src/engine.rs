//! The engine: the threads that sessions, models and tools run on. One per process.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use actix::prelude::*;
use holdpoint_common::{Limits, SessionSettings, Who};
use holdpoint_tools::{
    AskUser, EditFile, Glob, Grep, Jobs, ListDir, ReadFile, Shell, Supervisor, Tasks, Toolbox, WriteFile,
};
use thiserror::Error;
use tokio::runtime;

use crate::local::LoadMeter;
use crate::manager::{Manager, Shutdown};
use crate::model::Catalog;
use crate::outfit::{Base, ToolboxMaker};
use crate::sessions::Sessions;
use crate::store::{Memory, SessionStore};

/// Threads that sessions' actors run on.
const SESSION_THREADS: usize = 2;
/// Threads that turns' runners and models' streams run on. One parses half a million pieces a second, and a stream
/// whose connection and runner wake each other across threads costs half as much CPU again.
const MODEL_THREADS: usize = 1;

/// What is told to every model, unless the embedder says otherwise.
const SYSTEM_PROMPT: &str = include_str!("../prompts/system.md");

/// Runs sessions. Dropping it ends them: turns are interrupted, processes end, threads are joined.
pub struct Engine {
    manager: Addr<Manager>,
    thread: Option<JoinHandle<()>>,
}

/// Sets an engine up.
#[must_use]
pub struct EngineBuilder {
    catalog: Catalog,
    store: Arc<dyn SessionStore>,
    limits: Limits,
    toolbox: ToolboxMaker,
    supervisor: Supervisor,
    own_folders: Vec<PathBuf>,
    system: Arc<str>,
}

/// Why an engine could not start.
#[derive(Debug, Error)]
#[error("the engine could not start: {message}")]
pub struct StartError {
    message: String,
}

impl Engine {
    /// An engine with these models, the built-in tools, and a store that lasts as long as the process.
    pub fn builder(catalog: Catalog) -> EngineBuilder {
        EngineBuilder {
            catalog,
            store: Arc::new(Memory::default()),
            limits: Limits::default(),
            toolbox: Arc::new(|_| builtin_tools()),
            supervisor: Supervisor::None,
            own_folders: Vec::new(),
            system: SYSTEM_PROMPT.into(),
        }
    }

    /// The sessions, for a client of this name.
    #[must_use]
    pub fn sessions(&self, who: Who) -> Sessions {
        Sessions::local(self.manager.clone(), who)
    }

    /// Tells what there is to do, also from other threads.
    #[must_use]
    pub fn load_meter(&self) -> LoadMeter {
        LoadMeter::new(&self.manager)
    }
}

/// The tools that are built in.
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
    /// Keeps logs here.
    pub fn store(self, store: impl SessionStore) -> Self {
        Self { store: Arc::new(store), ..self }
    }

    /// Keeps these bounds.
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Gives each session the tools that `make` makes.
    pub fn tools(self, make: impl Fn(&SessionSettings) -> Toolbox + Send + Sync + 'static) -> Self {
        Self { toolbox: Arc::new(make), ..self }
    }

    /// Ends tools' processes by this. Without it, what leaves its process group is not ended, and nothing
    /// is when this process is killed.
    pub fn supervisor(self, supervisor: Supervisor) -> Self {
        Self { supervisor, ..self }
    }

    /// The folders of the program that runs it: its configuration, its state. Whoever writes there says what may be done, so
    /// under `ask` and `edits` that asks, whatever is allowed, see [`Policy::protecting`](holdpoint_tools::Policy::protecting).
    pub fn own_folders(self, folders: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Self { own_folders: folders.into_iter().map(Into::into).collect(), ..self }
    }

    /// Tells models this about themselves.
    pub fn system_prompt(self, text: impl Into<Arc<str>>) -> Self {
        Self { system: text.into(), ..self }
    }

    /// Starts it.
    ///
    /// # Errors
    /// [`StartError`] if a limit makes no sense, or the machine gives no threads.
    pub fn start(self) -> Result<Engine, StartError> {
        let failed = |error: &dyn std::fmt::Display| StartError { message: error.to_string() };
        self.limits.check().map_err(|error| failed(&error))?;
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(MODEL_THREADS)
            .thread_name("holdpoint-model")
            .enable_all()
            .build()
            .map_err(|error| failed(&error))?;
        let base = Base {
            catalog: Arc::new(self.catalog),
            store: self.store,
            limits: Arc::new(self.limits),
            toolbox: self.toolbox,
            supervisor: self.supervisor,
            own_folders: self.own_folders,
            system: self.system,
            tool_bytes: OnceLock::new(),
            tokenizer: Arc::default(),
            runtime: runtime.handle().clone(),
        };
        let (up, manager) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("holdpoint-engine".to_owned()).spawn(move || {
            let system = System::new();
            system.block_on(async {
                let arbiters = (0..SESSION_THREADS).map(|_| Arbiter::new()).collect();
                let context = Context::<Manager>::new();
                // If nobody waits any more, the address is dropped, and that ends it.
                let _ = up.send(context.address());
                let manager = actix_rt::spawn(context.into_future(Manager::new(base, arbiters)));
                actix_rt::spawn(async move {
                    // Without its manager the engine is of no use, and whoever drops it waits for this.
                    if manager.await.is_err() {
                        tracing::error!("the manager failed, the engine stops");
                    }
                    System::current().stop();
                });
            });
            if let Err(error) = system.run() {
                tracing::error!(%error, "the engine's system failed");
            }
            runtime.shutdown_background();
        });
        let thread = Some(thread.map_err(|error| failed(&error))?);
        let manager = manager.into_iter().next().ok_or_else(|| failed(&"its thread ended"))?;
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
