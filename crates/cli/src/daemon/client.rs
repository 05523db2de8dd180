//! A command's view of the daemon.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use holdpoint_common::api::{API_VERSION, DaemonStatus, ErrorBody, RequestError};
use holdpoint_common::{Config, SessionError};
use holdpoint_session::folders::Folders;
use holdpoint_session::remote::http::{self, HttpError, Method, StatusCode};

use super::{claim, start};
use crate::error::CliError;

/// The timeout for the daemon's status.
const STATUS_TIMEOUT: Duration = Duration::from_secs(10);

/// How long to look for a daemon that lives but is not found. It makes its sockets again within a
/// second.
const REAPPEAR_TIMEOUT: Duration = Duration::from_secs(2);

/// The maximum size of a status in bytes.
const MAX_STATUS_BYTES: usize = 1024 * 1024;

/// How many times the daemon is started if it ends before it has sent its status.
const MAX_STARTS: usize = 3;

/// The hint to make the daemon read the configuration again.
pub(crate) const RESTART_HINT: &str =
    "`holdpoint daemon restart` makes the daemon read it again; running turns are interrupted";

/// A running daemon: its socket, and the status that it sent.
#[derive(Debug)]
pub(crate) struct Daemon {
    pub(crate) socket: PathBuf,
    pub(crate) status: DaemonStatus,
}

impl Daemon {
    /// Finds the daemon of these folders, of any version. Returns `None` if none runs.
    ///
    /// # Errors
    /// Fails if there is a daemon that can't be reached or does not answer.
    pub(crate) async fn find(folders: &Folders) -> Result<Option<Self>, CliError> {
        let silent = |message: String| {
            CliError::failed(message).hint("`holdpoint daemon restart` replaces it")
        };
        for socket in folders.sockets()? {
            return match tokio::time::timeout(STATUS_TIMEOUT, request_status(&socket)).await {
                Ok(Ok(status)) => Ok(Some(Self { status: status?, socket })),
                Ok(Err(error)) if has_no_listener(&error) => continue,
                Ok(Err(error)) => Err(silent(format!("the daemon does not answer: {error}"))),
                Err(_) => Err(silent(format!(
                    "the daemon has not answered for {} s",
                    STATUS_TIMEOUT.as_secs()
                ))),
            };
        }
        Ok(None)
    }

    /// Like [`find`](Self::find), but waits for a daemon that lives and makes its sockets again.
    /// Returns `None` if no process holds the sessions of these folders.
    ///
    /// # Errors
    /// Fails like `find`, or if a process holds the sessions and can't be reached.
    pub(crate) async fn find_living(folders: &Folders) -> Result<Option<Self>, CliError> {
        let deadline = Instant::now() + REAPPEAR_TIMEOUT;
        loop {
            if let Some(daemon) = Self::find(folders).await? {
                return Ok(Some(daemon));
            }
            match claim::check_free(folders) {
                Ok(()) => return Ok(None),
                Err(unreachable) if Instant::now() > deadline => return Err(unreachable.into()),
                Err(_) => tokio::time::sleep(start::CLAIM_RETRY_INTERVAL).await,
            }
        }
    }

    /// Whether the daemon of these folders has found its store damaged; false if none runs.
    pub(crate) async fn has_found_damage(folders: &Folders) -> bool {
        matches!(Self::find(folders).await, Ok(Some(daemon)) if !daemon.status.damaged.is_empty())
    }

    /// Adds the hint about a damaged store to an error about a missing session, which may be lost.
    pub(crate) async fn explain(folders: &Folders, error: CliError) -> CliError {
        if error.misses_session() && Self::has_found_damage(folders).await {
            error.in_damaged_store()
        } else {
            error
        }
    }

    /// Finds the daemon of these folders, or starts it. This program must be able to speak to it.
    ///
    /// # Errors
    /// Fails if the daemon can't be reached or started, speaks another version, or keeps its
    /// sessions elsewhere.
    pub(crate) async fn connect_or_start(folders: &Folders) -> Result<Self, CliError> {
        Self::connect_or_start_with(folders, None).await
    }

