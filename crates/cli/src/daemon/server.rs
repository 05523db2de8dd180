//! The HTTP server on the daemon's socket.

use std::io;
use std::os::unix::net::UnixListener;

use actix_web::dev::Server;
use actix_web::middleware::from_fn;
use actix_web::web::Data;
use actix_web::{App, HttpServer};

use super::connection;
use super::host::Host;
use super::{api, peer};

/// Seconds that answers which are on their way when it stops may take.
const LAST_WORDS_S: u64 = 1;

/// Begins to serve: whoever has connected already waits in a listener's queue. To be called inside of a tokio
/// runtime; the worker has a thread and a runtime of its own.
pub(super) fn start(listeners: Vec<UnixListener>, host: &Data<Host>) -> io::Result<Server> {
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
    let server = server.on_connect(move |io, extensions| connections.note(io, extensions));
    let server = listeners.into_iter().try_fold(server, HttpServer::listen_uds)?;
    Ok(server.run())
}
