//! Identifies the process at the other end of a connection as the kernel reports it, and admits
//! only this user's processes, except those that a tool call has started. A connection over the
//! network is one of another machine of the fleet, which its certificate names.

mod process;

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use actix_tls::accept::rustls_0_23::TlsStream;
use actix_web::Error;
use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Extensions, ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::web::Data;
use holdpoint_common::api::RequestError;
use holdpoint_common::{RefusedClient, SessionId};
use holdpoint_session::{Engine, RefusalLog};
use holdpoint_tools::{Ancestry, SupervisorAbove};
use rustix::process::geteuid;
use tokio::net::{TcpStream, UnixStream};

use self::process::{NamespaceDepth, PeerProcess, not_here};
use super::api;
use super::error::ApiError;
use super::fleet::{CallingMachine, Fleet};
use super::host::Host;

/// A connection of another machine.
pub(super) type MachineStream = TlsStream<TcpStream>;

/// The maximum number of different requests of one command that are recorded.
const MAX_RECORDED: usize = 10;

/// The maximum number of commands whose recorded requests are remembered.
const MAX_COMMANDS: usize = 256;

/// The minimum time between two lines of the log about clients that can't be attributed to one of
/// our sessions.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// The maximum length of a request in a fact and in a line of the log, in characters.
const MAX_REQUEST_CHARS: usize = 200;

/// The other end of a connection.
#[derive(Debug, Clone)]
pub(super) enum Peer {
    /// A process of this machine. The system reports its id only if it is in our namespace.
    Process { uid: u32, pid: Option<u32> },
    /// The daemon of another machine, which has checked its client.
    Machine(CallingMachine),
}

