//! What is said of a page that is to be opened, and of what was not let through.

use std::fmt;
use std::net::IpAddr;

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
    /// Where it is now: loopback, or private networks.
    pub addresses: Vec<IpAddr>,
}

/// Why something is not let through, in words by its `Display`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Why {
    /// What should be opened is no URL.
    NotAnAddress {
        /// What it is.
        url: String,
    },
}

/// What was not let through: taken by [`Guard::refused`](super::Guard::refused).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refusals {
    /// The first 32 hosts, each with its reason once.
    pub hosts: Vec<Refusal>,
    /// How many further ones there were, each counted as often as it was tried.
    pub more: u64,
}

/// A host that was not let through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The host and its port, as they were asked for.
    pub host: String,
    /// Why.
    pub why: Why,
    /// How often it was tried.
    pub times: u64,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnAddress { url } => write!(f, "`{url}` is no URL"),
        }
    }
}
