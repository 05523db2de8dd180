//! A real engine whose sessions talk to a scripted model server, in a folder of their own.
#![allow(clippy::expect_used, clippy::panic, reason = "a part of tests: what goes wrong here ends the test")]

use holdpoint_common::{Config, Limits, PolicyMode, Supplies, Who};
use holdpoint_session::model::Catalog;
use holdpoint_session::testing::Recorder;
use holdpoint_session::{AttachFrom, Engine, OpenSession, SessionHandle, Sessions};
use tempfile::TempDir;

use crate::model_server::{ModelServer, Wire};

/// The key that every provider is set up with.
pub const KEY: &str = "sk-very-secret";

/// An engine, and the server its sessions talk to.
pub struct World {
    /// The server.
    pub server: ModelServer,
    /// The folder that sessions work in; removed at the end.
    pub folder: TempDir,
    engine: Engine,
    wire: Wire,
}

/// A session, and what it tells.
pub struct Talk {
    /// The session.
    pub session: SessionHandle,
    /// An attached client.
    pub events: Recorder,
}

impl World {
    /// An engine that talks on this wire. Tries of a request are a millisecond apart.
    #[must_use]
    pub fn start(wire: Wire) -> Self {
        Self::with(wire, "", |limits| limits)
    }

    /// The same with more in the configuration, and other bounds.
    #[must_use]
    pub fn with(wire: Wire, config: &str, bounds: impl FnOnce(Limits) -> Limits) -> Self {
        let server = ModelServer::start();
        let provider = wire.provider();
        let reach = format!("[providers.{provider}]\napi_key = '{KEY}'\nbase_url = '{}'\n", server.url(wire));
        let config = Config::parse(&format!("{config}\n{reach}")).expect("a configuration");
        let catalog = Catalog::new(&config, |_| None);
        let limits = bounds(Limits { model_retry_ms: 1, ..config.limits.clone() });
        let engine = Engine::builder(catalog).limits(limits).start().expect("the engine starts");
        Self { server, folder: TempDir::new().expect("a folder"), engine, wire }
    }

    /// The sessions, for a client called `test`.
    #[must_use]
    pub fn sessions(&self) -> Sessions {
        let path = std::env::var("PATH").unwrap_or_default();
        self.engine.sessions(Who::named("test")).with_supplies(Supplies::env(vec![("PATH".to_owned(), path)]))
    }

    /// A session in which everything is allowed.
    ///
    /// # Panics
    /// If it can't be opened.
    pub async fn open(&self) -> Talk {
        self.open_with(|open| open).await
    }

    /// The same, opened with more.
    ///
    /// # Panics
    /// If it can't be opened.
    pub async fn open_with(&self, more: impl FnOnce(OpenSession) -> OpenSession) -> Talk {
        let open = OpenSession::in_folder(self.folder.path())
            .model(format!("{}/scripted", self.wire.provider()))
            .policy(PolicyMode::All);
        let session = self.sessions().open(more(open)).await.expect("the session opens");
        let events = Recorder::of(session.attach(AttachFrom::start()).await.expect("it can be attached to"));
        Talk { session, events }
    }

    /// What a file in the folder says; nothing if it is not there.
    #[must_use]
    pub fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }
}
