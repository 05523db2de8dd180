//! A harness for tests: the real engine and actors, a model that says what the test wants, a recorder of
//! events. It waits for events, and a test fails if an event does not arrive within [`patience`].
//!
//! ```
//! use holdpoint_session::OpenSession;
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

#![expect(clippy::panic, clippy::expect_used, reason = "in tests, a panic is how a fault is told")]

mod model;
mod recorder;
mod tools;

use std::sync::Arc;

use holdpoint_common::{Limits, Supplies, Who};
use holdpoint_tools::{Supervisor, Toolbox};
use tempfile::TempDir;

use crate::engine::{Engine, EngineBuilder};
use crate::handle::SessionHandle;
use crate::model::Catalog;
use crate::open::OpenSession;
use crate::sessions::Sessions;
use crate::{AttachFrom, builtin_tools};

pub use holdpoint_tools::testing::{full, patience, rounds};
pub use model::{LiveReply, Script, ScriptedModel, reply};
pub use recorder::{Finished, Recorder};
pub use tools::{Probe, ProbeCall, ProbeTool};

/// A real engine with a scripted model, in a folder of its own.
pub struct Harness {
    /// The model of every session, unless opened with another.
    pub model: ScriptedModel,
    /// The built-in tools, and one that does what the test wants: `probe`.
    pub probe: Probe,
    /// The folder sessions work in; removed at the end.
    pub folder: TempDir,
    /// The engine.
    pub engine: Engine,
}

impl Harness {
    /// Starts one with small graces and the usual limits.
    #[must_use]
    pub fn start() -> Self {
        Self::with(|engine| engine)
    }

    /// Starts one with these limits.
    #[must_use]
    pub fn limited(limits: Limits) -> Self {
        Self::with(|engine| engine.limits(limits))
    }

    /// Starts one that is set up further.
    ///
    /// # Panics
    /// If the machine gives no folder or no threads.
    #[must_use]
    pub fn with(set_up: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Self {
        holdpoint_tools::testing::serve_as_supervisor();
        let model = ScriptedModel::default();
        let probe = Probe::default();
        let tool = probe.clone();
        let catalog = Catalog::default().with(Arc::new(model.clone()));
        let engine = Engine::builder(catalog).supervisor(Supervisor::ThisProgram).tools(move |_| toolbox(&tool));
        let engine = set_up(engine).start().expect("the engine starts");
        Self { model, probe, folder: TempDir::new().expect("a folder"), engine }
    }

    /// The sessions, for a client called `test`.
    #[must_use]
    pub fn sessions(&self) -> Sessions {
        let path = std::env::var("PATH").unwrap_or_default();
        self.engine.sessions(Who::named("test")).with_supplies(Supplies::env(vec![("PATH".to_owned(), path)]))
    }

    /// How a session in the harness's folder is opened: everything is allowed, asks wait.
    pub fn session(&self) -> OpenSession {
        OpenSession::in_folder(self.folder.path()).model(ScriptedModel::NAME).policy(holdpoint_common::PolicyMode::All)
    }

    /// Opens a session in the harness's folder.
    ///
    /// # Panics
    /// If it can't be opened.
    pub async fn open(&self) -> SessionHandle {
        self.sessions().open(self.session()).await.expect("the session opens")
    }

    /// Attaches from the start and records.
    ///
    /// # Panics
    /// If it can't attach.
    pub async fn watch(&self, session: &SessionHandle) -> Recorder {
        Recorder::of(session.attach(AttachFrom::start()).await.expect("attaches"))
    }
}

fn toolbox(probe: &Probe) -> Toolbox {
    let probe = probe.clone();
    builtin_tools().with(move || probe.tool())
}

/// Awaits something, at most for [`patience`].
///
/// # Panics
/// If it does not come.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(patience(), future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {:?} for {what}", patience()),
    }
}
