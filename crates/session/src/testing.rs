//! A harness for tests: the real engine and actors, a model with scripted answers, and a recorder
//! of events. The harness waits for events, and a test fails if an event does not arrive within
//! [`patience`].
//!
//! ```
//! use holdpoint_session::testing::{Harness, reply};
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let harness = Harness::start();
//! harness.model.then(reply().text("Hello."));
//! let session = harness.open().await;
//! let mut events = harness.watch(&session).await;
//! session.prompt("Say hello.").await.unwrap();
//! let end = events.turn_finished().await;
//! assert_eq!(end.outcome, holdpoint_common::Outcome::Done);
//! # });
//! ```

#![expect(clippy::panic, clippy::expect_used, reason = "tests report faults by panicking")]

mod layer;
mod model;
mod recorder;
mod tools;

use std::sync::Arc;

use holdpoint_common::{Limits, OpenSession, Supplies, Who};
use holdpoint_tools::{Supervisor, Toolbox};
use tempfile::TempDir;

use crate::engine::{Engine, EngineBuilder};
use crate::handle::SessionHandle;
use crate::model::Catalog;
use crate::sessions::Sessions;
use crate::{AttachFrom, builtin_tools};

pub use holdpoint_tools::testing::{full, patience, rounds};
pub use layer::{LogLayer, StoreLayer, Stored};
pub use model::{LiveReply, Script, ScriptedModel, reply};
pub use recorder::{Finished, Recorder};
pub use tools::{Probe, ProbeCall, ProbeTool};

/// A real engine with a scripted model, in a folder of its own.
pub struct Harness {
    /// The model of all sessions that name no other one.
    pub model: ScriptedModel,
    /// The control of the tool `probe`, which sessions have besides the built-in tools.
    pub probe: Probe,
    /// The folder that sessions work in, removed at the end.
    pub folder: TempDir,
    /// The engine of the harness.
    pub engine: Engine,
}

impl Harness {
    /// Starts a harness with the default limits.
    #[must_use]
    pub fn start() -> Self {
        Self::with(|engine| engine)
    }

    /// Starts a harness with these limits.
    #[must_use]
    pub fn limited(limits: Limits) -> Self {
        Self::with(|engine| engine.limits(limits))
    }

    /// Starts a harness whose engine is configured further.
    ///
    /// # Panics
    /// If the system provides no folder or no threads.
    #[must_use]
    pub fn with(set_up: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Self {
        holdpoint_tools::testing::serve_as_supervisor();
        let model = ScriptedModel::default();
        let probe = Probe::default();
        let tool = probe.clone();
        let catalog = Catalog::default().with(Arc::new(model.clone()));
        let engine = Engine::builder(catalog)
            .supervisor(Supervisor::ThisProgram)
            .tools(move |_| toolbox(&tool));
        let engine = set_up(engine).start().expect("the engine starts");
        Self { model, probe, folder: TempDir::new().expect("a folder"), engine }
    }

    /// The sessions, for a client called `test`.
    #[must_use]
    pub fn sessions(&self) -> Sessions {
        let path = std::env::var("PATH").unwrap_or_default();
        self.engine
            .sessions(Who::named("test"))
            .with_supplies(Supplies::env(vec![("PATH".to_owned(), path)]))
    }

    /// The options for a session in the harness's folder: everything is allowed, and asks wait.
    pub fn session(&self) -> OpenSession {
        OpenSession::in_folder(self.folder.path())
            .model(ScriptedModel::NAME)
            .policy(holdpoint_common::PolicyMode::All)
    }

    /// Opens a session in the harness's folder.
    ///
    /// # Panics
    /// If it can't be opened.
    pub async fn open(&self) -> SessionHandle {
        self.sessions().open(self.session()).await.expect("the session opens")
    }

    /// Attaches from the session's first event on, and records.
    ///
    /// # Panics
    /// If the client can't attach.
    pub async fn watch(&self, session: &SessionHandle) -> Recorder {
        Recorder::new(session.attach(AttachFrom::start()).await.expect("the client attaches"))
    }
}

fn toolbox(probe: &Probe) -> Toolbox {
    let probe = probe.clone();
    builtin_tools().with(move || probe.tool())
}

/// Awaits a future, for at most [`patience`].
///
/// # Panics
/// If the future is not ready by then.
pub async fn within_patience<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(patience(), future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {:?} for {what}", patience()),
    }
}
