//! Limits the number of open connections, and lets each be cut from elsewhere.
//!
//! Streams are long-lived, so they have a limit of their own: other requests get through however
//! many clients are attached. Of the other connections, one without a complete request makes room
//! for a new one.

use std::any::Any;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use actix_web::Error;
use actix_web::body::{BodySize, BoxBody, EitherBody, MessageBody};
use actix_web::dev::{Extensions, ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::web::Bytes;
use holdpoint_common::Timestamp;
use holdpoint_common::api::RequestError;
use rustix::io::ioctl_fionread;
use rustix::net::{Shutdown, shutdown};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

use super::error::ApiError;
use super::fleet::{self, CallingMachine, Fleet};
use super::peer::{self, MachineStream, Peer};

/// The maximum number of open streams, of events and of exports.
pub(super) const MAX_STREAMS: usize = 256;

/// The maximum number of other open connections. A further one replaces a connection without a
/// complete request. If every connection has one, the further one receives an error and is closed.
const MAX_OTHERS: usize = 64;

/// Room for connections beyond these, which are opened only to be refused. Further ones wait to be
/// accepted.
const MAX_REFUSED: usize = 64;

/// The maximum number of connections of all kinds.
pub(super) const MAX_CONNECTIONS: usize = MAX_STREAMS + MAX_OTHERS + MAX_REFUSED;

/// How long a connection that will be refused may take to send its request.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Counts open connections. Clones share the same state.
#[derive(Debug, Clone, Default)]
pub(super) struct Connections(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted {
    open: AtomicUsize,
    streams: AtomicUsize,
    /// The number of answered requests.
    answered: AtomicU64,
    /// The [`Timestamp`] of the last closed connection.
    closed: AtomicU64,
    /// The connections with a place, oldest first. Closed ones are removed at the next arrival.
    served: Mutex<Vec<Weak<Connection>>>,
}

/// An open connection. Dropping it frees its place.
#[derive(Debug)]
pub(super) struct Connection {
    /// A duplicate of the socket, used to cut the connection: the server has no timeout for a
    /// client that stops reading.
    socket: Option<OwnedFd>,
    /// Whether all places were taken when it arrived, or its socket could not be duplicated. Its
    /// requests are refused.
    refused: bool,
    connections: Connections,
    /// Whether a request is being received or answered.
    busy: AtomicBool,
    /// Whether the body of that request has not arrived yet.
    receiving: AtomicBool,
    /// The number of the last answered request; 0 before the first.
    answered: AtomicU64,
    /// Whether the connection was cut.
    cut: AtomicBool,
}

/// The task that watches the membership of the machine at the other end, until dropped.
struct Watching(JoinHandle<()>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Cuts a connection when the machine at its other end is no member any more, or has no lease.
async fn cut_when_left(fleet: Fleet, machine: CallingMachine, connection: Weak<Connection>) {
    fleet.left(&machine).await;
    if let Some(connection) = connection.upgrade() {
        connection.cut();
    }
}

/// A place among the streams, until dropped.
pub(super) struct StreamPlace(Connections);

/// Marks a connection as receiving a request's body, until dropped.
pub(super) struct ReceivingGuard(Arc<Connection>);

impl Connections {
    /// The number of open connections.
    pub(super) fn open(&self) -> usize {
        self.0.open.load(Ordering::Relaxed)
    }

    /// When the last connection was closed; the zero timestamp if none was.
    pub(super) fn last_closed(&self) -> Timestamp {
        Timestamp(self.0.closed.load(Ordering::Relaxed))
    }

    /// Records a new connection and its peer, for all its requests. The connection can't be
    /// refused here: [`admit`] refuses its requests.
    pub(super) fn record(&self, io: &dyn Any, fleet: Option<&Fleet>, extensions: &mut Extensions) {
        peer::record(io, fleet, extensions);
        let local = io.downcast_ref::<UnixStream>().map(AsFd::as_fd);
        let network = || {
            let stream = io.downcast_ref::<MachineStream>()?.get_ref().0;
            fleet::set_options(stream).ok()?;
            Some(stream.as_fd())
        };
        let socket = local.or_else(network).and_then(|socket| socket.try_clone_to_owned().ok());
        let before = self.0.open.fetch_add(1, Ordering::Relaxed);
        let refused = socket.is_none() || !self.make_room();
        let connection = Arc::new(Connection {
            socket,
            refused,
            connections: self.clone(),
            busy: AtomicBool::new(false),
            receiving: AtomicBool::new(false),
            answered: AtomicU64::new(0),
            cut: AtomicBool::new(false),
        });
        let weak = Arc::downgrade(&connection);
        if refused {
            tracing::warn!(open = before, "too many connections");
            actix_web::rt::spawn(async move {
                tokio::time::sleep(REFUSAL_TIMEOUT).await;
                if let Some(connection) = weak.upgrade() {
                    connection.cut();
                }
            });
        } else {
            self.0.served.lock().unwrap_or_else(PoisonError::into_inner).push(weak);
        }
        if let (Some(fleet), Some(Peer::Machine(machine))) = (fleet, extensions.get::<Peer>()) {
            let watching =
                cut_when_left(fleet.clone(), machine.clone(), Arc::downgrade(&connection));
            extensions.insert(Watching(actix_web::rt::spawn(watching)));
        }
        extensions.insert(connection);
    }

    /// Makes room for one more connection, and returns whether there is a place for it. If all
    /// places are taken, cuts a connection without a request, else one with half a request: the
    /// oldest that never had a response, else the one with the oldest response.
    fn make_room(&self) -> bool {
        let mut served = self.0.served.lock().unwrap_or_else(PoisonError::into_inner);
        served.retain(|connection| {
            connection.upgrade().is_some_and(|connection| !connection.is_cut())
        });
        if served.len().saturating_sub(self.0.streams.load(Ordering::Relaxed)) < MAX_OTHERS {
            return true;
        }
        let waiting =
            served.iter().filter_map(Weak::upgrade).filter(|connection| connection.is_waiting());
        let first = waiting.min_by_key(|connection| {
            let answered = connection.answered.load(Ordering::Relaxed);
            (connection.receiving.load(Ordering::Relaxed), answered)
        });
        first.inspect(|connection| connection.cut()).is_some()
    }
}

impl Connection {
    /// Ends the connection, even if data is still to be written.
    pub(super) fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
        if let Some(socket) = &self.socket {
            // Fails only if the connection is closed already.
            let _ = shutdown(socket, Shutdown::Both);
        }
    }

    /// Takes a place among the streams; `None` if all are taken.
    pub(super) fn take_stream_place(self: &Arc<Self>) -> Option<StreamPlace> {
        let connections = self.connections.clone();
        let streams = &connections.0.streams;
        let taken = streams.try_update(Ordering::Relaxed, Ordering::Relaxed, |open| {
            (open < MAX_STREAMS).then(|| open + 1)
        });
        taken.ok()?;
        Some(StreamPlace(connections))
    }

    fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// Marks the connection as receiving a request's body.
    pub(super) fn receive(self: &Arc<Self>) -> ReceivingGuard {
        self.receiving.store(true, Ordering::Relaxed);
        ReceivingGuard(Arc::clone(self))
    }

    /// Whether no complete request is being answered or waits to be read.
    fn is_waiting(&self) -> bool {
        let unread =
            || self.socket.as_ref().and_then(|socket| ioctl_fionread(socket).ok()).unwrap_or(0);
        let is_served =
            self.busy.load(Ordering::Relaxed) && !self.receiving.load(Ordering::Relaxed);
        !is_served && unread() == 0
    }
}

impl Drop for ReceivingGuard {
    fn drop(&mut self) {
        self.0.receiving.store(false, Ordering::Relaxed);
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.0.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let Counted { open, closed, .. } = &*self.connections.0;
        closed.fetch_max(Timestamp::from(SystemTime::now()).0, Ordering::Relaxed);
        open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Marks a connection as busy during a request, from its head to the last byte of the response.
pub(super) async fn track_request(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<TrackedBody>, Error> {
    let busy = request.conn_data::<Arc<Connection>>().map(|connection| {
        connection.busy.store(true, Ordering::Relaxed);
        BusyGuard(Arc::clone(connection))
    });
    let response = next.call(request).await?;
    Ok(response.map_body(|_, body| TrackedBody { body: body.boxed(), _busy: busy }))
}

/// Marks a connection as busy, until dropped.
struct BusyGuard(Arc<Connection>);

/// The body of a response, dropped when it is sent.
pub(super) struct TrackedBody {
    body: BoxBody,
    _busy: Option<BusyGuard>,
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        let Self(connection) = self;
        let number = connection.connections.0.answered.fetch_add(1, Ordering::Relaxed) + 1;
        connection.answered.store(number, Ordering::Relaxed);
        connection.busy.store(false, Ordering::Relaxed);
    }
}

impl MessageBody for TrackedBody {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_next(context)
    }
}

/// Refuses requests on a connection that had no place.
pub(super) async fn admit<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    if request.conn_data::<Arc<Connection>>().is_some_and(|connection| !connection.refused) {
        return Ok(next.call(request).await?.map_into_left_body());
    }
    let refused =
        ApiError::from(RequestError::TooManyConnections { limit: MAX_OTHERS }).closing_response();
    Ok(request.into_response(refused).map_into_right_body())
}

#[cfg(test)]
mod tests {
    use actix_web::rt::System;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// A connection as the server records it, and its other end.
    fn connect(connections: &Connections) -> (Arc<Connection>, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut extensions = Extensions::new();
        connections.record(&ours, None, &mut extensions);
        let connection = extensions.remove::<Arc<Connection>>().unwrap();
        // The server keeps its end open while the connection exists.
        std::mem::forget(ours);
        (connection, theirs)
    }

    #[test]
    fn t_s5_a_connection_without_a_complete_request_makes_room_and_no_other_does() {
        System::new().block_on(making_room());
    }

    async fn making_room() {
        let connections = Connections::default();
        let mut all: Vec<_> = (0..MAX_OTHERS).map(|_| connect(&connections)).collect();
        let mut busy = Vec::new();
        for (n, (connection, theirs)) in all.iter_mut().enumerate() {
            // A request that waits to be read counts like one that was read.
            match n {
                2 | 7 => {}
                5 => theirs.write_all(b"GET").await.unwrap(),
                _ => {
                    connection.busy.store(true, Ordering::Relaxed);
                    busy.push(BusyGuard(Arc::clone(connection)));
                }
            }
        }
        // The body of another request has not arrived.
        let receiving = all[3].0.receive();
        // Two more requests are answered, the younger connection's first.
        drop(busy.pop());
        drop(busy.pop());
        for place in [2, 7, MAX_OTHERS - 1, MAX_OTHERS - 2, 3] {
            let (more, theirs) = connect(&connections);
            more.busy.store(true, Ordering::Relaxed);
            assert!(
                !more.refused && all[place].1.read(&mut [0]).await.unwrap() == 0,
                "{place} is cut"
            );
            all.push((more, theirs));
        }
        drop(receiving);
        assert!(connect(&connections).0.refused);
        // A stream has a place of its own.
        let stream = all[0].0.take_stream_place().unwrap();
        assert!(!connect(&connections).0.refused);
        drop(stream);
    }

    #[test]
    fn t_s5_streams_have_a_limit_of_their_own() {
        System::new().block_on(streaming());
    }

    async fn streaming() {
        let connections = Connections::default();
        let (connection, _theirs) = connect(&connections);
        let mut streams: Vec<_> =
            (0..MAX_STREAMS).map(|_| connection.take_stream_place().unwrap()).collect();
        assert!(connection.take_stream_place().is_none());
        streams.pop();
        assert!(connection.take_stream_place().is_some());
    }
}
