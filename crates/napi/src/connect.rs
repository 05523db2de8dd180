//! Connections to a daemon, whose sessions have the same interface as those of this process.

use std::path::{Path, PathBuf};

use holdpoint_common::api::{API_VERSION, DaemonStatus, ErrorBody};
use holdpoint_common::{Config, SessionError};
use holdpoint_session::folders::Folders;
use holdpoint_session::remote::http::{self, HttpError, Method};
use napi::Env;
use napi::bindgen_prelude::{ClassInstance, JavaScriptClassExt, PromiseRaw, Unknown};
use napi_derive::napi;
use serde::Deserialize;

use crate::convert::{self, read_argument};
use crate::engine;
use crate::failure::Failure;
use crate::sessions::Sessions;

/// Maximum bytes of a daemon's status.
const MAX_STATUS_BYTES: usize = 1024 * 1024;

/// The options of `connect`.
#[napi(object, object_from_js = false, object_to_js = false)]
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ConnectOptions {
    /// State folder of the daemon, as its `--state-dir` names it. Default: the user's own.
    pub state_dir: Option<String>,
    /// Path of the daemon's socket. It overrides `stateDir`.
    pub socket: Option<String>,
    /// Configuration for sessions opened through this connection, as TOML text in the format of
    /// `config.toml`. Default: the user's own configuration.
    pub config: Option<String>,
}

/// Connects to a running `holdpoint` daemon. The returned object has the functions of this package,
/// for the daemon's sessions.
///
/// Rejects with `unreachable` if no daemon runs, with `disconnected` if it does not answer, with
/// `otherVersion` if it has another version of the API, with `fromTool` if a tool call has started
/// this process, with `unverified` if the daemon can't tell, and with `config` if the configuration
/// is wrong.
#[napi(
    catch_unwind,
    ts_args_type = "options?: ConnectOptions",
    ts_return_type = "Promise<Sessions>"
)]
pub fn connect<'env>(
    env: &'env Env,
    options: Unknown<'_>,
) -> napi::Result<PromiseRaw<'env, ClassInstance<'env, Sessions>>> {
    let options = read_argument::<Option<ConnectOptions>>(env, "options", options);
    let connected = convert::catch_async_panic(async move {
        let ConnectOptions { state_dir, socket, config } = options?.unwrap_or_default();
        let folders = Folders::find(state_dir.as_deref().map(Path::new));
        let config = match (config, &folders) {
            (Some(config), _) => engine::given_config(&config)?,
            (None, Ok(folders)) => {
                engine::parse_config(&folders.config_text()?.unwrap_or_default())?
            }
            // A socket needs no home folder. Without a socket, the missing home folder is reported
            // below.
            (None, Err(_)) => Config::default(),
        };
        let sockets = match socket {
            Some(socket) => vec![PathBuf::from(socket)],
            None => folders?.sockets()?,
        };
        let socket = find_daemon(sockets).await?;
        Ok(Sessions::from_daemon(
            holdpoint_session::Sessions::remote(socket, &engine::this_client()),
            config,
        ))
    });
    env.spawn_future_with_callback(connected, |env, sessions| {
        sessions.map_err(|failure| failure.into_js(env))?.into_instance(env)
    })
}

/// Finds the first socket with a daemon, which must have this API version.
async fn find_daemon(sockets: Vec<PathBuf>) -> Result<PathBuf, Failure> {
    let mut unreachable = None;
    for socket in sockets {
        match request_status(&socket).await {
            Ok(status) => return check_version(&status?).map(|()| socket),
            Err(error @ HttpError::Unreachable { .. }) => unreachable = unreachable.or(Some(error)),
            Err(error) => {
                return Err(Failure::new(
                    "disconnected",
                    format!("the daemon does not answer: {error}"),
                ));
            }
        }
    }
    let message = unreachable.map(|error| error.to_string()).unwrap_or_default();
    Err(SessionError::Unreachable { message }.into())
}

/// Requests the status of the daemon. The outer error means that no complete response arrived, the
/// inner one that the daemon refused the request.
async fn request_status(socket: &Path) -> Result<Result<DaemonStatus, SessionError>, HttpError> {
    let response = http::request(socket, Method::GET, "/v1/status", &[], None).await?;
    let is_refused = !response.status().is_success();
    let body = response.whole(MAX_STATUS_BYTES).await?;
    match serde_json::from_slice::<ErrorBody>(&body) {
        Ok(refused) if is_refused => Ok(Err(refused.into())),
        // A response of any other server counts as version 0.
        _ => Ok(Ok(serde_json::from_slice(&body).unwrap_or_default())),
    }
}

fn check_version(status: &DaemonStatus) -> Result<(), Failure> {
    if status.api == API_VERSION {
        return Ok(());
    }
    let DaemonStatus { version, pid, .. } = status;
    Err(Failure::new(
        "otherVersion",
        format!("the daemon (pid {pid}) is holdpoint {version}, which has another API version"),
    )
    .hint("restart it with `holdpoint daemon restart`; running turns are interrupted"))
}
