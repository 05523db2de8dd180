//! Name resolution for the guard.

use std::fmt::Debug;
use std::net::{IpAddr, ToSocketAddrs};
use std::{fs, io};

use super::host::is_below;

/// Domains in which only the operator of this machine or its network assigns names: those of RFC
/// 6761, RFC 6762 (with its appendix G) and RFC 8375, and `localdomain`, a common default.
const NEAR_DOMAINS: [&str; 10] = [
    "corp",
    "home",
    "home.arpa",
    "internal",
    "intranet",
    "lan",
    "local",
    "localdomain",
    "private",
    "test",
];

const HOSTS: &str = "/etc/hosts";

/// Looks up the addresses of names. The guard judges the result and dials it, without another
/// lookup in between.
pub trait Resolve: Debug + Send + Sync + 'static {
    /// Looks up the addresses of a name, the best first. May block.
    ///
    /// # Errors
    /// The lookup failed. A name without addresses is an empty list or
    /// [`NotFound`](io::ErrorKind::NotFound).
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;

    /// Whether a name may be looked up before the user approves its host, because the lookup does
    /// not disclose the name to a remote server. May block.
    fn is_near(&self, name: &str) -> bool {
        is_near(name)
    }
}

/// The system's resolver: `/etc/hosts`, DNS and any other configured source.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
    }

    fn is_near(&self, name: &str) -> bool {
        is_near(name) || fs::read_to_string(HOSTS).is_ok_and(|hosts| is_listed(&hosts, name))
    }
}

fn is_near(name: &str) -> bool {
    !name.contains('.') || NEAR_DOMAINS.iter().any(|domain| is_below(name, domain))
}

/// Whether a file in the format of `/etc/hosts` lists a name.
fn is_listed(hosts: &str, name: &str) -> bool {
    let names = hosts
        .lines()
        .flat_map(|line| line.split('#').next().unwrap_or_default().split_whitespace().skip(1));
    names.into_iter().any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_e7_web_only_local_names_are_looked_up_without_an_ask() {
        for name in ["nas", "nas.lan", "a.b.home.arpa", "printer.local", "app.test"] {
            assert!(is_near(name), "{name}");
        }
        for name in
            ["example.com", "notlan.example", "lan.example", "wlan.net", "home.arpa.example"]
        {
            assert!(!is_near(name), "{name}");
        }
        let hosts =
            "127.0.0.1\tlocalhost\n# 10.0.0.1 no.example\n10.0.0.2 app App.Example # the app\n";
        assert!(is_listed(hosts, "app.example") && is_listed(hosts, "app"));
        assert!(
            !is_listed(hosts, "no.example")
                && !is_listed(hosts, "the")
                && !is_listed(hosts, "10.0.0.2")
        );
    }
}
