//! The guard of a browser, or of a program in a sandbox: a proxy that judges every connection
//! before it dials.
//!
//! Public addresses need no approval. Loopback and private networks need the user's approval, once
//! per host and session; they are not simply refused, because users debug their own servers
//! there. Link-local addresses, where clouds keep the keys of their machines, and addresses that
//! belong to no host are never dialled.
//!
//! The guard judges addresses, not names: it looks a name up itself, judges each of the addresses,
//! and dials only those. Subresources, redirects and requests of scripts take the same path,
//! because Chromium has no other connection to the network.

mod address;
#[cfg(target_os = "linux")]
mod domains;
mod host;
mod judge;
mod ledger;
mod near;
mod own;
mod proxy;
mod resolve;
mod rules;
mod thread;
mod verdict;

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};

use thiserror::Error;

#[cfg(target_os = "linux")]
pub(crate) use domains::{DomainProxy, RefusedHosts};
use judge::Judge;
pub use ledger::Ledger;
pub use near::is_near;
pub use own::OwnPorts;
use own::ReservedPort;
use proxy::Clients;
pub(super) use proxy::GUARD_HEADER;
pub use resolve::{Resolve, SystemResolver};
pub use rules::{RuleError, Rules};
use thread::{ProxyThread, runtime};
pub use verdict::{Ask, Refusal, RefusalReason, Refusals, Verdict};

/// Chromium features that contact its vendor on their own, whether or not a tab is visible.
const OWN_TRAFFIC: [&str; 5] = [
    "OptimizationHints",
    "NetworkTimeServiceQuerying",
    "PreconnectToSearch",
    "SearchEnginePreconnect2",
    "AimEnabled",
];

/// The proxy on 127.0.0.1 that is one browser's only connection to the network.
///
/// Its thread and all its connections end when this is dropped.
pub struct Guard {
    address: SocketAddr,
    judge: Arc<Judge>,
    thread: ProxyThread,
    own_ports: OwnPorts,
    /// The guard's own port and those passed to `forbid_port`.
    reserved_ports: Mutex<Vec<ReservedPort>>,
}

/// The error of a guard that could not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GuardError {
    /// The proxy can't listen on 127.0.0.1.
    #[error("the browser's proxy can't listen on 127.0.0.1")]
    Listen(#[source] std::io::Error),
    /// The proxy's thread or runtime could not be created.
    #[error("the browser's proxy can't be started")]
    Start(#[source] std::io::Error),
}

impl Guard {
    /// Starts a guard on a free port of 127.0.0.1 that uses the system's name resolution.
    ///
    /// # Errors
    /// [`GuardError`] if the proxy can't listen or can't be started.
    pub fn start(rules: Rules) -> Result<Self, GuardError> {
        Self::start_with(rules, Arc::new(SystemResolver))
    }

    /// Like [`start`](Self::start), with names looked up by `resolver`.
    ///
    /// # Errors
    /// [`GuardError`] if the proxy can't listen or can't be started.
    pub fn start_with(rules: Rules, resolver: Arc<dyn Resolve>) -> Result<Self, GuardError> {
        Self::start_among(rules, resolver, OwnPorts::default())
    }

    /// Like [`start_with`](Self::start_with), as one of several guards that share `own_ports`: no
    /// page of any of them can reach these ports.
    ///
    /// # Errors
    /// [`GuardError`] if the proxy can't listen or can't be started.
    pub fn start_among(
        rules: Rules,
        resolver: Arc<dyn Resolve>,
        own_ports: OwnPorts,
    ) -> Result<Self, GuardError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(GuardError::Listen)?;
        let address = listener.local_addr().map_err(GuardError::Listen)?;
        listener.set_nonblocking(true).map_err(GuardError::Listen)?;
        let judge = Arc::new(Judge::new(rules, resolver, own_ports.clone()));
        let reserved_ports = Mutex::new(vec![own_ports.reserve(address.port())]);
        let runtime = runtime().map_err(GuardError::Start)?;
        let listener = {
            let _in = runtime.enter();
            tokio::net::TcpListener::from_std(listener).map_err(GuardError::Start)?
        };
        let serving = proxy::serve(listener, judge.clone(), Clients::OwnUser);
        let thread =
            ProxyThread::spawn("browser-guard", runtime, serving).map_err(GuardError::Start)?;
        Ok(Self { address, judge, thread, own_ports, reserved_ports })
    }

    /// The address the proxy listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The arguments that make the proxy Chromium's only connection to the network and disable
    /// traffic that no page asked for. Chromium honours only the last `--disable-features`, so this
    /// must be the only one.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        vec![
            format!("--proxy-server=http://{}", self.address),
            // By default, Chromium bypasses the proxy for loopback addresses.
            "--proxy-bypass-list=<-loopback>".to_owned(),
            // With a proxy, Chromium resolves no names itself; if it ever does, this makes the
            // lookup fail.
            format!("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {}", self.address.ip()),
            // An HTTP proxy carries no UDP, so disable QUIC and WebRTC over UDP.
            "--disable-quic".to_owned(),
            "--webrtc-ip-handling-policy=disable_non_proxied_udp".to_owned(),
            // Disable the browser's own requests: component updates, hints, network time, search
            // engine features, accounts and messaging. Port 1 is one that Chromium never dials.
            "--component-updater=url-source=data:,".to_owned(),
            format!("--disable-features={}", OWN_TRAFFIC.join(",")),
            "--gcm-checkin-url=http://127.0.0.1:1/".to_owned(),
            "--gaia-url=http://127.0.0.1:1/".to_owned(),
        ]
    }

    /// Judges whether an http or https page may be opened, with its host's current addresses.
    /// Redirects and subresources are judged when they are requested.
    ///
    /// Finding the addresses takes up to 5 s. The future can run on any runtime.
    pub fn judge(&self, url: &str) -> impl Future<Output = Verdict> + Send + 'static + use<> {
        let (judge, url) = (self.judge.clone(), url.to_owned());
        let judged = self.thread.runtime().spawn(async move { judge.judge_page(&url).await });
        async { judged.await.unwrap_or(Verdict::Refused { why: RefusalReason::Ended }) }
    }

    /// Records the user's approval of an ask: its host at its addresses, on any port, for the
    /// session.
    pub fn allow(&self, ask: &Ask) {
        self.judge.rules().allow(ask, None);
    }

    /// Records an approval like [`allow`](Self::allow), but for one port only.
    pub fn allow_port(&self, ask: &Ask, port: u16) {
        self.judge.rules().allow(ask, Some(port));
    }

    /// Makes a port of this machine unreachable for every page while this guard exists, even if a
    /// rule allows it. Used for the browser's debugging port.
    pub fn forbid_port(&self, port: u16) {
        self.reserved_ports
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(self.own_ports.reserve(port));
    }

    /// Opens a ledger, which records the connections that are refused or fail from now on.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        self.judge.ledgers().open()
    }
}

/// Judges a page without looking its name up at a remote resolver, which would disclose the name. A
/// name that is resolved nearby, such as `printer.local`, is still looked up, which may block for
/// up to 5 s. Returns `None` if only a remote lookup can tell, or if the nearby one fails.
pub(super) fn judge_locally(
    rules: &Rules,
    resolver: Arc<dyn Resolve>,
    own_ports: &OwnPorts,
    url: &str,
) -> Option<Verdict> {
    Judge::new(rules.clone(), resolver, own_ports.clone()).judge_locally(url)
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("address", &self.address).finish_non_exhaustive()
    }
}
