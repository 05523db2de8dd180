//! Where the browser may go: addresses are judged, and a proxy on loopback dials nothing but what was judged.
//!
//! Everybody's addresses may be reached. Loopback and private networks are asked about, once for a host and a session:
//! people debug their own servers. Link-local addresses, where clouds keep the keys of their machines, and those that
//! are no host's are never dialled. It is the address that counts and never its name: a name is looked up here, each of
//! its addresses is judged, and one of these very addresses is dialled. What pages load, where they redirect to and
//! what their scripts fetch comes the same way, for Chromium has no other.

mod address;
mod host;
mod judge;
mod ledger;
mod own;
mod proxy;
mod resolve;
mod rules;
mod verdict;

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use thiserror::Error;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::sync::CancellationToken;

use judge::Judge;
pub use ledger::Ledger;
use own::Kept;
pub use own::OwnPorts;
pub(super) use proxy::GUARD;
pub use resolve::{Resolve, SystemResolver};
pub use rules::{RuleError, Rules};
pub use verdict::{Ask, Refusal, Refusals, Verdict, Why};

/// How many names are looked up at once; further ones wait.
const MAX_LOOKUPS: usize = 16;

/// What Chromium would ask its makers for, a tab in sight or not.
const OWN_TRAFFIC: [&str; 5] =
    ["OptimizationHints", "NetworkTimeServiceQuerying", "PreconnectToSearch", "SearchEnginePreconnect2", "AimEnabled"];

/// The way of one browser to the network: a proxy on 127.0.0.1, through which it dials everything.
///
/// It has a thread of its own, which ends when this is dropped, and with it every connection.
pub struct Guard {
    address: SocketAddr,
    judge: Arc<Judge>,
    runtime: Handle,
    end: CancellationToken,
    thread: Option<JoinHandle<()>>,
    own: OwnPorts,
    /// Ports of its browser, and its own.
    kept: Mutex<Vec<Kept>>,
}

/// Why a guard could not be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GuardError {
    /// Nothing can be listened on.
    #[error("the browser's proxy can't listen on 127.0.0.1")]
    Listen(#[source] std::io::Error),
    /// There is no thread or no runtime for it.
    #[error("the browser's proxy can't be started")]
    Start(#[source] std::io::Error),
}

impl Guard {
    /// Listens on a free port of 127.0.0.1. Names are looked up as the system does it.
    ///
    /// # Errors
    /// [`GuardError`].
    pub fn start(rules: Rules) -> Result<Self, GuardError> {
        Self::start_with(rules, Arc::new(SystemResolver))
    }

    /// The same, with names looked up by `resolver`.
    ///
    /// # Errors
    /// [`GuardError`].
    pub fn start_with(rules: Rules, resolver: Arc<dyn Resolve>) -> Result<Self, GuardError> {
        Self::start_among(rules, resolver, OwnPorts::default())
    }

    /// The same, one of several: what `own` has of any of them is out of reach for the pages of all.
    ///
    /// # Errors
    /// [`GuardError`].
    pub fn start_among(rules: Rules, resolver: Arc<dyn Resolve>, own: OwnPorts) -> Result<Self, GuardError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(GuardError::Listen)?;
        let address = listener.local_addr().map_err(GuardError::Listen)?;
        listener.set_nonblocking(true).map_err(GuardError::Listen)?;
        let judge = Arc::new(Judge::new(rules, resolver, own.clone()));
        let kept = Mutex::new(vec![own.keep(address.port())]);
        let mut runtime = Builder::new_current_thread();
        let runtime = runtime.enable_io().enable_time().max_blocking_threads(MAX_LOOKUPS).build();
        let runtime = runtime.map_err(GuardError::Start)?;
        let listener = {
            let _in = runtime.enter();
            tokio::net::TcpListener::from_std(listener).map_err(GuardError::Start)?
        };
        let (handle, end) = (runtime.handle().clone(), CancellationToken::new());
        let (serving, ended) = (judge.clone(), end.clone());
        let thread = std::thread::Builder::new().name("browser-guard".to_owned());
        let thread = thread.spawn(move || run(runtime, listener, serving, &ended)).map_err(GuardError::Start)?;
        Ok(Self { address, judge, runtime: handle, end, thread: Some(thread), own, kept })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What Chromium has to be started with, so that this is its only way to the network, and pages alone take it. (Of
    /// several `--disable-features` it reads the last.)
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        vec![
            format!("--proxy-server=http://{}", self.address),
            // Loopback goes through it too, which Chromium spares its proxies.
            "--proxy-bypass-list=<-loopback>".to_owned(),
            // With a proxy it looks nothing up itself; should it ever, it finds nothing.
            format!("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {}", self.address.ip()),
            // A proxy of http takes no UDP: neither QUIC nor WebRTC may have any.
            "--disable-quic".to_owned(),
            "--webrtc-ip-handling-policy=disable_non_proxied_udp".to_owned(),
            // It asks nobody on its own: no updates, no hints, no time, no search engine that might be needed or may be
            // asked in other ways, and no accounts and messages (a port that it never dials).
            "--component-updater=url-source=data:,".to_owned(),
            format!("--disable-features={}", OWN_TRAFFIC.join(",")),
            "--gcm-checkin-url=http://127.0.0.1:1/".to_owned(),
            "--gaia-url=http://127.0.0.1:1/".to_owned(),
        ]
    }

    /// Whether a page may be opened, before it is: for http and https, and as its host is now. A redirect, or what the
    /// page loads, is judged when it comes.
    ///
    /// The host's addresses are found first, which takes 5 s at most. A future of its own, for any runtime.
    pub fn judge(&self, url: &str) -> impl Future<Output = Verdict> + Send + 'static + use<> {
        let (judge, url) = (self.judge.clone(), url.to_owned());
        let judged = self.runtime.spawn(async move { judge.page(&url).await });
        async { judged.await.unwrap_or(Verdict::Refused { why: Why::Ended }) }
    }

    /// A person has allowed what was asked: this host, at these addresses, whatever the port, for this session.
    pub fn allow(&self, ask: &Ask) {
        self.judge.rules().allow(ask, None);
    }

    /// The same at one port alone.
    pub fn allow_port(&self, ask: &Ask, port: u16) {
        self.judge.rules().allow(ask, Some(port));
    }

    /// Keeps a port of this machine out of reach of every page as long as this guard is there, whatever is allowed: the
    /// browser's own debugging port.
    pub fn forbid_port(&self, port: u16) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(self.own.keep(port));
    }

    /// Begins to write down what is not let through, or does not answer.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        self.judge.ledgers().open()
    }
}

/// Whether a page may be opened, as far as its address tells: none where a name would have to be looked up far away,
/// which says the name to others. May block, for 5 s at most.
pub(super) fn at_sight(rules: &Rules, resolver: Arc<dyn Resolve>, own: &OwnPorts, url: &str) -> Option<Verdict> {
    Judge::new(rules.clone(), resolver, own.clone()).at_sight(url)
}

fn run(runtime: Runtime, listener: tokio::net::TcpListener, judge: Arc<Judge>, ended: &CancellationToken) {
    runtime.block_on(ended.run_until_cancelled(proxy::serve(listener, judge)));
    // A name that is still being looked up is not waited for.
    runtime.shutdown_background();
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.end.cancel();
        // Should it have panicked, there is nobody left to be told.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("address", &self.address).finish_non_exhaustive()
    }
}
