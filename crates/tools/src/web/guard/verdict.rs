//! The results of a judgement, and the record of refused connections.

use std::net::IpAddr;

use thiserror::Error;

/// The guard's judgement on opening a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The page may be opened.
    Allow,
    /// The user has to approve the host; an approval is passed to
    /// [`Guard::allow`](super::Guard::allow).
    Ask(Ask),
    /// The page can't be opened, and no approval changes that.
    Refused {
        /// The reason for the refusal.
        why: RefusalReason,
    },
}

/// A host at private addresses that needs the user's approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The host as it is dialled: in lower case, in its ASCII form.
    pub host: String,
    /// Its current addresses on this machine or in nearby networks.
    pub addresses: Vec<IpAddr>,
}

/// The reason why a connection was refused or failed; `Display` is the text for the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum RefusalReason {
    /// The text is not a URL, or the URL has no host.
    #[error("`{url}` is not the URL of a page")]
    NotAnAddress {
        /// The URL, cut to 100 characters.
        url: String,
    },
    /// The URL's scheme is neither http nor https.
    #[error("`{scheme}:` is not supported, only http and https are")]
    Scheme {
        /// The scheme of the URL.
        scheme: String,
    },
    /// The user's configuration denies the host.
    #[error("the rule `{rule}` of `web.deny` denies it")]
    Denied {
        /// The rule as it is written.
        rule: String,
    },
    /// The call of a program in a sandbox does not name the host.
    #[error("it is not among the domains that the command may reach")]
    NotNamed,
    /// The name belongs to a service that gives cloud machines their keys.
    #[error("it is where a cloud serves the credentials of its machines")]
    Metadata,
    /// The host has an address that is never dialled.
    #[error("{address} is never dialled: it is {what}")]
    Never {
        /// The address that is never dialled.
        address: IpAddr,
        /// The kind of the address, in words.
        what: &'static str,
    },
    /// The host has a private address that the user has not approved.
    #[error("it is at a private address ({address}), which the user has not approved")]
    Private {
        /// The first of its private addresses.
        address: IpAddr,
    },
    /// The port belongs to one of the process's own browsers or guards.
    #[error("port {port} of this machine is the browser's own")]
    Own {
        /// The port that is protected.
        port: u16,
    },
    /// The name has no addresses.
    #[error("no such host")]
    NoSuchHost,
    /// The lookup of the name failed.
    #[error("its address can't be looked up: {error}")]
    Lookup {
        /// The error of the lookup.
        error: String,
    },
    /// The connection was allowed but failed.
    #[error("it can't be reached: {error}")]
    Unreachable {
        /// The error of the connection.
        error: String,
    },
    /// The guard has ended with its browser.
    #[error("the browser has ended")]
    Ended,
}

/// The refused and failed connections of a tab, from [`Ledger::refused`](super::Ledger::refused).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refusals {
    /// The first 32 refusals; each pair of host and reason is listed once.
    pub hosts: Vec<Refusal>,
    /// How many tries of pairs that are not in `hosts` were refused or failed.
    pub more: u64,
}

/// A host that was refused or did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The host and its port.
    pub host: String,
    /// The reason why it was refused or failed.
    pub why: RefusalReason,
    /// How often a connection was tried.
    pub times: u64,
}

/// How many pairs of host and reason a ledger remembers.
const MAX_REFUSED: usize = 32;

impl Refusals {
    /// Counts one more refusal.
    pub(super) fn add(&mut self, host: &str, why: &RefusalReason) {
        if let Some(known) =
            self.hosts.iter_mut().find(|known| known.host == host && known.why == *why)
        {
            known.times += 1;
        } else if self.hosts.len() < MAX_REFUSED {
            self.hosts.push(Refusal { host: host.to_owned(), why: why.clone(), times: 1 });
        } else {
            self.more += 1;
        }
    }
}
