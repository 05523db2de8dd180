//! Identifies the process at the other end of a connection as the kernel reports it, and admits
//! only this user's processes, except those that a tool call has started.

mod process;

use std::any::Any;
use std::collections::HashSet;
use std::fmt;
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};

use actix_web::Error;
use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Extensions, ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::middleware::Next;
use actix_web::web::Data;
use holdpoint_common::api::RequestError;
use holdpoint_common::{RefusedClient, SessionId};
use holdpoint_session::{Engine, RefusalLog};
use holdpoint_tools::{Ancestry, SupervisorAbove};
use rustix::process::geteuid;
use tokio::net::UnixStream;

use self::process::{PeerProcess, not_here};
use super::error::ApiError;
use super::host::Host;

/// The maximum number of refusals that are remembered, so that each is recorded once.
const MAX_REMEMBERED: usize = 1024;

/// The maximum length of a request in a fact and in a line of the log, in characters.
const MAX_REQUEST_CHARS: usize = 200;

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

/// The check of a connection's peer, made at its first request. A process can't move out of a tool
/// call or into one, so one check is enough.
struct PeerCheck {
    /// The process, until it is checked.
    process: Mutex<Option<io::Result<PeerProcess>>>,
    result: OnceLock<Result<(), RequestError>>,
}

/// Records the peer for all requests of the connection. The connection can't be refused here.
pub(super) fn record(io: &dyn Any, extensions: &mut Extensions) {
    let Some(stream) = io.downcast_ref::<UnixStream>() else { return };
    match stream.peer_cred() {
        Ok(cred) => {
            let pid = cred.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0);
            extensions.insert(Peer { uid: cred.uid(), pid });
            let process = Mutex::new(Some(PeerProcess::of(stream, pid)));
            extensions.insert(PeerCheck { process, result: OnceLock::new() });
        }
        Err(error) => tracing::error!(%error, "the peer of a connection is unknown"),
    }
}

/// The checks of all peers, and the record of those that were refused.
pub(super) struct Peers {
    daemon: Ancestry,
    refusals: RefusalLog,
    /// The refusals that were recorded: by supervisor, and by whether the request was a read.
    recorded: Mutex<HashSet<(SupervisorAbove, bool)>>,
}

impl Peers {
    /// Reads the supervisors above the daemon. A process below them only was not started by a tool
    /// call of this daemon's sessions.
    ///
    /// # Errors
    /// `/proc` can't be read.
    pub(super) fn new(engine: &Engine) -> io::Result<Self> {
        Ok(Self {
            daemon: Ancestry::of_this_process()?,
            refusals: engine.refusal_log(),
            recorded: Mutex::default(),
        })
    }

    /// Refuses a process below a supervisor that is not above the daemon: a tool call has started
    /// it.
    fn check(
        &self,
        process: io::Result<PeerProcess>,
        request: &ServiceRequest,
    ) -> Result<(), RequestError> {
        let (pid, peer) = process.and_then(|it| ancestry(&it)).map_err(RequestError::unverified)?;
        let mut above = peer.supervisors_not_above(&self.daemon).peekable();
        if above.peek().is_none() {
            return Ok(());
        }
        let request_line = format!("{} {}", request.method(), request.path());
        let client = RefusedClient {
            pid,
            program: peer.program.clone(),
            request: request_line.chars().take(MAX_REQUEST_CHARS).collect(),
        };
        let is_read = request.method() == Method::GET;
        // Another program can own a supervisor, or have the name of one.
        match above.find(|supervisor| supervisor.parent == std::process::id()) {
            Some(supervisor) => self.record(supervisor, is_read, client),
            None => {
                tracing::info!(pid, "refused: a tool call of another program has started it");
            }
        }
        Err(RequestError::FromTool)
    }

    /// Records the refusal in the logs of the daemon and of the session, if it is new.
    fn record(&self, supervisor: &SupervisorAbove, is_read: bool, client: RefusedClient) {
        {
            let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
            if recorded.len() >= MAX_REMEMBERED {
                recorded.clear();
            }
            if !recorded.insert((supervisor.clone(), is_read)) {
                return;
            }
        }
        let RefusedClient { pid, program, request } = &client;
        let session = supervisor.label().and_then(|label| label.parse::<SessionId>().ok());
        let id = session.as_ref().map_or("?", SessionId::as_str);
        tracing::warn!(pid, program, request, session = id, "refused: a tool call has started it");
        let Some(session) = session else { return };
        let refusals = self.refusals.clone();
        actix_web::rt::spawn(async move {
            if let Err(error) = refusals.record(&session, client).await {
                tracing::warn!(%session, %error, "a refused client could not be recorded");
            }
        });
    }
}

/// The process id and the ancestry of a peer.
fn ancestry(process: &PeerProcess) -> io::Result<(u32, Ancestry)> {
    let pid = process.id()?;
    let ancestry = Ancestry::of(pid)?;
    // If the process still has the id, it was the process whose ancestors were read.
    if process.id()? == pid { Ok((pid, ancestry)) } else { Err(not_here()) }
}

/// Admits only this user's processes, regardless of the modes of the folder and the socket, except
/// those that a tool call has started.
pub(super) async fn only_ours<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let Err(error) = check(&request) else {
        return Ok(next.call(request).await?.map_into_left_body());
    };
    if error != RequestError::FromTool {
        let peer =
            request.conn_data::<Peer>().map_or_else(|| "unknown".to_owned(), Peer::to_string);
        tracing::warn!(peer, %error, "refused");
    }
    // No later request on this connection would be served.
    let refused = ApiError::from(error).closing_response();
    Ok(request.into_response(refused).map_into_right_body())
}

fn check(request: &ServiceRequest) -> Result<(), RequestError> {
    let is_ours = request.conn_data::<Peer>().is_some_and(|peer| peer.uid == geteuid().as_raw());
    let (true, Some(check), Some(host)) =
        (is_ours, request.conn_data::<PeerCheck>(), request.app_data::<Data<Host>>())
    else {
        return Err(RequestError::Forbidden);
    };
    let result = check.result.get_or_init(|| {
        let process = check.process.lock().unwrap_or_else(PoisonError::into_inner).take();
        host.peers.check(process.unwrap_or_else(|| Err(not_here())), request)
    });
    result.clone()
}
