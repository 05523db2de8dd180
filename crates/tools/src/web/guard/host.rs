//! Host names and addresses, parsed as browsers parse them and normalized, so that each host has
//! one form.

use std::fmt;
use std::net::IpAddr;

/// The most bytes of a name (RFC 1035).
const MAX_NAME: usize = 253;

/// A normalized host: `0x7f.1` is an address, `EXAMPLE.com.` is `example.com`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    /// A name in lower-case ASCII, without a trailing dot.
    Name(String),
    /// An address; an IPv4-mapped IPv6 address is stored as IPv4.
    Address(IpAddr),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) host: Host,
    pub(super) port: u16,
}

impl Host {
    /// Parses a host as written in a URL. `None` if it is not a host.
    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::from_url_host(url::Host::parse(text).ok()?)
    }

    fn from_url_host<S: AsRef<str>>(host: url::Host<S>) -> Option<Self> {
        match host {
            url::Host::Domain(name) => {
                let name = name.as_ref().trim_end_matches('.').to_ascii_lowercase();
                (1..=MAX_NAME).contains(&name.len()).then_some(Self::Name(name))
            }
            url::Host::Ipv4(address) => Some(Self::Address(address.into())),
            url::Host::Ipv6(address) => Some(Self::Address(IpAddr::V6(address).to_canonical())),
        }
    }
}

impl Target {
    /// The target of an http or https URL. `None` if the URL has no host.
    pub(super) fn from_url(url: &url::Url) -> Option<Self> {
        Some(Self { host: Host::from_url_host(url.host()?)?, port: url.port_or_known_default()? })
    }

    /// Parses `host`. `None` if it is not a host.
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
