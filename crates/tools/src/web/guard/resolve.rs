//! Finding the addresses of a name.

use std::fmt::Debug;
use std::net::{IpAddr, ToSocketAddrs};
use std::{fs, io};

use super::host::is_below;

/// Domains in which nobody can have a name but who runs this machine or its network: RFC 6761, RFC 6762 (with its
/// appendix G) and RFC 8375.
const NEAR: [&str; 10] =
    ["corp", "home", "home.arpa", "internal", "intranet", "lan", "local", "localdomain", "private", "test"];

/// What this machine itself says of names.
const HOSTS: &str = "/etc/hosts";

/// Finds the addresses of names. What it finds is judged, and then dialled as it is: no name is looked up twice
/// between the two.
pub trait Resolve: Debug + Send + Sync + 'static {
    /// The addresses of a name, the best first. May block.
    ///
    /// # Errors
    /// Those of looking it up; none found is an empty list or [`NotFound`](io::ErrorKind::NotFound).
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;

    /// Whether a name may be looked up before a person has agreed to anything, for nobody far away is told of it. May
    /// block.
    fn is_near(&self, name: &str) -> bool {
        is_near(name)
    }
}

/// As the system does it: `/etc/hosts`, DNS and what else it is set up for.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
    }

    fn is_near(&self, name: &str) -> bool {
        is_near(name) || fs::read_to_string(HOSTS).is_ok_and(|hosts| lists(&hosts, name))
    }
}

fn is_near(name: &str) -> bool {
    !name.contains('.') || NEAR.iter().any(|domain| is_below(name, domain))
}

/// Whether a name stands in a text like that of `/etc/hosts`.
fn lists(hosts: &str, name: &str) -> bool {
    let names = hosts.lines().flat_map(|line| line.split('#').next().unwrap_or_default().split_whitespace().skip(1));
    names.into_iter().any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_e7_web_only_names_that_are_near_are_looked_up_unasked() {
        for name in ["nas", "nas.lan", "a.b.home.arpa", "printer.local", "app.test"] {
            assert!(is_near(name), "{name}");
        }
        for name in ["example.com", "notlan.example", "lan.example", "wlan.net", "home.arpa.example"] {
            assert!(!is_near(name), "{name}");
        }
        let hosts = "127.0.0.1\tlocalhost\n# 10.0.0.1 no.example\n10.0.0.2 app App.Example # the app\n";
        assert!(lists(hosts, "app.example") && lists(hosts, "app"));
        assert!(!lists(hosts, "no.example") && !lists(hosts, "the") && !lists(hosts, "10.0.0.2"));
    }
}
