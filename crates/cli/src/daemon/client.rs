//! The daemon as a command sees it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use holdpoint_common::Config;
use holdpoint_common::api::{API_VERSION, DaemonStatus, ErrorBody};
use holdpoint_session::folders::Folders;
use holdpoint_session::remote::http::{self, HttpError, Method, StatusCode};

use super::{claim, start};
use crate::error::CliError;

/// How long it may take to tell how it is.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long one that lives and is not found is looked for: it makes its sockets again within a second.
const BACK: Duration = Duration::from_secs(2);

/// Bytes of what it tells of itself, at most.
const STATUS: usize = 1024 * 1024;

/// How often it is started if it ends before it has told how it is.
const TRIES: usize = 3;

/// What has a daemon go by what the configuration says now.
pub(crate) const READS_ANEW: &str = "`holdpoint daemon restart` has it read anew; turns that run are interrupted";

/// A daemon that runs.
#[derive(Debug)]
pub(crate) struct Daemon {
    /// Where it listens.
    pub(crate) socket: PathBuf,
    /// What it has told of itself.
    pub(crate) status: DaemonStatus,
}

impl Daemon {
    /// The daemon of these folders, of whatever version; nothing if none runs.
    ///
    /// # Errors
    /// One is there, but can't be reached or does not answer.
    pub(crate) async fn find(folders: &Folders) -> Result<Option<Self>, CliError> {
        let silent = |what: String| CliError::failed(what).hint("`holdpoint daemon restart` starts another one");
        for socket in folders.sockets()? {
            return match tokio::time::timeout(PATIENCE, ask(&socket)).await {
                Ok(Ok(status)) => Ok(Some(Self { status: status?, socket })),
                Ok(Err(error)) if is_nobody(&error) => continue,
                Ok(Err(error)) => Err(silent(format!("the daemon does not answer: {error}"))),
                Err(_) => Err(silent(format!("the daemon has not answered for {} s", PATIENCE.as_secs()))),
            };
        }
        Ok(None)
    }

    /// The same, where one that lives is to be found: nothing if no process has the sessions of these folders.
    ///
    /// # Errors
    /// As above; or a process has the sessions and can't be reached.
    pub(crate) async fn find_living(folders: &Folders) -> Result<Option<Self>, CliError> {
        let by = Instant::now() + BACK;
        loop {
            if let Some(daemon) = Self::find(folders).await? {
                return Ok(Some(daemon));
            }
            match claim::check_free(folders) {
                Ok(()) => return Ok(None),
                Err(unreachable) if Instant::now() > by => return Err(unreachable.into()),
                Err(_) => tokio::time::sleep(start::AGAIN).await,
            }
        }
    }

    /// Whether the daemon of these folders has found its store damaged; nobody knows where none runs.
    pub(crate) async fn found_damage(folders: &Folders) -> bool {
        matches!(Self::find(folders).await, Ok(Some(daemon)) if !daemon.status.damaged.is_empty())
    }

    /// What went wrong; where a session is missed that may have been lost, with that.
    pub(crate) async fn explain(folders: &Folders, error: CliError) -> CliError {
        if error.misses_session() && Self::found_damage(folders).await { error.in_damaged_store() } else { error }
    }

    /// The daemon of these folders; started if none runs. Of a version that this program can speak to.
    ///
    /// # Errors
    /// It can't be reached or started, speaks another version, or keeps its sessions elsewhere.
    pub(crate) async fn connect_or_start(folders: &Folders) -> Result<Self, CliError> {
        Self::connect_or_start_with(folders, None).await
    }

    /// The same; one that is started stops when idle for so long, if that is given.
    pub(crate) async fn connect_or_start_with(folders: &Folders, idle: Option<Duration>) -> Result<Self, CliError> {
        for _ in 0..TRIES {
            if let Some(daemon) = Self::find(folders).await? {
                daemon.check(folders)?;
                return Ok(daemon);
            }
            // Nothing else waits on this thread.
            start::start(folders, idle)?;
        }
        Err(CliError::failed("the daemon ends as soon as it is started")
            .hint(format!("its log is in {}", folders.logs().display())))
    }
}

impl Daemon {
    /// That it goes by another configuration than this one, and in what; nothing if it does not.
    pub(crate) fn outdated(&self, config: &Config) -> Option<String> {
        let theirs = &self.status.config;
        let changed = config.of_daemon().into_iter().filter(|(key, ours)| theirs.get(key).is_some_and(|is| is != ours));
        let changed: Vec<_> =
            changed.map(|(key, ours)| if ours.is_object() { format!("[{key}]") } else { key }).collect();
        (!changed.is_empty()).then(|| format!("changed since the daemon has read it: {}", changed.join(", ")))
    }

    /// Whether this program can speak to it, and it is the daemon of these folders.
    ///
    /// # Errors
    /// It can't, or it is that of other ones.
    pub(crate) fn check(&self, folders: &Folders) -> Result<(), CliError> {
        let DaemonStatus { version, api, pid, data, .. } = &self.status;
        if *api != API_VERSION {
            let ours = env!("CARGO_PKG_VERSION");
            let what = format!("the daemon (pid {pid}) is holdpoint {version}, which this one ({ours}) can't speak to");
            return Err(CliError::failed(what).hint(match *api < API_VERSION {
                true => "`holdpoint daemon restart` starts this program's; turns that run are interrupted",
                false => "use the newer holdpoint that has started it",
            }));
        }
        if Path::new(data) == folders.data() {
            return Ok(());
        }
        let (socket, ours) = (self.socket.display(), folders.data().display());
        Err(CliError::failed(format!("the daemon (pid {pid}) on {socket} keeps its sessions in {data}, not in {ours}"))
            .hint("name another place by --state-dir"))
    }
}

/// Asks the daemon how it is.
async fn ask(socket: &Path) -> Result<Result<DaemonStatus, CliError>, HttpError> {
    let response = http::request(socket, Method::GET, "/v1/status", &[], None).await?;
    let code = response.status();
    let body = response.whole(STATUS).await?;
    Ok(match code {
        StatusCode::OK => serde_json::from_slice(&body).map_err(|error| strange(socket, &error)),
        StatusCode::FORBIDDEN => {
            Err(CliError::failed(format!("the daemon at {} serves another user", socket.display()))
                .hint("name another place by --state-dir"))
        }
        code => Err(match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(ErrorBody { code, message, hint, .. }) if !code.is_empty() => {
                let refused = CliError::failed(format!("the daemon takes no request: {message}"));
                refused.hint(hint.unwrap_or_else(|| "try again".to_owned()))
            }
            _ => strange(socket, &code),
        }),
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
        HttpError::Unreachable { source, .. } => claim::is_nobody(source),
        HttpError::Broken(error) => !error.is_parse(),
        _ => false,
    }
}
