//! Whether an address in a URL is near, without a lookup of its name.

use std::net::IpAddr;

use super::address::{AddressClass, classify};
use super::host::Host;

/// Endings of names that private networks use.
const ENDINGS: [&str; 5] = [".localhost", ".local", ".internal", ".lan", ".home.arpa"];

/// Whether the host of a URL is this machine or in a network near it, judged by the URL alone: an
/// address that is not public, a name without a dot, or a name that ends like those of private
/// networks. Other names can also lead there. A text that is not a URL with a host counts as near, as
/// does one with a variable.
#[must_use]
pub fn is_near(url: &str) -> bool {
    if url.contains("${") {
        return true;
    }
    let host = url::Url::parse(url).ok().and_then(|url| Host::parse(url.host_str()?));
    match host {
        Some(Host::Address(address)) => is_near_address(address),
        Some(Host::Name(name)) => {
            !name.contains('.') || ENDINGS.iter().any(|ending| name.ends_with(ending))
        }
        None => true,
    }
}

fn is_near_address(address: IpAddr) -> bool {
    classify(address) != AddressClass::Public
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_h2_addresses_of_private_networks_are_near() {
        for near in [
            "http://localhost:8080/mcp",
            "http://127.0.0.1/",
            "http://0x7f.1/",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://192.168.1.1/",
            "http://169.254.169.254/latest",
            "https://router/",
            "https://nas.local./",
            "https://a.internal/",
            "${URL}",
            "http://127.0.0.1${PWD}/mcp",
            "https://169.254.169.254${X}/latest",
        ] {
            assert!(is_near(near), "{near}");
        }
        for far in ["https://example.com/mcp", "https://1.1.1.1/", "https://[2606:4700::1]/"] {
            assert!(!is_near(far), "{far}");
        }
    }
}
