//! Connections: so many at once, and each can be cut from elsewhere.

use std::any::Any;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Extensions, ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::{Error, HttpResponse};
use holdpoint_common::Timestamp;
use holdpoint_common::api::ErrorBody;
use rustix::net::{Shutdown, shutdown};
use tokio::net::UnixStream;

use super::peer;

/// Connections that are served at once. One more is told so, and closed.
pub(super) const MOST: usize = 256;

/// Connections beyond these that are open at once, to be told so. Who comes after them waits to be accepted.
pub(super) const REFUSED: usize = 64;

/// How long one that will be refused may take to ask for something.
const PATIENCE: Duration = Duration::from_secs(1);

/// Counts what is open. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Connections(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted {
    open: AtomicUsize,
    /// When the last one was closed.
    closed: AtomicU64,
}

/// One of them. Its place is free when it is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    /// Another hold on the socket: what does not read is not written to, and what is not written to is not looked
    /// after by the server.
    socket: Option<OwnedFd>,
    /// There was no place.
    refused: bool,
    open: Connections,
}

impl Connections {
    /// How many are open.
    pub(super) fn open(&self) -> usize {
        self.0.open.load(Ordering::Relaxed)
    }

    /// When the last one was closed; the beginning of time if none was.
    pub(super) fn last_closed(&self) -> Timestamp {
        Timestamp(self.0.closed.load(Ordering::Relaxed))
    }

    /// Notes a connection and who is on its other end, for all its requests. It can't be refused here.
    pub(super) fn note(&self, io: &dyn Any, extensions: &mut Extensions) {
        peer::note(io, extensions);
        let socket = io.downcast_ref::<UnixStream>().and_then(|stream| stream.as_fd().try_clone_to_owned().ok());
        let before = self.0.open.fetch_add(1, Ordering::Relaxed);
        let refused = before >= MOST || socket.is_none();
        let connection = Rc::new(Connection { socket, refused, open: self.clone() });
        if refused {
            tracing::warn!(open = before, "a connection too many");
            let late = Rc::downgrade(&connection);
            actix_web::rt::spawn(async move {
                tokio::time::sleep(PATIENCE).await;
                if let Some(connection) = late.upgrade() {
                    connection.cut();
                }
            });
        }
        extensions.insert(connection);
    }
}

impl Connection {
    /// Ends it, whatever is still to be written.
    pub(super) fn cut(&self) {
        if let Some(socket) = &self.socket {
            // It is closed already.
            let _ = shutdown(socket, Shutdown::Both);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let Counted { open, closed } = &*self.open.0;
        closed.fetch_max(Timestamp::from(SystemTime::now()).0, Ordering::Relaxed);
        open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Refuses what comes over a connection that had no place.
pub(super) async fn admit<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    if request.conn_data::<Rc<Connection>>().is_some_and(|connection| !connection.refused) {
        return Ok(next.call(request).await?.map_into_left_body());
    }
    let body = ErrorBody {
        code: "tooManyConnections".to_owned(),
        message: format!("{MOST} connections are open, the limit"),
        hint: Some("end a client that is attached, and try again".to_owned()),
        ..ErrorBody::default()
    };
    let refused = HttpResponse::TooManyRequests().force_close().json(body);
    Ok(request.into_response(refused).map_into_right_body())
}
