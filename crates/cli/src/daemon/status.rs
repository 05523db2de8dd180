//! What the daemon says of itself: `GET /v1/status`.

use holdpoint_common::{SessionStatus, SessionSummary, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::API_VERSION;
use super::host::Host;
use crate::error::CliError;
use crate::folders::Folders;

/// The daemon itself. What a daemon of another version leaves out is taken as nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    /// The program's version.
    pub(crate) version: String,
    /// The version of what is said over its socket.
    pub(crate) api: u32,
    /// Its process id.
    pub(crate) pid: u32,
    /// The socket it listens on.
    pub(crate) socket: String,
    /// The folder it keeps sessions in.
    pub(crate) data: String,
    /// Since when it runs.
    pub(crate) since: Timestamp,
    /// Its log.
    pub(crate) log: String,
    /// Lines that were left out of it, because more came than could be written.
    pub(crate) log_lines_lost: usize,
    /// Sessions, counted.
    pub(crate) sessions: Counts,
    /// What was found damaged and kept aside, in words.
    pub(crate) damaged: Vec<String>,
}

/// Sessions, counted by what they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Counts {
    /// Live ones.
    pub(crate) live: usize,
    /// Of these, those with work to do.
    pub(crate) busy: usize,
    /// Of these, those that wait for an answer.
    pub(crate) waiting: usize,
}

/// The daemon now.
pub(super) async fn of(host: &Host) -> Status {
    let sessions = host.sessions.list().await.unwrap_or_else(|error| {
        tracing::error!(%error, "the sessions can't be counted");
        Vec::new()
    });
    Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        api: API_VERSION,
        pid: std::process::id(),
        socket: host.socket.display().to_string(),
        data: host.data.display().to_string(),
        since: host.since,
        log: host.log.display().to_string(),
        log_lines_lost: host.log_lost.dropped_lines(),
        sessions: count(&sessions),
        damaged: host.store.salvaged().iter().map(|one| one.kept_at.display().to_string()).collect(),
    }
}

fn count(sessions: &[SessionSummary]) -> Counts {
    let live = || sessions.iter().filter(|session| session.live);
    Counts {
        live: live().count(),
        busy: live().filter(|session| session.status != SessionStatus::Idle).count(),
        waiting: live().filter(|session| session.waits_for.is_some()).count(),
    }
}

impl Status {
    /// Whether this program can speak to it, and it is the daemon of these folders.
    pub(super) fn check(&self, folders: &Folders) -> Result<(), CliError> {
        let Self { version, pid, .. } = self;
        if self.api != API_VERSION {
            let ours = env!("CARGO_PKG_VERSION");
            let hint = match self.api < API_VERSION {
                true => "`holdpoint daemon restart` starts this program's: turns that run are interrupted",
                false => "a newer holdpoint has started it: use that one",
            };
            return Err(CliError::failed(format!(
                "the daemon (pid {pid}) is holdpoint {version}, which this one ({ours}) can't speak to"
            ))
            .hint(hint));
        }
        if std::path::Path::new(&self.data) != folders.data() {
            let what = format!(
                "the daemon (pid {pid}) on {} keeps its sessions in {}, not in {}",
                self.socket,
                self.data,
                folders.data().display()
            );
            return Err(CliError::failed(what).hint("name another place by --state-dir"));
        }
        Ok(())
    }
}
