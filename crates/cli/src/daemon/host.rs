//! The state that all request handlers share.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use holdpoint_common::{Limits, Supplies, Timestamp, Who};
use holdpoint_session::folders::Folders;
use holdpoint_session::model::Catalog;
use holdpoint_session::{Engine, LoadMeter, SessionLocator, Sessions};
use holdpoint_tools::web::Browsers;
use serde_json::Value;
use tokio::sync::{Semaphore, watch};
use tracing_appender::non_blocking::ErrorCounter;

use super::claim::Sockets;
use super::connection::Connections;
use super::desktop::Desktops;
use super::error::ApiError;
use super::peer::Peers;
use super::store::Store;
use crate::sessions;

/// How long streams may take to send their last events, and then to send their end.
const LAST_FRAMES_TIMEOUT: Duration = Duration::from_millis(500);

/// The maximum number of concurrent imports.
pub(super) const MAX_IMPORTS: usize = 4;

/// The state that all request handlers share. It does not include the engine, which ends when the
/// daemon stops even if handlers still run.
pub(super) struct Host {
    /// All sessions, with the daemon itself as the client.
    pub(super) sessions: Sessions,
    pub(super) load: LoadMeter,
    pub(super) locator: SessionLocator,
    pub(super) store: Store,
    pub(super) limits: Limits,
    pub(super) browsers: Browsers,
    /// The connections of processes of this machine.
    pub(super) connections: Connections,
    /// Those of the other machines of the fleet, which take no places of the former.
    pub(super) machine_connections: Connections,
    pub(super) peers: Peers,
    pub(super) desktops: Arc<Desktops>,
    /// Limits the number of concurrent imports.
    pub(super) importing: Arc<Semaphore>,
    /// When the daemon started.
    pub(super) since: Timestamp,
    pub(super) stopping: Stopping,
    pub(super) about: About,
}

/// The constant parts of the daemon's status.
pub(super) struct About {
    pub(super) sockets: Sockets,
    pub(super) folders: Folders,
    /// The parts of the configuration that the daemon depends on, by key.
    pub(super) config: BTreeMap<String, Value>,
    pub(super) log: PathBuf,
    /// Counts the lines missing in the log.
    pub(super) log_lost: ErrorCounter,
    /// The time without work and clients after which the daemon stops.
    pub(super) idle_stop: Option<Duration>,
}

/// Notifies streams that the daemon stops. A stream ends after it has sent the end of its session,
/// or when the time for that is over.
#[derive(Debug, Default)]
pub(super) struct Stopping(watch::Sender<StopProgress>);

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StopProgress {
    #[default]
    Serving,
    /// Sessions are ending.
    Ending,
    /// The time is over: streams end, even with events left to send.
    Over,
}

/// A stream's subscription. The daemon does not end until all are dropped, or the time is over.
pub(super) struct StopSubscription(watch::Receiver<StopProgress>);

impl Stopping {
    /// Announces that sessions end. Streams that end from now on say that the daemon was stopped.
    pub(super) fn begin(&self) {
        self.0.send_replace(StopProgress::Ending);
    }

    /// Waits for the streams, which end with their sessions. The wait is limited, because a client
    /// may not read.
    pub(super) async fn end(&self) {
        if tokio::time::timeout(LAST_FRAMES_TIMEOUT, self.0.closed()).await.is_ok() {
            return;
        }
        self.0.send_replace(StopProgress::Over);
        if tokio::time::timeout(LAST_FRAMES_TIMEOUT, self.0.closed()).await.is_err() {
            tracing::info!("some clients do not read the end of their streams");
        }
    }

    /// Subscribes a new stream.
    pub(super) fn subscribe(&self) -> StopSubscription {
        StopSubscription(self.0.subscribe())
    }
}

impl StopSubscription {
    /// Waits until sessions are ending.
    pub(super) async fn begun(&mut self) {
        // If the daemon is gone, it has ended them.
        let _ = self.0.wait_for(|progress| *progress > StopProgress::Serving).await;
    }

    /// Whether sessions are ending.
    pub(super) fn has_begun(&self) -> bool {
        *self.0.borrow() > StopProgress::Serving
    }

    /// Waits until the time is over.
    pub(super) async fn deadline_passed(&mut self) {
        // If the daemon is gone, the time is over as well.
        let _ = self.0.wait_for(|progress| *progress == StopProgress::Over).await;
    }
}

impl Host {
    pub(super) fn new(
        engine: &Engine,
        peers: Peers,
        browsers: Browsers,
        store: Store,
        limits: Limits,
        about: About,
    ) -> Self {
        Self {
            sessions: engine
                .sessions(Who { name: "daemon".to_owned(), pid: Some(std::process::id()) }),
            load: engine.load_meter(),
            locator: engine.session_locator(),
            store,
            limits,
            browsers,
            connections: Connections::default(),
            machine_connections: Connections::default(),
            peers,
            desktops: Arc::new(Desktops::new(environment())),
            importing: Arc::new(Semaphore::new(MAX_IMPORTS)),
            since: SystemTime::now().into(),
            stopping: Stopping::default(),
            about,
        }
    }

    /// The supplies of sessions that clients of other machines open: the configuration of this machine,
    /// and the environment of the daemon.
    pub(super) fn supplies(&self) -> Result<Supplies, ApiError> {
        let config = self.about.folders.config().map_err(ApiError::failed)?;
        let catalog = Catalog::new(&config, |name| std::env::var(name).ok());
        Ok(sessions::supplies(&config, &catalog))
    }

    /// The number of open connections, of processes and of other machines.
    pub(super) fn open_connections(&self) -> usize {
        self.connections.open() + self.machine_connections.open()
    }
}

/// The daemon's own environment, without variables that are not UTF-8.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}
