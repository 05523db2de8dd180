//! What the handlers of all requests share.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use holdpoint_common::{Limits, Timestamp, Who};
use holdpoint_session::store::Sqlite;
use holdpoint_session::{Engine, LoadMeter, Sessions};
use tracing_appender::non_blocking::ErrorCounter;

use super::connection::Connections;

/// What the handlers of all requests share. The engine is not in it: it ends when the daemon stops, whatever handlers
/// still run.
pub(super) struct Host {
    /// As the daemon itself sees them.
    pub(super) sessions: Sessions,
    pub(super) load: LoadMeter,
    pub(super) store: Sqlite,
    pub(super) limits: Limits,
    pub(super) connections: Connections,
    pub(super) since: Timestamp,
    pub(super) about: About,
}

/// What a daemon says of itself, and what does not change.
pub(super) struct About {
    /// Where it listens; the first is the usual one.
    pub(super) sockets: Vec<PathBuf>,
    pub(super) data: PathBuf,
    pub(super) log: PathBuf,
    /// Lines of the log that were left out.
    pub(super) log_lost: ErrorCounter,
    /// After how long without work and clients it stops.
    pub(super) idle_stop: Option<Duration>,
}

impl Host {
    pub(super) fn new(engine: &Engine, store: Sqlite, limits: Limits, about: About) -> Self {
        Self {
            sessions: engine.sessions(Who { name: "daemon".to_owned(), pid: Some(std::process::id()) }),
            load: engine.load_meter(),
            store,
            limits,
            connections: Connections::default(),
            since: SystemTime::now().into(),
            about,
        }
    }
}
