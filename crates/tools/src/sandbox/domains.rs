//! The domains that a program in a sandbox may reach, through a proxy outside.

use std::fmt;

/// The most domains of one call.
const MAX_DOMAINS: usize = 16;

/// The most bytes of a domain, and of one of its labels (RFC 1035).
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// A set of domains. Each is the exact name of a host, or with `*.` in front all names below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domains(Vec<String>);

/// The hosts that a program may reach through its proxy.
#[derive(Debug, Clone)]
#[cfg_attr(
    not(all(feature = "web", target_os = "linux")),
    allow(dead_code, reason = "there is no proxy")
)]
pub(crate) struct Reach {
    pub(crate) domains: Domains,
    /// Rules of the user for hosts with private addresses.
    pub(crate) allow: Vec<String>,
    /// Rules of the user for hosts that are never reached.
    pub(crate) deny: Vec<String>,
}

/// A host that a program has tried to reach without success.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    not(all(feature = "web", target_os = "linux")),
    allow(dead_code, reason = "there is no proxy")
)]
pub(crate) struct Refused {
    /// The host and its port.
    pub(crate) host: String,
    /// The reason; `None` if the call does not name the host.
    pub(crate) why: Option<String>,
    /// Whether the host is in a private network, which only the whole network contains.
    pub(crate) is_private: bool,
}

impl Domains {
    /// Parses domains. Their order and their case have no meaning.
    ///
    /// # Errors
    /// The reason why one is not a domain, or why they are too many or none.
    pub fn parse(names: &[String]) -> Result<Self, String> {
        if names.is_empty() {
            return Err("no domain is named".to_owned());
        }
        if names.len() > MAX_DOMAINS {
            return Err(format!("{} domains are too many, at most {MAX_DOMAINS}", names.len()));
        }
        let mut domains = names.iter().map(|name| parse(name)).collect::<Result<Vec<_>, _>>()?;
        domains.sort_unstable();
        domains.dedup();
        Ok(Self(domains))
    }

    /// Whether a host name, in lower-case ASCII, is in the set.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|domain| match domain.strip_prefix('*') {
            Some(suffix) => name.len() > suffix.len() && name.ends_with(suffix),
            None => domain == name,
        })
    }

    /// These domains and further names, as a JSON list for the model. `None` if they are too many.
    pub(super) fn with(&self, names: &[String]) -> Option<Self> {
        Self::parse(&[&self.0, names].concat()).ok()
    }

    /// The domains as a JSON list, which needs no escapes.
    pub(super) fn json(&self) -> String {
        format!("[\"{}\"]", self.0.join("\", \""))
    }

    /// How many domains there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Display for Domains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

fn parse(text: &str) -> Result<String, String> {
    let shown: String = text.chars().take(80).collect();
    let error = |why: &str| Err(format!("{shown:?} is not a domain: {why}"));
    if text.len() > MAX_NAME + 2 {
        return error("it is too long");
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let (is_wide, host) = match name.strip_prefix("*.") {
        Some(host) => (true, host),
        None => (false, name.as_str()),
    };
    if !host.is_ascii() {
        return error("write it in its ASCII form, which begins with xn--");
    }
    if host.len() > MAX_NAME {
        return error("it is too long");
    }
    if !host.split('.').all(is_label) {
        return error("write only the name of a host, such as crates.io, without a port or path");
    }
    if is_number(host.rsplit('.').next().unwrap_or(host)) {
        return error("an address can't be named");
    }
    if is_wide && !host.contains('.') {
        return error("`*.` needs a domain with a dot behind it, such as *.crates.io");
    }
    Ok(name)
}

fn is_label(label: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=MAX_LABEL).contains(&label.len()) && label.bytes().all(is_allowed)
}

/// Whether a URL with this last label has an address as its host.
fn is_number(label: &str) -> bool {
    let hexadecimal = label.strip_prefix("0x");
    label.bytes().all(|byte| byte.is_ascii_digit())
        || hexadecimal.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
