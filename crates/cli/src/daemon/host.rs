//! What the handlers of all requests share.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use holdpoint_common::{Limits, Timestamp, Who};
use holdpoint_session::store::Sqlite;
use holdpoint_session::{Engine, LoadMeter, Sessions};
use holdpoint_tools::web::Browsers;
use serde_json::Value;
use tokio::sync::{Semaphore, watch};
use tracing_appender::non_blocking::ErrorCounter;

use super::api::MOST_IMPORTS;
use super::claim::Sockets;
use super::connection::Connections;
use super::desktop::Desktops;

/// How long streams may take to tell what is left to tell, and then to say that the daemon stops.
const LAST_FRAMES: Duration = Duration::from_millis(500);

/// What the handlers of all requests share. The engine is not in it: it ends when the daemon stops, whatever handlers
/// still run.
pub(super) struct Host {
    /// As the daemon itself sees them.
    pub(super) sessions: Sessions,
    pub(super) load: LoadMeter,
    pub(super) store: Sqlite,
    pub(super) limits: Limits,
    pub(super) browsers: Browsers,
    pub(super) connections: Connections,
    pub(super) desktops: Arc<Desktops>,
    /// Places for texts that are taken in.
    pub(super) importing: Semaphore,
    pub(super) since: Timestamp,
    pub(super) stopping: Stopping,
    pub(super) about: About,
}

/// What a daemon says of itself, and what does not change.
pub(super) struct About {
    /// Where it listens.
    pub(super) sockets: Sockets,
    pub(super) data: PathBuf,
    /// What it goes by of the configuration, by key.
    pub(super) config: BTreeMap<String, Value>,
    pub(super) log: PathBuf,
    /// Lines of the log that were left out.
    pub(super) log_lost: ErrorCounter,
    /// After how long without work and clients it stops.
    pub(super) idle_stop: Option<Duration>,
}

/// Tells streams that the daemon stops. They end with their sessions, whose ends they tell, or when there is no more
/// time for that.
#[derive(Debug, Default)]
pub(super) struct Stopping(watch::Sender<Stage>);

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    #[default]
    Serving,
    /// Sessions end.
    Ending,
    /// Whatever is still told is left.
    Over,
}

/// A stream's share in it: as long as it is held, the end is waited for.
pub(super) struct Told(watch::Receiver<Stage>);

impl Stopping {
    /// Sessions end from now on: streams that end say that the daemon was stopped.
    pub(super) fn begin(&self) {
        self.0.send_replace(Stage::Ending);
    }

    /// Waits until the streams have ended, which their sessions have; not for ever: a client may not read.
    pub(super) async fn end(&self) {
        if tokio::time::timeout(LAST_FRAMES, self.0.closed()).await.is_ok() {
            return;
        }
        self.0.send_replace(Stage::Over);
        if tokio::time::timeout(LAST_FRAMES, self.0.closed()).await.is_err() {
            tracing::info!("some clients do not read the end of their streams");
        }
    }

    /// For a stream that begins.
    pub(super) fn told(&self) -> Told {
        Told(self.0.subscribe())
    }
}

impl Told {
    /// Whether it has begun.
    pub(super) fn has_begun(&self) -> bool {
        *self.0.borrow() > Stage::Serving
    }

    /// Waits until there is no more time.
    pub(super) async fn over(&mut self) {
        // Without the daemon it is over, too.
        let _ = self.0.wait_for(|stage| *stage == Stage::Over).await;
    }
}

impl Host {
    pub(super) fn new(engine: &Engine, browsers: Browsers, store: Sqlite, limits: Limits, about: About) -> Self {
        Self {
            sessions: engine.sessions(Who { name: "daemon".to_owned(), pid: Some(std::process::id()) }),
            load: engine.load_meter(),
            store,
            limits,
            browsers,
            connections: Connections::default(),
            desktops: Arc::new(Desktops::new(environment())),
            importing: Semaphore::new(MOST_IMPORTS),
            since: SystemTime::now().into(),
            stopping: Stopping::default(),
            about,
        }
    }
}

/// The daemon's own environment.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}
