//! The other machines of this machine's fleet: connections to them, and from them.

mod tls;

use std::io;
use std::net::{TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_session::folders::Membership;
use holdpoint_session::remote::http::{self, Bytes, Method, Response};
use holdpoint_session::store::OtherMachine;
use rustix::net::sockopt;
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use self::tls::Identity;
use crate::error::CliError;

pub(crate) use self::tls::make_certificate;

/// How long a connection may take, with its handshake.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);

/// How long two machines may have older knowledge of each other: they read it every second.
const UNKNOWN_FOR: Duration = Duration::from_secs(2);

/// The pause before a machine is tried again that does not know this one yet.
const RETRY: Duration = Duration::from_millis(100);

/// The seconds without data after which a connection is tested, and between two tests.
const KEEPALIVE_S: u64 = 5;

/// How many tests without an answer end a connection.
const KEEPALIVE_TESTS: u32 = 3;

/// How long sent data may lack an acknowledgement, in milliseconds.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_MS: u32 = 20_000;

/// The fleet of this machine. Cheap to clone.
#[derive(Clone)]
pub(super) struct Fleet {
    /// The name of this machine.
    pub(super) name: Arc<str>,
    identity: Arc<Identity>,
    others: watch::Receiver<Arc<[OtherMachine]>>,
}

/// A machine at the other end of a connection to this daemon.
#[derive(Debug, Clone)]
pub(super) struct CallingMachine {
    pub(super) name: Arc<str>,
    certificate: CertificateDer<'static>,
}

/// The reason why another machine did not reply to a request.
#[derive(Debug, Error)]
pub(super) enum RequestFailed {
    /// The machine did not get the request.
    #[error("{0}")]
    Unreachable(String),
    /// The machine may have carried out the request.
    #[error("{0}")]
    Broken(String),
}

impl Fleet {
    pub(super) fn new(
        membership: &Membership,
        others: watch::Receiver<Arc<[OtherMachine]>>,
    ) -> Result<Self, CliError> {
        let identity = Identity::of(&membership.certificate, &membership.key).map_err(|error| {
            CliError::failed(format!("the certificate of this machine can't be used: {error}"))
                .hint("let the machine leave the fleet, and join again")
        })?;
        Ok(Self { name: (*membership.name).into(), identity: Arc::new(identity), others })
    }

    /// The configuration of connections from the other machines.
    pub(super) fn server_config(&self) -> io::Result<ServerConfig> {
        self.identity.server(self.others.clone()).map_err(io::Error::other)
    }

    /// The machine with this certificate.
    pub(super) fn calling(&self, certificate: &CertificateDer<'_>) -> Option<CallingMachine> {
        let others = self.others.borrow();
        let machine = tls::with_certificate(&others, certificate)?;
        let certificate = certificate.clone().into_owned();
        Some(CallingMachine { name: (*machine.name).into(), certificate })
    }

    /// Whether a machine is still a member, with the same certificate and a lease.
    pub(super) fn has(&self, machine: &CallingMachine) -> bool {
        machine.is_among(&self.others.borrow())
    }

    /// Whether there is a machine with this name.
    pub(super) fn knows(&self, machine: &str) -> bool {
        self.others.borrow().iter().any(|other| other.name == machine)
    }

    /// A machine with a lease that can open sessions with this home, other than those that were tried:
    /// the machine with this name, or one that has this place, preferably one that can be reached.
    pub(super) fn opener(&self, home: &str, tried: &[String]) -> Option<String> {
        let others = self.others.borrow();
        let can_open = |other: &&OtherMachine| {
            let has_home = other.name == home || other.places.iter().any(|place| place == home);
            has_home && other.has_lease && !tried.contains(&other.name)
        };
        let chosen = others.iter().filter(can_open).min_by_key(|other| other.address.is_none());
        chosen.map(|other| other.name.clone())
    }

    /// Waits until a machine that has connected is no member any more, or has no lease.
    pub(super) async fn left(&self, machine: &CallingMachine) {
        // The sender ends with the store, and thus after this.
        let _ = self.others.clone().wait_for(|others| !machine.is_among(others)).await;
    }

    /// Waits until a machine has no lease any more.
    pub(super) async fn lost(&self, machine: &str) {
        let has_lease = |others: &Arc<[OtherMachine]>| {
            others.iter().any(|other| other.name == machine && other.has_lease)
        };
        // The sender ends with the store, and thus after this.
        let _ = self.others.clone().wait_for(|others| !has_lease(others)).await;
    }

    /// Sends a request to a machine. Waits for its reply while the machine has a lease.
    pub(super) async fn request(
        &self,
        machine: &str,
        (method, path): (Method, &str),
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Response, RequestFailed> {
        let by = Instant::now() + UNKNOWN_FOR;
        loop {
            let stream = self.connect(machine).await?;
            let request = http::request_over(stream, method.clone(), path, headers, body.clone());
            let failed = tokio::select! {
                biased;
                response = request => match response {
                    Ok(response) => return Ok(response),
                    Err(error) => error,
                },
                () = self.lost(machine) => {
                    return Err(RequestFailed::Broken("it does not respond".to_owned()));
                }
            };
            if !tls::is_refusal(&failed) {
                return Err(RequestFailed::Broken(failed.to_string()));
            }
            // It has not read the request.
            if Instant::now() > by {
                let message = "it does not accept the certificate of this machine";
                return Err(RequestFailed::Unreachable(message.to_owned()));
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Connects to a machine. If that fails, tries its next address, which it has after a start.
    async fn connect(&self, machine: &str) -> Result<TlsStream<TcpStream>, RequestFailed> {
        let known = self.endpoint(machine, None).await?;
        let error = match self.connect_to(&known).await {
            Ok(stream) => return Ok(stream),
            Err(error) => error,
        };
        match self.endpoint(machine, Some(&known)).await {
            Ok(next) => self.connect_to(&next).await,
            Err(_) => Err(error),
        }
    }

    async fn connect_to(
        &self,
        Endpoint { address, certificate }: &Endpoint,
    ) -> Result<TlsStream<TcpStream>, RequestFailed> {
        let connecting = async {
            let tls = self.identity.client(certificate).map_err(io::Error::other)?;
            let stream = TcpStream::connect(&**address).await?;
            set_options(&stream)?;
            tls::connect(tls, stream).await
        };
        let failed = |why: String| RequestFailed::Unreachable(format!("{address}: {why}"));
        match timeout(CONNECT_LIMIT, connecting).await {
            Ok(connected) => connected.map_err(|error| failed(error.to_string())),
            Err(_) => Err(failed(format!("no answer in {CONNECT_LIMIT:?}"))),
        }
    }

    /// Waits for the endpoint of a machine that has a lease, and that has another endpoint than
    /// `known`.
    async fn endpoint(
        &self,
        machine: &str,
        known: Option<&Endpoint>,
    ) -> Result<Endpoint, RequestFailed> {
        let mut others = self.others.clone();
        let found = |others: &Arc<[OtherMachine]>| {
            others.iter().find(|other| other.name == machine && other.has_lease).cloned()
        };
        let is_wanted = |others: &Arc<[OtherMachine]>| {
            found(others).is_some_and(|machine| known.is_none_or(|known| *known != machine))
        };
        let unreachable = |message: &str| RequestFailed::Unreachable(message.to_owned());
        let wanted = timeout(UNKNOWN_FOR, others.wait_for(is_wanted)).await;
        let wanted = wanted.ok().and_then(Result::ok).and_then(|others| found(&others));
        let wanted = wanted.ok_or_else(|| unreachable("it does not respond"))?;
        let address =
            wanted.address.ok_or_else(|| unreachable("it joined the fleet without `--listen`"))?;
        Ok(Endpoint { address, certificate: wanted.certificate })
    }
}

impl CallingMachine {
    fn is_among(&self, machines: &[OtherMachine]) -> bool {
        tls::with_certificate(machines, &self.certificate)
            .is_some_and(|known| known.has_lease && *known.name == *self.name)
    }
}

/// How a machine is reached.
struct Endpoint {
    address: String,
    /// Its certificate, as PEM.
    certificate: String,
}

impl PartialEq<OtherMachine> for Endpoint {
    fn eq(&self, other: &OtherMachine) -> bool {
        other.address.as_ref() == Some(&self.address) && other.certificate == self.certificate
    }
}

/// Binds the socket at which the other machines reach this one. Returns also its address, as the
/// others use it.
pub(super) fn bind(membership: &Membership) -> Result<Option<(TcpListener, String)>, CliError> {
    let Some(listen) = &membership.listen else { return Ok(None) };
    let failed = |error: io::Error| {
        CliError::failed(format!("this machine can't listen on {listen}: {error}")).hint(
            "`holdpoint fleet leave` and then `holdpoint fleet join … --listen` set another address",
        )
    };
    let listener = TcpListener::bind(listen).map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    let host = listen.rsplit_once(':').map_or(&**listen, |(host, _)| host);
    let address = format!("{host}:{port}");
    Ok(Some((listener, address)))
}

/// Checks an address to listen on.
pub(crate) fn check_listen(address: &str) -> Result<(), CliError> {
    let invalid = |why: &str| {
        CliError::usage(format!("this machine can't listen on {address}: {why}")).hint(
            "give the address at which the other machines reach this one, and a port: 10.0.0.5:7443",
        )
    };
    let addresses: Vec<_> =
        address.to_socket_addrs().map_err(|error| invalid(&error.to_string()))?.collect();
    if addresses.iter().any(|address| address.ip().is_unspecified()) {
        return Err(invalid("the other machines can't connect to it"));
    }
    Ok(())
}

/// Sets the options of a connection between machines: it sends at once, and it ends if its other end
/// can't be reached any more, whether it sends or waits.
pub(super) fn set_options(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(KEEPALIVE_S))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(KEEPALIVE_S))?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_TESTS)?;
    // While data is unacknowledged, nothing is tested. Other systems have no such limit.
    #[cfg(target_os = "linux")]
    sockopt::set_tcp_user_timeout(stream, UNACKNOWLEDGED_MS)?;
    Ok(())
}
