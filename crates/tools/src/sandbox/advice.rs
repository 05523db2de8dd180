//! The advice to the model after a command, if the sandbox is a likely cause of a failure.

use super::Sandbox;
use super::domains::{Domains, Refused};

mod hosts;

/// Texts, in lower case, of programs that can't reach a host.
const NETWORK: [&str; 18] = [
    // curl, with "could not" or "couldn't" in front.
    " connect to server",
    "could not resolve",
    "unable to resolve host",
    "temporary failure in name resolution",
    "temporary failure resolving",
    "name or service not known",
    "no address associated with hostname",
    "failed to lookup address information",
    "failed to resolve",
    "network is unreachable",
    "network unreachable",
    "failed to establish a new connection",
    "connection refused",
    "eai_again",
    "enotfound",
    "enetunreach",
    "econnrefused",
    "could not find a version that satisfies",
];

/// Texts, in lower case, of programs that can't change a file.
const READ_ONLY: [&str; 4] =
    ["read-only file system", "erofs", "os error 30", "unable to create temporary"];

/// Texts, in lower case, of programs that may not do something.
const REFUSED: [&str; 4] = ["permission denied", "operation not permitted", "eacces", "eperm"];

/// Texts, in lower case, of programs that were refused a connection by the level `landlock`.
const CONNECTS: [&str; 2] = ["connect", "socket"];

/// How much of the end of the output is searched, in bytes.
pub(crate) const SEARCHED_BYTES: usize = 8 * 1024;

/// The most hosts that a result lists with the reason why they could not be reached.
const MAX_REASONS: usize = 4;

impl Sandbox {
    /// The narrowest widening that may help a command whose output ended like this, in words for
    /// the model; `None` if the sandbox does not seem to be the cause. `refused` are the hosts that
    /// the proxy of the command has refused.
    pub(crate) fn advice(&self, end_of_output: &str, refused: &[Refused]) -> Option<String> {
        let text = end_of_output.to_lowercase();
        let has = |texts: &[&str]| texts.iter().any(|found| text.contains(found));
        // The program may have continued without the host.
        let is_other = has(&READ_ONLY) && !has(&NETWORK);
        if let Some(advice) = self.advice_for_refused(refused).filter(|_| !is_other) {
            return Some(advice);
        }
        let is_refused = has(&REFUSED);
        let advice = if !self.has_network() && (has(&NETWORK) || is_refused && has(&CONNECTS)) {
            return Some(self.advice_for_network(&text));
        } else if has(&READ_ONLY) {
            "the sandbox does not let the command change this file: if it must, run it again with \
             \"writable\" set to the file or folder, which asks the user"
        } else if is_refused {
            "the sandbox may be the cause: if the command needs a file that it protects, run it \
             again with \"writable\" set to the file or folder, or else with \"outside\": true; \
             both ask the user"
        } else {
            return None;
        };
        Some(advice.to_owned())
    }

    /// Names the hosts that the output mentions, if the command could be given them.
    fn advice_for_network(&self, text: &str) -> String {
        let known = self.domains();
        let mut names = hosts::mentioned(text);
        names.retain(|name| !known.is_some_and(|known| known.contains(name)));
        let domains = match self.lacks_domains() {
            None if !names.is_empty() => with(known, &names),
            _ => None,
        };
        match (known, domains) {
            (None, Some(domains)) => format!(
                "the sandbox has no network: if the command needs these hosts, run it again with \
                 \"domains\": {}, which asks the user",
                domains.json()
            ),
            (Some(known), Some(domains)) => format!(
                "the sandbox lets the command reach only {known}: if it needs other hosts, run it \
                 again with \"domains\": {}, which asks the user",
                domains.json()
            ),
            (None, None) => "the sandbox has no network: if the command needs it, run it again \
                             with \"network\": true, which asks the user"
                .to_owned(),
            (Some(_), None) => "the sandbox has no network but the proxy in HTTPS_PROXY, which \
                                this program may not use: if the command needs it, run it again \
                                with \"network\": true, which asks the user"
                .to_owned(),
        }
    }

    /// The advice after the proxy has refused hosts.
    fn advice_for_refused(&self, refused: &[Refused]) -> Option<String> {
        let known = self.domains()?;
        let is_unnamed = |refused: &&Refused| refused.why.is_none();
        let unnamed: Vec<_> = refused.iter().filter(is_unnamed).map(name).collect();
        if unnamed.is_empty() {
            let reasons: Vec<_> = refused.iter().filter_map(reason).take(MAX_REASONS).collect();
            let next = match refused.iter().any(|refused| refused.is_private) {
                true => {
                    "; if the command must, run it again with \"network\": true, which asks the user"
                }
                false => "",
            };
            return (!reasons.is_empty())
                .then(|| format!("the proxy could not reach {}{next}", reasons.join("; ")));
        }
        let list = unnamed[..unnamed.len().min(MAX_REASONS)].join(", ");
        // The command has chosen the names: it must not make the advice wider.
        let is_name = |name: &&String| {
            !name.contains('*') && Domains::parse(std::slice::from_ref(*name)).is_ok()
        };
        let names: Vec<_> = unnamed.iter().filter(is_name).cloned().collect();
        let domains = known.with(&names).filter(|_| !names.is_empty());
        let input = match domains {
            Some(domains) => format!("\"domains\": {}", domains.json()),
            None => "\"network\": true".to_owned(),
        };
        Some(format!(
            "the sandbox did not let the command reach {list}: if it must, run it again with \
             {input}, which asks the user"
        ))
    }

    /// The domains that processes may reach.
    fn domains(&self) -> Option<&Domains> {
        self.profile()?.reach().map(|reach| &reach.domains)
    }
}

/// The hosts that the proxy refused because the call does not name them, after a command that has
/// not failed.
pub(crate) fn refused_hosts(refused: &[Refused]) -> Option<String> {
    let unnamed: Vec<_> = refused.iter().filter(|refused| refused.why.is_none()).collect();
    let list: Vec<_> = unnamed.iter().take(MAX_REASONS).map(|host| name(host)).collect();
    (!list.is_empty())
        .then(|| format!("the sandbox did not let the command reach {}", list.join(", ")))
}

fn with(known: Option<&Domains>, names: &[String]) -> Option<Domains> {
    match known {
        Some(known) => known.with(names),
        None => Domains::parse(names).ok(),
    }
}

/// The name of a host without its port.
fn name(refused: &Refused) -> String {
    let host = &refused.host;
    host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name).to_owned()
}

fn reason(refused: &Refused) -> Option<String> {
    Some(format!("{}: {}", refused.host, refused.why.as_ref()?))
}
