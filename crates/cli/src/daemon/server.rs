//! The HTTP servers: on the daemon's sockets, and for the other machines of its fleet.

use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix_web::dev::{Server, ServerHandle};
use actix_web::middleware::from_fn;
use actix_web::web::Data;
use actix_web::{App, HttpServer};
use futures_util::future::join_all;
use rustls::ServerConfig;

use super::claim::Listener;
use super::connection;
use super::fleet::Fleet;
use super::host::Host;
use super::{api, peer};

/// How many seconds responses in progress may take when the server stops.
const RESPONSES_TIMEOUT_S: u64 = 1;

/// The running servers: the first one, and one for each set of sockets that were made again. A
/// server that has lost its sockets continues while it has connections.
#[derive(Default)]
pub(super) struct Servers(Vec<Running>);

struct Running {
    handle: ServerHandle,
    /// Its sockets, without those that were made again since. `None` for the server of the other
    /// machines.
    sockets: Option<Vec<PathBuf>>,
    open: Open,
}

/// The sockets that a server accepts connections from.
enum Sockets {
    /// For processes of this machine.
    Local(Vec<UnixListener>),
    /// For the other machines of the fleet.
    Network(TcpListener, Box<ServerConfig>),
}

/// Counts the connections of a server.
#[derive(Clone, Default)]
struct Open(Arc<AtomicUsize>);

/// Counts as one connection, until dropped.
struct Connected(Open);

impl Servers {
    /// Starts to serve. Clients that connected earlier wait in a listener's queue. Must be called
    /// in a tokio runtime; the worker has a thread and a runtime of its own.
    pub(super) fn start(
        &mut self,
        listeners: Vec<Listener>,
        host: &Data<Host>,
    ) -> io::Result<Server> {
        let open = Open::default();
        let (sockets, listeners) =
            listeners.into_iter().map(|Listener { path, listener }| (path, listener)).unzip();
        let server = start(Sockets::Local(listeners), host, open.clone())?;
        self.0.push(Running { handle: server.handle(), sockets: Some(sockets), open });
        Ok(server)
    }

    /// Starts to serve the other machines of the fleet. Must be called in a tokio runtime.
    pub(super) fn start_for_machines(
        &mut self,
        listener: TcpListener,
        fleet: &Fleet,
        host: &Data<Host>,
    ) -> io::Result<()> {
        let (tls, open) = (Box::new(fleet.server_config()?), Open::default());
        let server = start(Sockets::Network(listener, tls), host, open.clone())?;
        self.0.push(Running { handle: server.handle(), sockets: None, open });
        tokio::spawn(async {
            if let Err(error) = server.await {
                tracing::error!(%error, "the server for the other machines failed");
            }
        });
        Ok(())
    }

    /// Serves sockets that were made again. Servers without a socket and a connection are ended,
    /// because they have threads.
    pub(super) async fn renew(&mut self, listeners: Vec<Listener>, host: &Data<Host>) {
        for sockets in self.0.iter_mut().filter_map(|server| server.sockets.as_mut()) {
            sockets.retain(|socket| listeners.iter().all(|new| new.path != *socket));
        }
        let is_unused = |server: &mut Running| {
            server.sockets.as_ref().is_some_and(Vec::is_empty) && server.open.count() == 0
        };
        let unused: Vec<_> = self.0.extract_if(.., is_unused).collect();
        match self.start(listeners, host) {
            Ok(server) => _ = tokio::spawn(server),
            Err(error) => {
                tracing::error!(%error, "a socket that was created again can't be served")
            }
        }
        join_all(unused.iter().map(|server| server.handle.stop(true))).await;
    }

    /// Ends all servers.
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

fn start(sockets: Sockets, host: &Data<Host>, open: Open) -> io::Result<Server> {
    let connections = match &sockets {
        Sockets::Local(_) => host.connections.clone(),
        Sockets::Network(..) => host.machine_connections.clone(),
    };
    let fleet = host.store.fleet().cloned();
    let host = Data::clone(host);
    let app = move || {
        // The wrapper added last is the outermost.
        App::new()
            .app_data(Data::clone(&host))
            .configure(api::routes)
            .wrap(from_fn(api::to_owner))
            .wrap(from_fn(api::read_ahead))
            .wrap(from_fn(connection::track_request))
            .wrap(from_fn(connection::admit))
            .wrap(from_fn(peer::only_ours))
    };
    let server =
        HttpServer::new(app).workers(1).disable_signals().shutdown_timeout(RESPONSES_TIMEOUT_S);
    // A client that closes its end is gone. It reads no response, and a stream would notice it only
    // at the next event.
    let server = server.h1_allow_half_closed(false);
    // The next bytes of a response are made only when all earlier ones are written. A larger buffer
    // would take the signs of life for a client that does not read for hours after its socket is
    // full.
    let server = server.h1_write_buffer_size(1).max_connections(connection::MAX_CONNECTIONS);
    let server = server.on_connect(move |io, extensions| {
        extensions.insert(open.connected());
        connections.record(io, fleet.as_ref(), extensions);
    });
    let server = match sockets {
        Sockets::Local(listeners) => {
            listeners.into_iter().try_fold(server, HttpServer::listen_uds)?
        }
        Sockets::Network(listener, tls) => server.listen_rustls_0_23(listener, *tls)?,
    };
    Ok(server.run())
}
