//! Sessions of a daemon: the same interface, over its socket.

use std::path::{Path, PathBuf};

use holdpoint_common::Config;
use holdpoint_common::api::{API_VERSION, DaemonStatus};
use holdpoint_session::folders::Folders;
use holdpoint_session::remote::http::{self, HttpError, Method};
use napi::Env;
use napi::bindgen_prelude::{ClassInstance, JavaScriptClassExt, PromiseRaw, Unknown};
use napi_derive::napi;
use serde::Deserialize;

use crate::crossing::{self, read};
use crate::engine;
use crate::failure::{Failure, NO_DAEMON};
use crate::sessions::Sessions;

/// Bytes of what a daemon tells of itself, at most.
const STATUS: usize = 1024 * 1024;

/// Which daemon is connected to.
#[napi(object, object_from_js = false, object_to_js = false)]
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ConnectOptions {
    /// The folder that its state lies in, as `--state-dir` names it. Without it, the user's own.
    pub state_dir: Option<String>,
    /// The socket it listens on. It goes before `stateDir`.
    pub socket: Option<String>,
    /// The text of a configuration for the sessions that are opened here, as the program's `config.toml` has it. Without it,
    /// the user's own.
    pub config: Option<String>,
}

/// Connects to the daemon that `holdpoint` has started: the same functions, with its sessions.
///
/// Rejects with `unreachable` if none runs, with `otherVersion` if it can't be spoken to.
#[napi(catch_unwind, ts_args_type = "options?: ConnectOptions", ts_return_type = "Promise<Sessions>")]
pub fn connect<'env>(
    env: &'env Env,
    options: Unknown<'_>,
) -> napi::Result<PromiseRaw<'env, ClassInstance<'env, Sessions>>> {
    let options = read::<Option<ConnectOptions>>(env, "options", options);
    let connected = crossing::settled(async move {
        let ConnectOptions { state_dir, socket, config } = options?.unwrap_or_default();
        let folders = Folders::find(state_dir.as_deref().map(Path::new));
        let config = match (config, &folders) {
            (Some(config), _) => engine::given_config(&config)?,
            (None, Ok(folders)) => engine::read_config(&folders.config_text()?.unwrap_or_default())?,
            // A socket needs no home; without one, that there is none is told below.
            (None, Err(_)) => Config::default(),
        };
        let sockets = match socket {
            Some(socket) => vec![PathBuf::from(socket)],
            None => folders?.sockets()?,
        };
        let socket = find(sockets).await?;
        Ok(Sessions::of_daemon(holdpoint_session::Sessions::remote(socket, &engine::who()), config))
    });
    env.spawn_future_with_callback(connected, |env, sessions| {
        sessions.map_err(|failure| failure.into_js(env))?.into_instance(env)
    })
}

/// The first of these sockets that a daemon of our version listens on.
async fn find(sockets: Vec<PathBuf>) -> Result<PathBuf, Failure> {
    let mut nobody = None;
    for socket in sockets {
        match status(&socket).await {
            Ok(status) => return check(&status).map(|()| socket),
            Err(error @ HttpError::Unreachable { .. }) => nobody = nobody.or(Some(error)),
            Err(error) => return Err(Failure::new("disconnected", format!("the daemon does not answer: {error}"))),
        }
    }
    let why = nobody.map(|error| error.to_string()).unwrap_or_default();
    Err(Failure::new("unreachable", format!("the daemon can't be reached: {why}")).hint(NO_DAEMON))
}

async fn status(socket: &Path) -> Result<DaemonStatus, HttpError> {
    let status = http::request(socket, Method::GET, "/v1/status", &[], None).await?.whole(STATUS).await?;
    // Whatever else answers there is of no version.
    Ok(serde_json::from_slice(&status).unwrap_or_default())
}

fn check(status: &DaemonStatus) -> Result<(), Failure> {
    if status.api == API_VERSION {
        return Ok(());
    }
    let DaemonStatus { version, pid, .. } = status;
    Err(Failure::new(
        "otherVersion",
        format!("the daemon (pid {pid}) is holdpoint {version}, which can't be spoken to"),
    )
    .hint("`holdpoint daemon restart` starts another one; turns that run are interrupted"))
}
