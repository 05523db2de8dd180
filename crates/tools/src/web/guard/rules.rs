//! By what a guard judges: the domains of the user's configuration, and what people have allowed in a session.

use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;

use super::host::{Host, Target, is_below};
use super::verdict::Ask;

/// By what a guard judges. Clones share what people have allowed: it is a session's, and outlives its browsers.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    allow: Arc<[Rule]>,
    deny: Arc<[Rule]>,
    /// As many as people have said yes to.
    allowed: Arc<Mutex<HashSet<Allowed>>>,
}

/// A host that was allowed at an address.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Allowed {
    host: String,
    address: IpAddr,
    /// None: at any.
    port: Option<u16>,
}

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

/// A host, or everything below a domain, at one port or at any.
#[derive(Debug)]
struct Rule {
    host: Host,
    port: Option<u16>,
    /// As it is written.
    text: String,
}

impl Rules {
    /// The rules of a user's configuration. A rule is a domain, `example.com`, which stands for everything below it
    /// too, or an address, which stands for every name that leads to it; either with or without a port.
    ///
    /// What `allow` names goes unasked, at a private address too. What `deny` names never goes. Neither lifts what is
    /// never dialled.
    ///
    /// # Errors
    /// [`RuleError`] if a rule is no domain and no address.
    pub fn new(allow: &[String], deny: &[String]) -> Result<Self, RuleError> {
        let parse = |rules: &[String]| rules.iter().map(|rule| Rule::parse(rule)).collect::<Result<_, _>>();
        Ok(Self { allow: parse(allow)?, deny: parse(deny)?, allowed: Arc::default() })
    }

    /// A person has allowed this, at that port or at any.
    pub(super) fn allow(&self, ask: &Ask, port: Option<u16>) {
        let mut allowed = self.allowed();
        allowed.extend(ask.addresses.iter().map(|&address| Allowed { host: ask.host.clone(), address, port }));
    }

    /// The rule that denies this host, or what it leads to.
    pub(super) fn denies(&self, target: &Target, address: Option<IpAddr>) -> Option<String> {
        self.deny.iter().find(|rule| rule.names(target, address)).map(Rule::to_string)
    }

    /// Whether this host may be reached at this private address.
    pub(super) fn allows(&self, target: &Target, address: IpAddr) -> bool {
        let is_allowed = |port| self.allowed().contains(&Allowed { host: target.host.to_string(), address, port });
        self.allow.iter().any(|rule| rule.names(target, Some(address)))
            || is_allowed(None)
            || is_allowed(Some(target.port))
    }

    fn allowed(&self) -> MutexGuard<'_, HashSet<Allowed>> {
        self.allowed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rule {
    fn parse(text: &str) -> Result<Self, RuleError> {
        let error = |why: &str| RuleError { rule: text.to_owned(), why: why.to_owned() };
        if text.starts_with("*.") || text.starts_with('.') {
            return Err(error("write the domain alone: it stands for everything below it too"));
        }
        if text.contains(['/', '@', '*', '?', '#', '\\']) || text != text.trim() {
            return Err(error("write a host alone, like `example.com`, `example.com:8080` or `[::1]:8080`"));
        }
        let (host, port) = match text.rsplit_once(':') {
            // An address of IPv6, without the brackets that it has in a URL.
            _ if text.parse::<IpAddr>().is_ok() => (text, None),
            Some((host, port)) if !port.ends_with(']') => {
                (host, Some(port.parse().map_err(|_| error("its port is no number from 0 to 65535"))?))
            }
            _ => (text, None),
        };
        let address = host.parse::<IpAddr>().ok().map(|address| Host::Address(address.to_canonical()));
        let host = address.or_else(|| Host::parse(host)).ok_or_else(|| error("this is no host"))?;
        Ok(Self { host, port, text: text.to_owned() })
    }

    /// Whether it speaks of this host, or of the address that it leads to.
    fn names(&self, target: &Target, address: Option<IpAddr>) -> bool {
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
