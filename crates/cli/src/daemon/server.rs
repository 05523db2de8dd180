//! The HTTP server on the daemon's socket.

use std::io;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix_web::dev::{Server, ServerHandle};
use actix_web::middleware::from_fn;
use actix_web::web::Data;
use actix_web::{App, HttpServer};
use futures_util::future::join_all;

use super::claim::Listener;
use super::connection;
use super::host::Host;
use super::{api, peer};

/// Seconds that answers which are on their way when it stops may take.
const LAST_WORDS_S: u64 = 1;

/// The servers that run: one, and one more for sockets that were made again. Those whose sockets are gone go on for as long
/// as they have connections.
#[derive(Default)]
pub(super) struct Servers(Vec<Running>);

struct Running {
    handle: ServerHandle,
    /// Its sockets that were not made again since.
    sockets: Vec<PathBuf>,
    open: Open,
}

/// How many connections a server has.
#[derive(Clone, Default)]
struct Open(Arc<AtomicUsize>);

/// One of them, until this is dropped.
struct Connected(Open);

impl Servers {
    /// Begins to serve. Clients that connected earlier wait in a listener's queue. Call it inside of a tokio runtime; the
    /// worker has a thread and a runtime of its own.
    pub(super) fn start(&mut self, listeners: Vec<Listener>, host: &Data<Host>) -> io::Result<Server> {
        let open = Open::default();
        let (sockets, listeners) = listeners.into_iter().map(|Listener { path, listener }| (path, listener)).unzip();
        let server = start(listeners, host, open.clone())?;
        self.0.push(Running { handle: server.handle(), sockets, open });
        Ok(server)
    }

    /// Serves sockets that were made again. A server that has no socket and no connection left is ended: it has threads.
    pub(super) async fn renew(&mut self, listeners: Vec<Listener>, host: &Data<Host>) {
        for server in &mut self.0 {
            server.sockets.retain(|socket| listeners.iter().all(|new| new.path != *socket));
        }
        let is_over = |server: &mut Running| server.sockets.is_empty() && server.open.count() == 0;
        let over: Vec<_> = self.0.extract_if(.., is_over).collect();
        match self.start(listeners, host) {
            Ok(server) => _ = tokio::spawn(server),
            Err(error) => tracing::error!(%error, "a socket that was made again is not served"),
        }
        join_all(over.iter().map(|server| server.handle.stop(true))).await;
    }

    /// Ends all of them.
    pub(super) async fn end(&self) {
        join_all(self.0.iter().map(|server| server.handle.stop(true))).await;
    }
}

impl Open {
    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn connected(&self) -> Connected {
        self.0.fetch_add(1, Ordering::Relaxed);
        Connected(self.clone())
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn start(listeners: Vec<UnixListener>, host: &Data<Host>, open: Open) -> io::Result<Server> {
    let connections = host.connections.clone();
    let host = Data::clone(host);
    let app = move || {
        let app = App::new().app_data(Data::clone(&host)).configure(api::routes);
        let app = app.wrap(from_fn(connection::note_request));
        app.wrap(from_fn(api::read_ahead)).wrap(from_fn(connection::admit)).wrap(from_fn(peer::only_ours))
    };
    let server = HttpServer::new(app).workers(1).disable_signals().shutdown_timeout(LAST_WORDS_S);
    // Who closes its end is gone: nobody reads an answer then, and a stream would notice it at its next event only.
    let server = server.h1_allow_half_closed(false).max_connections(connection::MOST);
    let server = server.on_connect(move |io, extensions| {
        extensions.insert(open.connected());
        connections.note(io, extensions);
    });
    let server = listeners.into_iter().try_fold(server, HttpServer::listen_uds)?;
    Ok(server.run())
}
