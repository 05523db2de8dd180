//! What the handlers of all requests share.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use holdpoint_common::{Limits, Timestamp};
use holdpoint_session::Sessions;
use holdpoint_session::store::Sqlite;
use tracing_appender::non_blocking::ErrorCounter;

use super::claim::Claim;
use super::log::Log;

/// What the handlers of all requests share. The engine is not in it: it ends when the daemon stops, whatever handlers
/// still run.
pub(super) struct Host {
    /// As the daemon itself sees them.
    pub(super) sessions: Sessions,
    pub(super) store: Sqlite,
    pub(super) limits: Limits,
    pub(super) socket: PathBuf,
    pub(super) data: PathBuf,
    pub(super) log: PathBuf,
    /// Lines of the log that were left out.
    pub(super) log_lost: ErrorCounter,
    pub(super) since: Timestamp,
}

impl Host {
    pub(super) fn new(
        sessions: Sessions,
        store: Sqlite,
        limits: Limits,
        data: &Path,
        claim: &Claim,
        log: &Log,
    ) -> Self {
        Self {
            sessions,
            store,
            limits,
            socket: claim.socket().path().to_owned(),
            data: data.to_owned(),
            log: log.path.clone(),
            log_lost: log.lost.clone(),
            since: SystemTime::now().into(),
        }
    }
}
