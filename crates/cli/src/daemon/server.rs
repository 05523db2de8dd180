//! The HTTP server on the daemon's socket.

use std::io;
use std::os::unix::net::UnixListener;

use actix_web::dev::Server;
use actix_web::middleware::from_fn;
use actix_web::web::{self, Data, ServiceConfig};
use actix_web::{App, HttpServer};

use super::host::Host;
use super::{peer, status};

/// Begins to serve: whoever has connected already waits in the listener's queue. To be called inside of a tokio
/// runtime; the worker has a thread and a runtime of its own.
pub(super) fn start(listener: UnixListener, host: Data<Host>) -> io::Result<Server> {
    let app = move || App::new().app_data(Data::clone(&host)).wrap(from_fn(peer::only_ours)).configure(routes);
    let server = HttpServer::new(app).workers(1).disable_signals().on_connect(peer::note);
    Ok(server.listen_uds(listener)?.run())
}

fn routes(config: &mut ServiceConfig) {
    config.service(web::scope("/v1").route("/status", web::get().to(status::get)));
}
