//! A real engine with sessions that use a scripted model server and work in a temporary folder.
#![allow(clippy::expect_used, clippy::panic, reason = "test support: a failure ends the test")]

use holdpoint_common::{Config, Limits, PolicyMode, Supplies, Who};
use holdpoint_session::model::Catalog;
use holdpoint_session::testing::Recorder;
use holdpoint_session::{AttachFrom, Engine, OpenSession, SessionHandle, Sessions};
use tempfile::TempDir;

use crate::model_server::{ModelServer, Wire};

/// The API key that every provider is configured with.
pub const KEY: &str = "sk-very-secret";

/// An engine and the model server of its sessions.
pub struct TestEngine {
    /// The model server that the sessions use.
    pub server: ModelServer,
    /// The folder that sessions work in, removed when dropped.
    pub folder: TempDir,
    engine: Engine,
    wire: Wire,
}

/// A session and a client that is attached to it.
pub struct TestSession {
    /// The session's handle.
    pub session: SessionHandle,
    /// The attached client, which records events.
    pub events: Recorder,
}

impl TestEngine {
    /// Starts an engine with models on this wire. It retries failed requests after one millisecond.
    #[must_use]
    pub fn start(wire: Wire) -> Self {
        Self::with(wire, "", |limits| limits)
    }

    /// Like [`start`](Self::start), with additional configuration and other limits.
    #[must_use]
    pub fn with(wire: Wire, config: &str, bounds: impl FnOnce(Limits) -> Limits) -> Self {
        let server = ModelServer::start();
        let provider = wire.provider();
        let reach = format!(
            "[providers.{provider}]\napi_key = '{KEY}'\nbase_url = '{}'\n",
            server.url(wire)
        );
        let config = Config::parse(&format!("{config}\n{reach}")).expect("a configuration");
        let catalog = Catalog::new(&config, |_| None);
        let limits = bounds(Limits { model_retry_ms: 1, ..config.limits.clone() });
        let engine = Engine::builder(catalog).limits(limits).start().expect("the engine starts");
        Self { server, folder: TempDir::new().expect("a folder"), engine, wire }
    }

    /// The engine's sessions, for a client called `test`.
    #[must_use]
    pub fn sessions(&self) -> Sessions {
        let path = std::env::var("PATH").unwrap_or_default();
        self.engine
            .sessions(Who::named("test"))
            .with_supplies(Supplies::env(vec![("PATH".to_owned(), path)]))
    }

    /// Opens a session that allows every tool call.
    ///
    /// # Panics
    /// If the session can't be opened.
    pub async fn open(&self) -> TestSession {
        self.open_with(|open| open).await
    }

    /// Like [`open`](Self::open), with further options.
    ///
    /// # Panics
    /// If the session can't be opened.
    pub async fn open_with(&self, more: impl FnOnce(OpenSession) -> OpenSession) -> TestSession {
        let open = OpenSession::in_folder(self.folder.path())
            .model(format!("{}/scripted", self.wire.provider()))
            .policy(PolicyMode::All);
        let session = self.sessions().open(more(open)).await.expect("the session opens");
        let events = Recorder::new(
            session.attach(AttachFrom::start()).await.expect("the test attaches to the session"),
        );
        TestSession { session, events }
    }

    /// The content of a file in the folder, or an empty string if it does not exist.
    #[must_use]
    pub fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }
}
