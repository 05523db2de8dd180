//! The proxy: what the browser wants to reach is judged, dialled where it was judged, and passed through.

mod dial;
mod forward;
mod page;
mod peer;
mod tunnel;

pub(in crate::web) use page::GUARD;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

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
use super::verdict::Why;

/// How many connections of a browser are served at once; further ones wait to be accepted. Chromium opens 32 to a
/// proxy, and up to 255 more for WebSockets.
const MAX_CONNECTIONS: usize = 320;

/// How long the head of a request may be, in bytes: more than servers take.
const MAX_HEAD: usize = 256 * 1024;

/// How many fields the head of a request or an answer may have.
const MAX_FIELDS: usize = 256;

/// How long the head of a request may take, and how long a connection may wait for one.
const HEAD_LIMIT: Duration = Duration::from_secs(60);

/// How long is waited when no connection can be accepted, because there are no descriptors, say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What the browser is answered: the body of whom it asked, or a page of ours.
type Body = Either<Incoming, Full<Bytes>>;

/// Serves until it is dropped.
pub(super) async fn serve(listener: TcpListener, judge: Arc<Judge>) -> Infallible {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = permits.clone().acquire_owned().await else { return std::future::pending().await };
        match listener.accept().await {
            Ok((stream, peer)) if peer::is_ours(&stream, peer) => {
                tokio::spawn(connection(stream, judge.clone(), Arc::new(permit)));
            }
            // Somebody else's, of this machine: told nothing.
            Ok(_) => {}
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Serves one connection. The permit is held for as long as anything of it is left, tunnels too.
async fn connection(stream: TcpStream, judge: Arc<Judge>, permit: Arc<OwnedSemaphorePermit>) {
    let answer = service_fn(move |request| {
        let (judge, permit) = (judge.clone(), permit.clone());
        async move { Ok::<_, Infallible>(answer(request, &judge, permit).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_FIELDS)
        .serve_connection(TokioIo::new(stream), answer)
        .with_upgrades();
    // It ends with an error when the browser goes away in the middle of something, which it may.
    if let Err(error) = serving.await {
        tracing::trace!(%error, "a connection of the browser ended");
    }
}

async fn answer(request: Request<Incoming>, judge: &Judge, permit: Arc<OwnedSemaphorePermit>) -> Response<Body> {
    let target = match target(&request) {
        Ok(target) => target,
        // No browser asks so.
        Err(why) => return page::of("This request", &why),
    };
    let answered = match judge.way(&target).await {
        Ok(addresses) if request.method() == Method::CONNECT => tunnel::open(request, &addresses, permit).await,
        Ok(addresses) => forward::forward(request, &addresses).await,
        Err(why) => Err(why),
    };
    answered.unwrap_or_else(|why| {
        let host = target.to_string();
        tracing::debug!(host, %why, "not let through");
        judge.ledgers().refuse(&host, &why);
        page::of(&host, &why)
    })
}

/// Whom a request is for. What it says of a host besides its address counts for nothing.
fn target(request: &Request<Incoming>) -> Result<Target, Why> {
    let uri = request.uri();
    let default_port = match (request.method(), uri.scheme()) {
        (&Method::CONNECT, _) => None,
        (_, Some(scheme)) if *scheme != Scheme::HTTP => return Err(Why::Scheme { scheme: scheme.to_string() }),
        _ => Some(80),
    };
    let target = uri.authority().and_then(|whom| Target::new(whom.host(), whom.port_u16().or(default_port)?));
    target.ok_or_else(|| Why::NotAnAddress { url: uri.path().to_owned() })
}
