//! The daemon as a command sees it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdpoint_session::remote::http::{self, HttpError, Method, StatusCode};

use super::start;
use super::status::Status;
use crate::error::CliError;
use crate::folders::Folders;

/// How long it may take to tell how it is.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of what it tells of itself, at most.
const STATUS: usize = 1024 * 1024;

/// How often it is started if it ends before it has told how it is.
const TRIES: usize = 3;

/// A daemon that runs.
#[derive(Debug)]
pub(crate) struct Daemon {
    /// Where it listens.
    #[expect(dead_code, reason = "for the commands that speak to sessions, which come next")]
    pub(crate) socket: PathBuf,
    /// What it has told of itself.
    pub(crate) status: Status,
}

impl Daemon {
    /// The daemon of these folders, of whatever version; nothing if none runs.
    ///
    /// # Errors
    /// One is there, but can't be reached or does not answer.
    pub(crate) async fn find(folders: &Folders) -> Result<Option<Self>, CliError> {
        let socket = folders.socket()?;
        let silent = |what: String| CliError::failed(what).hint("`holdpoint daemon restart` starts another one");
        match tokio::time::timeout(PATIENCE, ask(&socket)).await {
            Ok(Ok(status)) => Ok(Some(Self { status: status?, socket })),
            Ok(Err(error)) if is_nobody(&error) => Ok(None),
            Ok(Err(error)) => Err(silent(format!("the daemon does not answer: {error}"))),
            Err(_) => Err(silent(format!("the daemon has not answered for {} s", PATIENCE.as_secs()))),
        }
    }

    /// The daemon of these folders; started if none runs. Of a version that this program can speak to.
    ///
    /// # Errors
    /// It can't be reached or started, speaks another version, or keeps its sessions elsewhere.
    pub(crate) async fn connect_or_start(folders: &Folders) -> Result<Self, CliError> {
        for _ in 0..TRIES {
            if let Some(daemon) = Self::find(folders).await? {
                daemon.status.check(folders)?;
                return Ok(daemon);
            }
            // Nothing else waits on this thread.
            start::start(folders)?;
        }
        Err(CliError::failed("the daemon ends as soon as it is started")
            .hint(format!("its log is in {}", folders.logs().display())))
    }
}

/// Asks the daemon how it is.
async fn ask(socket: &Path) -> Result<Result<Status, CliError>, HttpError> {
    let response = http::request(socket, Method::GET, "/v1/status", &[], None).await?;
    let code = response.status();
    let body = response.whole(STATUS).await?;
    Ok(match code {
        StatusCode::OK => serde_json::from_slice(&body).map_err(|error| strange(socket, &error)),
        StatusCode::FORBIDDEN => {
            Err(CliError::failed(format!("the daemon at {} serves another user", socket.display()))
                .hint("name another place by --state-dir"))
        }
        code => Err(strange(socket, &code)),
    })
}

/// What listens there is no daemon of ours.
fn strange(socket: &Path, why: &dyn std::fmt::Display) -> CliError {
    CliError::failed(format!("what listens on {} does not answer as a daemon does: {why}", socket.display()))
        .hint("name another place by --state-dir")
}

/// Whether nobody listens there, or no longer.
fn is_nobody(error: &HttpError) -> bool {
    match error {
        HttpError::Unreachable { source, .. } => {
            matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
        }
        HttpError::Broken(error) => !error.is_parse(),
        _ => false,
    }
}
