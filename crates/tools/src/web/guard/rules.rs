//! The rules of a guard: the domains of the user's configuration and the approvals of a session.

use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;

use super::host::{Host, Target, is_below};
use super::verdict::Ask;
use crate::sandbox::Domains;

/// The rules of a guard. Clones share the approvals, which belong to the session and outlive its
/// browsers.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    allow: Arc<[Rule]>,
    deny: Arc<[Rule]>,
    approvals: Arc<Mutex<HashSet<Approval>>>,
    /// For a program in a sandbox: the only names that it may reach.
    only: Option<Domains>,
}

/// An approval of a host at one address.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Approval {
    host: String,
    address: IpAddr,
    /// `None` for every port.
    port: Option<u16>,
}

/// The error for a rule of `web.allow` or `web.deny` that can't be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid rule `{rule}`: {why}")]
#[non_exhaustive]
pub struct RuleError {
    /// The rule as it is written.
    pub rule: String,
    /// The reason, with a hint for a valid rule.
    pub why: String,
}

/// A rule for a host, or for a domain and all names below it, on one port or every port.
#[derive(Debug)]
struct Rule {
    host: Host,
    port: Option<u16>,
    /// The rule as it is written.
    text: String,
}

impl Rules {
    /// Parses the rules of a user's configuration. A rule is a domain such as `example.com`, which
    /// covers all names below it, or an address, which covers every name that resolves to it.
    /// Either may have a port.
    ///
    /// Hosts in `allow` need no approval, even at private addresses. Hosts in `deny` are always
    /// refused. Neither list affects addresses that are never dialled.
    ///
    /// # Errors
    /// [`RuleError`] if a rule is neither a domain nor an address.
    pub fn new(allow: &[String], deny: &[String]) -> Result<Self, RuleError> {
        let parse =
            |rules: &[String]| rules.iter().map(|rule| Rule::parse(rule)).collect::<Result<_, _>>();
        Ok(Self { allow: parse(allow)?, deny: parse(deny)?, ..Self::default() })
    }

    /// Restricts the hosts to these names. Allow rules then only permit private addresses of these
    /// names, and those of this machine only if the rule names the port: otherwise a program could
    /// reach the control ports of browsers.
    #[cfg(target_os = "linux")]
    pub(super) fn only(self, domains: Domains) -> Self {
        Self { only: Some(domains), ..self }
    }

    /// Whether no other rule matters, because this is not one of the only hosts.
    pub(super) fn excludes(&self, target: &Target) -> bool {
        self.only.as_ref().is_some_and(|domains| match &target.host {
            Host::Name(name) => !domains.contains(name),
            Host::Address(_) => true,
        })
    }

    /// Records the user's approval, for one port or for every port.
    pub(super) fn allow(&self, ask: &Ask, port: Option<u16>) {
        let mut approvals = self.approvals();
        approvals.extend(ask.addresses.iter().map(|&address| Approval {
            host: ask.host.clone(),
            address,
            port,
        }));
    }

    /// The rule that denies this host or one of the addresses it resolves to.
    pub(super) fn denying_rule(&self, target: &Target, address: Option<IpAddr>) -> Option<String> {
        self.deny.iter().find(|rule| rule.covers(target, address)).map(Rule::to_string)
    }

    /// Whether this host may be reached at this private address.
    pub(super) fn allows(&self, target: &Target, address: IpAddr) -> bool {
        let is_approved = |port| {
            self.approvals().contains(&Approval { host: target.host.to_string(), address, port })
        };
        let needs_port = self.only.is_some() && address.is_loopback();
        let counts = |rule: &&Rule| rule.port.is_some() || !needs_port;
        self.allow.iter().filter(counts).any(|rule| rule.covers(target, Some(address)))
            || is_approved(None)
            || is_approved(Some(target.port))
    }

    fn approvals(&self) -> MutexGuard<'_, HashSet<Approval>> {
        self.approvals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rule {
    fn parse(text: &str) -> Result<Self, RuleError> {
        let error = |why: &str| RuleError { rule: text.to_owned(), why: why.to_owned() };
        if text.starts_with("*.") || text.starts_with('.') {
            return Err(error("write the domain alone: it covers all names below it"));
        }
        if text.contains(['/', '@', '*', '?', '#', '\\']) || text != text.trim() {
            return Err(error(
                "write only a host, such as `example.com`, `example.com:8080` or `[::1]:8080`",
            ));
        }
        let (host, port) = match text.rsplit_once(':') {
            // An IPv6 address without the brackets that a URL needs.
            _ if text.parse::<IpAddr>().is_ok() => (text, None),
            Some((host, port)) if !port.ends_with(']') => (
                host,
                Some(port.parse().map_err(|_| error("the port must be a number from 0 to 65535"))?),
            ),
            _ => (text, None),
        };
        let address =
            host.parse::<IpAddr>().ok().map(|address| Host::Address(address.to_canonical()));
        let host =
            address.or_else(|| Host::parse(host)).ok_or_else(|| error("this is not a host"))?;
        Ok(Self { host, port, text: text.to_owned() })
    }

    /// Whether the rule covers this host, or the address it resolves to.
    fn covers(&self, target: &Target, address: Option<IpAddr>) -> bool {
        if self.port.is_some_and(|port| port != target.port) {
            return false;
        }
        match (&self.host, &target.host) {
            (Host::Name(domain), Host::Name(name)) => is_below(name, domain),
            (Host::Address(named), _) => target.host == self.host || address == Some(*named),
            (Host::Name(_), Host::Address(_)) => false,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