    /// Like [`connect_or_start`](Self::connect_or_start). If `idle_stop` is given, a daemon started
    /// by this call stops after being idle for that long.
    pub(crate) async fn connect_or_start_with(
        folders: &Folders,
        idle_stop: Option<Duration>,
    ) -> Result<Self, CliError> {
        let mut starts = 0;
        loop {
            if let Some(daemon) = Self::find(folders).await? {
                daemon.check(folders)?;
                return Ok(daemon);
            }
            if starts == MAX_STARTS {
                return Err(CliError::failed("the daemon exits as soon as it is started")
                    .hint(format!("see its log in {}", folders.logs().display())));
            }
            starts += 1;
            // Blocking is harmless: this thread has no other work.
            start::start(folders, idle_stop)?;
        }
    }
}

impl Daemon {
    /// Describes the changes between the daemon's configuration and this one; `None` if there are
    /// none.
    pub(crate) fn config_changes(&self, config: &Config) -> Option<String> {
        let theirs = &self.status.config;
        let changed = config
            .daemon_parts()
            .into_iter()
            .filter(|(key, ours)| theirs.get(key).is_some_and(|value| value != ours));
        let changed: Vec<_> = changed
            .map(|(key, ours)| if ours.is_object() { format!("[{key}]") } else { key })
            .collect();
        (!changed.is_empty())
            .then(|| format!("changed since the daemon read it: {}", changed.join(", ")))
    }

    /// Checks that this program can speak to the daemon, and that the daemon is the one of these
    /// folders.
    ///
    /// # Errors
    /// Fails if either is not the case.
    pub(crate) fn check(&self, folders: &Folders) -> Result<(), CliError> {
        let DaemonStatus { version, api, pid, data, .. } = &self.status;
        if *api != API_VERSION {
            let ours = env!("CARGO_PKG_VERSION");
            let message = format!(
                "the daemon (pid {pid}) is holdpoint {version}, which this version ({ours}) can't talk to"
            );
            return Err(CliError::failed(message).hint(match *api < API_VERSION {
                true => "`holdpoint daemon restart` starts the daemon of this version; running turns are interrupted",
                false => "use the newer holdpoint that started it",
            }));
        }
        // The daemon reports the path as text, in which bytes that are not UTF-8 are replaced.
        if *data == folders.data().display().to_string() {
            return Ok(());
        }
        let (socket, ours) = (self.socket.display(), folders.data().display());
        Err(CliError::failed(format!(
            "the daemon (pid {pid}) on {socket} keeps its sessions in {data}, not in {ours}"
        ))
        .hint("set another folder with --state-dir"))
    }
}

/// Requests the status of the daemon. The outer error means that no complete response arrived, the
/// inner one that the response is not a status.
async fn request_status(socket: &Path) -> Result<Result<DaemonStatus, CliError>, HttpError> {
    let response = http::request(socket, Method::GET, "/v1/status", &[], None).await?;
    let code = response.status();
    let body = response.whole(MAX_STATUS_BYTES).await?;
    Ok(match code {
        StatusCode::OK => {
            serde_json::from_slice(&body).map_err(|error| not_our_daemon(socket, &error))
        }
        code => Err(match serde_json::from_slice::<ErrorBody>(&body).map(SessionError::from) {
            Ok(SessionError::Request(RequestError::Forbidden)) => {
                CliError::failed(format!("the daemon at {} serves another user", socket.display()))
                    .hint("set another folder with --state-dir")
            }
            Ok(
                refused @ SessionError::Request(
                    RequestError::FromTool | RequestError::Unverified { .. },
                ),
            ) => refused.into(),
            Ok(refused) => {
                let message = format!("the daemon refused the request: {refused}");
                CliError::failed(message).hint(refused.hint().unwrap_or("try again"))
            }
            Err(_) => not_our_daemon(socket, &code),
        }),
    })
}

/// The error for a listener that is not a daemon of ours.
fn not_our_daemon(socket: &Path, why: &dyn std::fmt::Display) -> CliError {
    CliError::failed(format!(
        "the program listening on {} is not a holdpoint daemon: {why}",
        socket.display()
    ))
    .hint("set another folder with --state-dir")
}

/// Whether the socket has no listener, or lost it.
fn has_no_listener(error: &HttpError) -> bool {
    match error {
        HttpError::Unreachable { source, .. } => claim::has_no_listener(source),
        HttpError::Broken(error) => !error.is_parse(),
        _ => false,
    }
}
