//! Hosts as browsers understand them: every way of writing one becomes the one that is dialled.

use std::fmt;
use std::net::IpAddr;

/// Whom an address names: `0x7f.1` is an address, `EXAMPLE.com.` is `example.com`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    /// A name: lower case, in ASCII, without a dot at its end.
    Name(String),
    /// An address; one of IPv4 that is written as IPv6 is one of IPv4.
    Address(IpAddr),
}

/// A host and its port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) host: Host,
    pub(super) port: u16,
}

impl Host {
    /// Reads a host as it stands in a URL. None if it can't be one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::of(url::Host::parse(text).ok()?)
    }

    fn of<S: AsRef<str>>(host: url::Host<S>) -> Option<Self> {
        match host {
            url::Host::Domain(name) => {
                let name = name.as_ref().trim_end_matches('.').to_ascii_lowercase();
                (!name.is_empty()).then_some(Self::Name(name))
            }
            url::Host::Ipv4(address) => Some(Self::Address(address.into())),
            url::Host::Ipv6(address) => Some(Self::Address(IpAddr::V6(address).to_canonical())),
        }
    }
}

impl Target {
    /// Where a page of http or https is. None if its URL names no host.
    pub(super) fn of(url: &url::Url) -> Option<Self> {
        Some(Self { host: Host::of(url.host()?)?, port: url.port_or_known_default()? })
    }

    /// Reads a host and a port. None if they can't be.
    pub(super) fn new(host: &str, port: u16) -> Option<Self> {
        Some(Self { host: Host::parse(host)?, port })
    }
}

/// Whether a name is this domain or below it.
pub(super) fn is_below(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain).is_some_and(|below| below.is_empty() || below.ends_with('.'))
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}
