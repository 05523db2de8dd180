//! The proxy: judges each request, dials a judged address, and passes the data through.

mod descriptors;
mod dial;
mod forward;
mod page;
mod peer;
mod tunnel;

pub(in crate::web) use page::GUARD_HEADER;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use descriptors::is_in_share;
use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::http::uri::Scheme;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::host::Target;
use super::judge::Judge;
use super::verdict::RefusalReason;

/// How many connections of a browser are served at once; others wait to be accepted. Chromium opens
/// up to 32 to a proxy, and up to 255 more for WebSockets.
const MAX_CONNECTIONS: usize = 320;

/// How many connections of a program in a sandbox are served at once. Package managers open up to
/// 50.
#[cfg(target_os = "linux")]
const MAX_PROGRAM_CONNECTIONS: usize = 128;

/// The largest request head in bytes, which is more than servers accept.
const MAX_HEAD: usize = 256 * 1024;

/// How many header fields a request or an answer may have.
const MAX_FIELDS: usize = 256;

/// How long the head of a request may take, and how long a connection may be idle before it.
const HEAD_LIMIT: Duration = Duration::from_secs(60);

/// The delay after a failed accept, as when file descriptors have run out, and after one that used
/// more than the share of the proxies.
const ACCEPT_DELAY: Duration = Duration::from_millis(50);

/// The body of an answer to the client: the host's, or a page of the proxy's own.
type Body = Either<Incoming, Full<Bytes>>;

/// The processes that may use a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clients {
    /// Those of this user, on this machine.
    OwnUser,
    /// Those in the network namespace of the listener, to which no others can connect.
    #[cfg(target_os = "linux")]
    Namespace,
}

/// Serves connections until the future is dropped.
pub(super) async fn serve(
    listener: TcpListener,
    judge: Arc<Judge>,
    clients: Clients,
) -> Infallible {
    let limit = match clients {
        Clients::OwnUser => MAX_CONNECTIONS,
        #[cfg(target_os = "linux")]
        Clients::Namespace => MAX_PROGRAM_CONNECTIONS,
    };
    let permits = Arc::new(Semaphore::new(limit));
    loop {
        let Ok(permit) = permits.clone().acquire_owned().await else {
            return std::future::pending().await;
        };
        match listener.accept().await {
            Ok((stream, _)) if !is_in_share(&stream) => tokio::time::sleep(ACCEPT_DELAY).await,
            Ok((stream, peer)) if clients != Clients::OwnUser || peer::is_ours(&stream, peer) => {
                tokio::spawn(serve_connection(stream, judge.clone(), Arc::new(permit)));
            }
            // A process of another user on this machine: close without an answer.
            Ok(_) => {}
            Err(_) => tokio::time::sleep(ACCEPT_DELAY).await,
        }
    }
}

/// Serves one connection. The permit is held until its tunnels have ended too.
async fn serve_connection(stream: TcpStream, judge: Arc<Judge>, permit: Arc<OwnedSemaphorePermit>) {
    let service = service_fn(move |request| {
        let (judge, permit) = (judge.clone(), permit.clone());
        async move { Ok::<_, Infallible>(answer(request, &judge, permit).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_FIELDS)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    // An error is normal here: the client may disconnect at any point.
    if let Err(error) = serving.await {
        tracing::trace!(%error, "a connection to the proxy ended");
    }
}

async fn answer(
    request: Request<Incoming>,
    judge: &Judge,
    permit: Arc<OwnedSemaphorePermit>,
) -> Response<Body> {
    let target = match target(&request) {
        Ok(target) => target,
        // Clients of a proxy do not send such requests.
        Err(why) => return page::refusal_page("This request", &why),
    };
    let answered = match judge.allowed_addresses(&target).await {
        Ok(addresses) if request.method() == Method::CONNECT => {
            tunnel::open(request, &addresses, permit).await
        }
        Ok(addresses) => forward::forward(request, &addresses).await,
        Err(why) => Err(why),
    };
    answered.unwrap_or_else(|why| {
        let host = target.to_string();
        tracing::debug!(host, %why, "connection not made");
        judge.ledgers().record_refusal(&host, &why);
        page::refusal_page(&host, &why)
    })
}

/// The target of a request, from its URI alone; a `Host` header is ignored.
fn target(request: &Request<Incoming>) -> Result<Target, RefusalReason> {
    let uri = request.uri();
    let default_port = match (request.method(), uri.scheme()) {
        (&Method::CONNECT, _) => None,
        (_, Some(scheme)) if *scheme != Scheme::HTTP => {
            return Err(RefusalReason::Scheme { scheme: scheme.to_string() });
        }
        _ => Some(80),
    };
    let target = uri.authority().and_then(|authority| {
        Target::new(authority.host(), authority.port_u16().or(default_port)?)
    });
    target
        .ok_or_else(|| RefusalReason::NotAnAddress { url: uri.path().chars().take(100).collect() })
}
