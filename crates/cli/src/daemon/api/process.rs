//! The daemon itself: how it is, how it is spoken to, and that it is to stop.

use std::time::Duration;

use actix_web::rt;
use holdpoint_common::api::DaemonStatus;
use rustix::process::{Signal, getpid, kill_process};
use serde_json::Value;

use super::caller::AnyCaller;
use super::fault::Fault;
use super::openapi;
use super::reply::{Done, Reply};
use crate::daemon::status;

/// How long the answer to `stop` has to get out.
const LAST_WORD: Duration = Duration::from_millis(20);

/// `GET status`
pub(super) async fn status(AnyCaller(caller): AnyCaller) -> Result<Reply<DaemonStatus>, Fault> {
    Ok(Reply(status::of(&caller.host).await))
}

/// `GET openapi.json`
pub(super) async fn openapi() -> Result<Reply<Value>, Fault> {
    Ok(Reply(openapi::document(&super::resources())))
}

/// `POST stop`: as if TERM had come, which is the one way to stop.
pub(super) async fn stop(AnyCaller(caller): AnyCaller) -> Result<Done, Fault> {
    tracing::info!(peer = %caller.peer, client = caller.who.name, "told to stop");
    rt::spawn(async {
        tokio::time::sleep(LAST_WORD).await;
        if let Err(error) = kill_process(getpid(), Signal::TERM) {
            tracing::error!(%error, "the signal to stop can't be sent");
        }
    });
    Ok(Done)
}
