//! What is said of a page that is to be opened, and of what was not let through.

use std::net::IpAddr;

use thiserror::Error;

/// Whether a page may be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Go,
    /// A person has to allow it first: then it is given to [`Guard::allow`](super::Guard::allow).
    Ask(Ask),
    /// It may not, whoever allows it.
    Refused {
        /// Why.
        why: Why,
    },
}

/// What a person is asked to allow: a host at private addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The host, as it is dialled: in lower case, in its ASCII form.
    pub host: String,
    /// Where it is now: on this machine, or in networks near it.
    pub addresses: Vec<IpAddr>,
}

/// Why something is not let through, or does not arrive; in words by its `Display`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Why {
    /// What should be opened names no host.
    #[error("`{url}` is not the address of a page")]
    NotAnAddress {
        /// What it is, shortened.
        url: String,
    },
    /// It is not for http or https.
    #[error("`{scheme}:` is not opened, only http and https are")]
    Scheme {
        /// What it is for.
        scheme: String,
    },
    /// The user's configuration denies it.
    #[error("the rule `{rule}` of `web.deny` denies it")]
    Denied {
        /// The rule, as it is written.
        rule: String,
    },
    /// A name by which a cloud gives its machines their keys.
    #[error("it is where a cloud keeps the keys of its machines")]
    Metadata,
    /// An address that is never dialled.
    #[error("{address} is never dialled: it is {what}")]
    Never {
        /// The address.
        address: IpAddr,
        /// What it is.
        what: &'static str,
    },
    /// A private address that nobody has allowed.
    #[error("it is at a private address ({address}), which nobody has allowed")]
    Private {
        /// The first of its private addresses.
        address: IpAddr,
    },
    /// A port of a browser of this program or of its guard.
    #[error("port {port} of this machine is the browser's own")]
    Own {
        /// The port.
        port: u16,
    },
    /// Its name leads nowhere.
    #[error("there is no host of this name")]
    NoSuchHost,
    /// Its address was not found.
    #[error("its address was not found: {error}")]
    Lookup {
        /// What went wrong.
        error: String,
    },
    /// It was let through and does not answer.
    #[error("it can't be reached: {error}")]
    Unreachable {
        /// What went wrong.
        error: String,
    },
    /// The guard has ended, with its browser.
    #[error("the browser has ended")]
    Ended,
}

/// What was not let through or did not arrive, by [`Ledger::refused`](super::Ledger::refused).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refusals {
    /// The first 32 hosts, each with its reason once.
    pub hosts: Vec<Refusal>,
    /// How many tries there were of further ones.
    pub more: u64,
}

/// A host that was not let through, or that did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The host and its port.
    pub host: String,
    /// Why.
    pub why: Why,
    /// How often it was tried.
    pub times: u64,
}

/// How many hosts are remembered.
const MAX_REFUSED: usize = 32;

impl Refusals {
    /// Remembers one more.
    pub(super) fn add(&mut self, host: &str, why: &Why) {
        if let Some(known) = self.hosts.iter_mut().find(|known| known.host == host && known.why == *why) {
            known.times += 1;
        } else if self.hosts.len() < MAX_REFUSED {
            self.hosts.push(Refusal { host: host.to_owned(), why: why.clone(), times: 1 });
        } else {
            self.more += 1;
        }
    }
}
