//! Identifies the process at the other end of a connection as the kernel reports it, and admits
//! only this user's processes, without those that tool calls have started.

use std::any::Any;
use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use actix_web::Error;
use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Extensions, ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::web::Data;
use holdpoint_common::api::RequestError;
use holdpoint_common::{RefusedClient, SessionId};
use holdpoint_session::{Engine, RefusalLog};
use holdpoint_tools::{Ancestry, SupervisorAbove};
use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt::PeerPidfd};
use rustix::process::geteuid;
use tokio::net::UnixStream;

use super::error::ApiError;
use super::host::Host;

/// The maximum number of supervisors that are remembered, so that each leads to one fact.
const MAX_RECORDED: usize = 1024;

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

/// The check of a connection's peer, done at its first request.
struct PeerCheck {
    /// The peer's pidfd. The error is from the system.
    pidfd: Result<OwnedFd, Errno>,
    result: OnceLock<Result<(), RequestError>>,
}

/// Records the peer for all requests of the connection. The connection can't be refused here.
pub(super) fn record(io: &dyn Any, extensions: &mut Extensions) {
    let Some(stream) = io.downcast_ref::<UnixStream>() else { return };
    match stream.peer_cred() {
        Ok(cred) => {
            let pid = cred.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0);
            extensions.insert(Peer { uid: cred.uid(), pid });
            let pidfd = getsockopt(stream, PeerPidfd);
            extensions.insert(Arc::new(PeerCheck { pidfd, result: OnceLock::new() }));
        }
        Err(error) => tracing::error!(%error, "the peer of a connection is unknown"),
    }
}

/// The checks of all peers, and the record of those that were refused.
pub(super) struct Peers {
    daemon: Ancestry,
    refusals: RefusalLog,
    recorded: Mutex<HashSet<SupervisorAbove>>,
}

impl Peers {
    /// Reads the supervisors above the daemon, which do not count.
    ///
    /// # Errors
    /// The ancestors of this process can't be read.
    pub(super) fn new(engine: &Engine) -> Result<Self, RequestError> {
        Ok(Self {
            daemon: Ancestry::of_this_process().map_err(|error| unverified(&error))?,
            refusals: engine.refusal_log(),
            recorded: Mutex::default(),
        })
    }

    /// Refuses a process below a supervisor that is not above the daemon: a tool call has started
    /// it. The refusal is recorded in the log of the session, if it is one of ours.
    fn check(&self, peer: Peer, check: &PeerCheck, request: &str) -> Result<(), RequestError> {
        let (pid, peer) = check.ancestry(peer).map_err(|error| unverified(&error))?;
        let above: Vec<_> = peer.supervisors_not_above(&self.daemon).collect();
        if above.is_empty() {
            return Ok(());
        }
        let request = request.chars().take(MAX_REQUEST_CHARS).collect();
        let client = RefusedClient { pid, program: peer.program.clone(), request };
        // Any program can have the name of a supervisor, but none of them is a child of the daemon.
        if let Some(supervisor) = above.into_iter().find(|it| it.parent == std::process::id()) {
            self.record(supervisor, client);
        }
        Err(RequestError::FromTool)
    }

    /// Records the first refused client of each supervisor.
    fn record(&self, supervisor: &SupervisorAbove, client: RefusedClient) {
        {
            let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
            if recorded.len() >= MAX_RECORDED {
                recorded.clear();
            }
            if !recorded.insert(supervisor.clone()) {
                return;
            }
        }
        let Some(session) = supervisor.label().and_then(|label| label.parse::<SessionId>().ok())
        else {
            return;
        };
        let refusals = self.refusals.clone();
        actix_web::rt::spawn(async move {
            if let Err(error) = refusals.record(&session, client).await {
                tracing::warn!(%session, %error, "a refused client could not be recorded");
            }
        });
    }
}

impl PeerCheck {
    /// The peer's process id and ancestry.
    fn ancestry(&self, peer: Peer) -> io::Result<(u32, Ancestry)> {
        let pidfd = match &self.pidfd {
            Ok(pidfd) => pidfd,
            // A kernel before 6.5. The process may have ended, and its id may have been used again.
            Err(Errno::ENOPROTOOPT) => {
                let pid = peer.pid.ok_or_else(not_here)?;
                return Ok((pid, Ancestry::of(pid)?));
            }
            Err(error) => return Err((*error).into()),
        };
        let pid = pid_of(pidfd)?;
        let ancestry = Ancestry::of(pid)?;
        // If the process still has the id, it was the process whose ancestors were read.
        if pid_of(pidfd)? == pid { Ok((pid, ancestry)) } else { Err(not_here()) }
    }
}

/// The id of the process of a pidfd, in the namespace of `/proc`. Fails if it has ended.
fn pid_of(pidfd: &OwnedFd) -> io::Result<u32> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()))?;
    let pid = info.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse::<u32>().ok());
    pid.filter(|pid| *pid != 0).ok_or_else(not_here)
}

fn not_here() -> io::Error {
    io::Error::other("it has ended, or runs in another container")
}

fn unverified(error: &io::Error) -> RequestError {
    RequestError::Unverified { message: error.to_string() }
}

/// Admits only this user's processes, regardless of the modes of the folder and the socket, without
/// those that tool calls have started.
pub(super) async fn only_ours<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let Err(error) = check(&request) else {
        return Ok(next.call(request).await?.map_into_left_body());
    };
    let peer = request.conn_data::<Peer>().map_or_else(|| "unknown".to_owned(), Peer::to_string);
    let path: String = request.path().chars().take(MAX_REQUEST_CHARS).collect();
    tracing::warn!(peer, path, %error, "refused");
    // No later request on this connection would be served.
    let refused = ApiError::from(error).closing_response();
    Ok(request.into_response(refused).map_into_right_body())
}

fn check(request: &ServiceRequest) -> Result<(), RequestError> {
    let peer = request.conn_data::<Peer>().filter(|peer| peer.uid == geteuid().as_raw());
    let peer = *peer.ok_or(RequestError::Forbidden)?;
    let (Some(check), Some(host)) =
        (request.conn_data::<Arc<PeerCheck>>(), request.app_data::<Data<Host>>())
    else {
        return Err(RequestError::Forbidden);
    };
    // A process can't move out of a tool call or into one, so one check is enough.
    let line = || format!("{} {}", request.method(), request.path());
    check.result.get_or_init(|| host.peers.check(peer, check, &line())).clone()
}
