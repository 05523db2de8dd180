//! Identifies the process at the other end of a connection as the kernel reports it, and admits
//! only this user's processes.

use std::any::Any;
use std::fmt;

use actix_web::Error;
use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Extensions, ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use holdpoint_common::api::RequestError;
use rustix::process::geteuid;
use tokio::net::UnixStream;

use super::error::ApiError;

/// The process at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) uid: u32,
    /// Its process id, if the system reports one in our namespace.
    pub(crate) pid: Option<u32>,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "uid {} pid {pid}", self.uid),
            None => write!(f, "uid {}", self.uid),
        }
    }
}

/// Records the peer for all requests of the connection. The connection can't be refused here.
pub(super) fn record(io: &dyn Any, extensions: &mut Extensions) {
    let Some(stream) = io.downcast_ref::<UnixStream>() else { return };
    match stream.peer_cred() {
        Ok(cred) => {
            let pid = cred.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0);
            extensions.insert(Peer { uid: cred.uid(), pid });
        }
        Err(error) => tracing::error!(%error, "the peer of a connection is unknown"),
    }
}

/// Admits only this user's processes, regardless of the modes of the folder and the socket.
pub(super) async fn only_ours<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let peer = request.conn_data::<Peer>().copied();
    if peer.is_some_and(|peer| peer.uid == geteuid().as_raw()) {
        return Ok(next.call(request).await?.map_into_left_body());
    }
    let who = peer.map_or_else(|| "unknown".to_owned(), |peer| peer.to_string());
    tracing::warn!(peer = %who, path = request.path(), "refused: another user");
    // No later request on this connection would be served.
    let refused = ApiError::from(RequestError::Forbidden).closing_response();
    Ok(request.into_response(refused).map_into_right_body())
}
