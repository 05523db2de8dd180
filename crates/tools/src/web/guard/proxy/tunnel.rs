//! Tunnels (`CONNECT`) for https and WebSockets, which pass all bytes through unread.

use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;
use tokio::sync::OwnedSemaphorePermit;

use super::Body;
use super::dial::dial;
use crate::web::guard::verdict::RefusalReason;

/// Connects to the host, answers the request, and copies bytes until both sides have closed.
/// Holds `permit`, which limits the number of connections, until then.
pub(super) async fn open(
    request: Request<Incoming>,
    addresses: &[SocketAddr],
    permit: Arc<OwnedSemaphorePermit>,
) -> Result<Response<Body>, RefusalReason> {
    let mut host = dial(addresses).await?;
    tokio::spawn(async move {
        if let Ok(browser) = hyper::upgrade::on(request).await {
            // Either side may break the connection.
            let _ = copy_bidirectional(&mut TokioIo::new(browser), &mut host).await;
        }
        drop(permit);
    });
    Ok(Response::new(Either::Right(Full::default())))
}
