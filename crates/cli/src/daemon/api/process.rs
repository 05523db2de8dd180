//! Handlers for the daemon itself: its status, the description of its API, and stopping it.

use std::time::Duration;

use actix_web::rt;
use holdpoint_common::api::DaemonStatus;
use rustix::process::{Signal, getpid, kill_process};
use serde_json::Value;

use super::caller::AnyCaller;
use super::openapi;
use super::reply::{Done, Reply};
use crate::daemon::error::ApiError;
use crate::daemon::status;

/// How long the daemon waits before it stops, so that the response to `stop` is sent.
const STOP_DELAY: Duration = Duration::from_millis(20);

/// `GET status`
pub(super) async fn status(AnyCaller(caller): AnyCaller) -> Result<Reply<DaemonStatus>, ApiError> {
    Ok(Reply(status::daemon_status(&caller.host).await))
}

/// `GET openapi.json`
pub(super) async fn openapi() -> Result<Reply<Value>, ApiError> {
    Ok(Reply(openapi::document(&super::resources())))
}

/// `POST stop`: sends TERM to this process, so that there is only one way to stop.
pub(super) async fn stop(AnyCaller(caller): AnyCaller) -> Result<Done, ApiError> {
    tracing::info!(peer = %caller.peer, client = caller.who.name, "asked to stop");
    rt::spawn(async {
        tokio::time::sleep(STOP_DELAY).await;
        if let Err(error) = kill_process(getpid(), Signal::TERM) {
            tracing::error!(%error, "the signal to stop can't be sent");
        }
    });
    Ok(Done)
}
