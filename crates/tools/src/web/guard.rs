//! Where the browser may go: addresses are judged, and a proxy on loopback dials nothing but what was judged.

mod verdict;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use thiserror::Error;

pub use verdict::{Ask, Refusal, Refusals, Verdict, Why};

/// The way of one browser to the network: a proxy on 127.0.0.1, through which it dials everything.
///
/// It has a thread of its own, which ends when this is dropped, and with it every connection.
#[derive(Debug)]
pub struct Guard {
    address: SocketAddr,
}

/// By what a guard judges. Clones share what people have allowed: it is a session's, and outlives its browsers.
#[derive(Debug, Clone, Default)]
pub struct Rules {}

/// A rule of `[web] allow` or `deny` that can't be kept.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the rule `{rule}` can't be kept: {why}")]
#[non_exhaustive]
pub struct RuleError {
    /// The rule, as it is written.
    pub rule: String,
    /// What is wrong with it, and what to write instead.
    pub why: String,
}

/// Why a guard could not be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GuardError {
    /// Nothing can be listened on.
    #[error("can't listen on 127.0.0.1")]
    Listen(#[source] std::io::Error),
    /// There is no thread for it.
    #[error("can't start the browser's proxy")]
    Start(#[source] std::io::Error),
}

impl Rules {
    /// The rules of a user's configuration. A rule is a domain, `example.com`, which stands for everything below it
    /// too, or an address, either with or without a port.
    ///
    /// What `allow` names goes unasked, at a private address too; what `deny` names never goes.
    ///
    /// # Errors
    /// [`RuleError`] if a rule is no domain and no address.
    pub fn new(_allow: &[String], _deny: &[String]) -> Result<Self, RuleError> {
        Ok(Self {})
    }
}

impl Guard {
    /// Listens on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// [`GuardError`].
    pub fn start(_rules: Rules) -> Result<Self, GuardError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(GuardError::Listen)?;
        Ok(Self { address: listener.local_addr().map_err(GuardError::Listen)? })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What Chromium has to be started with, so that it dials nothing but this proxy.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        vec![format!("--proxy-server={}", self.address), "--proxy-bypass-list=<-loopback>".to_owned()]
    }

    /// Whether a page may be opened, before it is. Finds out where it is, which takes 5 s at most.
    #[must_use]
    pub fn judge(&self, url: &str) -> Verdict {
        Verdict::Refused { why: Why::NotAnAddress { url: url.to_owned() } }
    }

    /// The same as a future of its own, for any runtime, to be raced with a cancellation.
    pub fn judging(&self, url: &str) -> impl Future<Output = Verdict> + Send + 'static + use<> {
        std::future::ready(self.judge(url))
    }

    /// A person has allowed what was asked: this host, at these addresses, any port of it, for this session.
    pub fn allow(&self, _ask: &Ask) {}

    /// Keeps the browser's own debugging port out of reach of its pages, whatever is allowed.
    pub fn forbid_port(&self, _port: u16) {}

    /// Takes what was refused since it was last asked.
    #[must_use]
    pub fn refused(&self) -> Refusals {
        Refusals::default()
    }
}