impl Peer {
    /// The id of a process of this machine.
    pub(super) fn pid(&self) -> Option<u32> {
        match self {
            Self::Process { pid, .. } => *pid,
            Self::Machine(_) => None,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { uid, pid: Some(pid) } => write!(f, "uid {uid} pid {pid}"),
            Self::Process { uid, pid: None } => write!(f, "uid {uid}"),
            Self::Machine(machine) => write!(f, "machine {}", machine.name),
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
pub(super) fn record(io: &dyn Any, fleet: Option<&Fleet>, extensions: &mut Extensions) {
    if let Some(stream) = io.downcast_ref::<MachineStream>() {
        let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let machine = certificates.first().and_then(|certificate| fleet?.calling(certificate));
        if let Some(machine) = machine {
            extensions.insert(Peer::Machine(machine));
        }
        return;
    }
    let Some(stream) = io.downcast_ref::<UnixStream>() else { return };
    match stream.peer_cred() {
        Ok(cred) => {
            let pid = cred.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0);
            extensions.insert(Peer::Process { uid: cred.uid(), pid });
            let process = Mutex::new(Some(PeerProcess::of(stream, pid)));
            extensions.insert(PeerCheck { process, result: OnceLock::new() });
        }
        Err(error) => tracing::error!(%error, "the peer of a connection is unknown"),
    }
}

/// The checks of all peers, and the record of those that were refused.
pub(super) struct Peers {
    daemon: Ancestry,
    depth: NamespaceDepth,
    refusals: RefusalLog,
    /// The refused requests that were recorded, by the supervisor of the command.
    recorded: Mutex<HashMap<SupervisorAbove, Vec<String>>>,
    /// When the last refusal was logged that is not in the log of a session.
    logged: Mutex<Option<Instant>>,
}

impl Peers {
    /// Reads the supervisors above the daemon. A client with no other supervisor above it was not
    /// started by a tool call of the daemon's sessions.
    ///
    /// # Errors
    /// The daemon's ancestors can't be read. Then no client could be identified, either.
    pub(super) fn new(engine: &Engine) -> io::Result<Self> {
        Ok(Self {
            daemon: Ancestry::of(Ancestry::of_this_process()?.pid)?,
            depth: NamespaceDepth::of_this_process()?,
            refusals: engine.refusal_log(),
            recorded: Mutex::default(),
            logged: Mutex::default(),
        })
    }

    /// Refuses a process below a supervisor that is not above the daemon: a tool call has started
    /// it.
    fn check(
        &self,
        peer: &Peer,
        process: io::Result<PeerProcess>,
        request: &ServiceRequest,
    ) -> Result<(), RequestError> {
        let ancestry = process.and_then(|process| self.ancestry(&process));
        let ancestry = ancestry.map_err(RequestError::unverified)?;
        let mut above = ancestry.supervisors_not_above(&self.daemon).peekable();
        if above.peek().is_none() {
            return Ok(());
        }
        let line = format!("{} {}", request.method(), request.path());
        let (program, request) = (ancestry.program.clone(), line.chars().take(MAX_REQUEST_CHARS));
        let client = RefusedClient { pid: ancestry.pid, program, request: request.collect() };
        // The supervisor may belong to another engine, or be another program with that name.
        match above.find(|supervisor| supervisor.parent == self.daemon.pid) {
            Some(supervisor) => self.record(supervisor, client),
            None => self.log(peer, &RequestError::FromTool),
        }
        Err(RequestError::FromTool)
    }

    /// The ancestry of a peer.
    fn ancestry(&self, process: &PeerProcess) -> io::Result<Ancestry> {
        let ancestry = Ancestry::of(process.id(self.depth)?)?;
        // If the process still runs, it had its id while its ancestors were read.
        if process.is_running() { Ok(ancestry) } else { Err(not_here()) }
    }

    /// Logs a refusal that no session's log has, unless another one was logged just now: a process
    /// can cause any number of them.
    fn log(&self, peer: &Peer, error: &RequestError) {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.is_none_or(|at| at.elapsed() >= LOG_INTERVAL) {
            *logged = Some(Instant::now());
            tracing::warn!(%peer, %error, "refused");
        }
    }

    /// Records the refusal in the logs of the daemon and of the session, if it is new.
    fn record(&self, supervisor: &SupervisorAbove, client: RefusedClient) {
        {
            let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
            if recorded.len() >= MAX_COMMANDS && !recorded.contains_key(supervisor) {
                recorded.clear();
            }
            let requests = recorded.entry(supervisor.clone()).or_default();
            if requests.len() >= MAX_RECORDED || requests.contains(&client.request) {
                return;
            }
            requests.push(client.request.clone());
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

/// Admits only this user's processes, regardless of the modes of the folder and the socket, except
/// those that a tool call has started.
pub(super) async fn only_ours<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let Err(error) = admit(&request) else {
        return Ok(next.call(request).await?.map_into_left_body());
    };
    if let (Some(peer), Some(host)) =
        (request.conn_data::<Peer>(), request.app_data::<Data<Host>>())
        && error != RequestError::FromTool
    {
        host.peers.log(peer, &error);
    }
    // No later request on this connection would be served.
    let refused = ApiError::from(error).closing_response();
    Ok(request.into_response(refused).map_into_right_body())
}

fn admit(request: &ServiceRequest) -> Result<(), RequestError> {
    let (Some(peer), Some(host)) = (request.conn_data::<Peer>(), request.app_data::<Data<Host>>())
    else {
        return Err(RequestError::Forbidden);
    };
    match peer {
        Peer::Process { uid, .. } if *uid == geteuid().as_raw() => {
            let check = request.conn_data::<PeerCheck>().ok_or(RequestError::Forbidden)?;
            let result = check.result.get_or_init(|| {
                let process = check.process.lock().unwrap_or_else(PoisonError::into_inner).take();
                host.peers.check(peer, process.unwrap_or_else(|| Err(not_here())), request)
            });
            result.clone()
        }
        Peer::Process { .. } => Err(RequestError::Forbidden),
        Peer::Machine(machine) => {
            // It may have been removed since it connected.
            let is_member = host.store.fleet().is_some_and(|fleet| fleet.has(machine));
            let is_admitted = is_member && api::is_forwarded(request.request());
            is_admitted.then_some(()).ok_or(RequestError::Forbidden)
        }
    }
}
