//! The rules of `no_proxy`, which names the servers that are reached without a proxy.

use std::net::{IpAddr, Ipv6Addr};

use reqwest::Url;

/// Whether `list` names the server of `url`. Entries are separated by commas or spaces:
///
/// - `*`: every server;
/// - a host, also as `.host` or `*.host`: this one and all names below it;
/// - an IP address, or a network as `10.0.0.0/8`. Names are not resolved for it;
/// - each of them with a port, `host:8443` or `[::1]:8443`: only at this port.
pub(super) fn matches(list: &str, url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    let ip = host.trim_matches(['[', ']']).parse().ok().map(|ip: IpAddr| ip.to_canonical());
    let server = Server { host, ip, port: url.port_or_known_default() };
    let entries = list
        .split(|char: char| char == ',' || char.is_whitespace())
        .filter(|entry| !entry.is_empty());
    entries
        .map(split_port)
        .any(|(name, port)| (port.is_none() || port == server.port) && server.is_named_by(&name))
}

/// The server that a URL names.
struct Server<'a> {
    host: &'a str,
    ip: Option<IpAddr>,
    port: Option<u16>,
}

impl Server<'_> {
    fn is_named_by(&self, name: &str) -> bool {
        if name == "*" {
            return true;
        }
        if let Some((network, bits)) = name.split_once('/') {
            let (Some(ip), Ok(network), Ok(bits)) = (self.ip, network.parse(), bits.parse()) else {
                return false;
            };
            return is_in(ip, network, bits);
        }
        if let Ok(ip) = name.parse::<IpAddr>() {
            return self.ip == Some(ip.to_canonical());
        }
        let name = domain(name.strip_prefix('*').unwrap_or(name).trim_matches('.'));
        let above = self.host.strip_suffix(&*name);
        !name.is_empty()
            && self.ip.is_none()
            && above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
    }
}

/// An entry's name without brackets, and its port.
fn split_port(entry: &str) -> (String, Option<u16>) {
    let is_v6 = entry.split('/').next().is_some_and(|head| head.parse::<Ipv6Addr>().is_ok());
    let rest = if is_v6 { "" } else { entry.rsplit(']').next().unwrap_or_default() };
    let port = rest.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    let name = match port {
        Some(_) => entry.rsplit_once(':').map_or(entry, |(name, _)| name),
        None => entry,
    };
    (name.replace(['[', ']'], ""), port)
}

/// A name as in URLs: in lower case, with non-ASCII letters encoded.
fn domain(name: &str) -> String {
    let url = Url::parse(&format!("http://{name}/")).ok();
    url.as_ref().and_then(Url::host_str).map_or_else(|| name.to_lowercase(), str::to_owned)
}

/// Whether an address is in a network, of which the first `bits` are significant.
fn is_in(ip: IpAddr, network: IpAddr, bits: u32) -> bool {
    match (ip, network) {
        (IpAddr::V4(ip), IpAddr::V4(network)) if bits <= 32 => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            ip.to_bits() & mask == network.to_bits() & mask
        }
        (IpAddr::V6(ip), IpAddr::V6(network)) if bits <= 128 => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            ip.to_bits() & mask == network.to_bits() & mask
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_e2_no_proxy_names_hosts_networks_and_ports() {
        let named = |list: &str, address: &str| matches(list, &Url::parse(address).unwrap());
        for (list, address) in [
            ("*", "https://api.example/v1"),
            ("a.example, *", "https://10.0.0.1/v1"),
            ("*:8443", "https://api.example:8443/v1"),
            ("api.example", "https://api.example/v1"),
            ("example", "https://api.example/v1"),
            (".example", "https://api.example/v1"),
            (".api.example", "https://api.example/v1"),
            ("*.example", "https://api.example/v1"),
            (" x.example\tAPI.Example ", "https://api.example/v1"),
            ("x.example,api.example.", "https://api.example/v1"),
            ("api.example", "https://API.example./v1"),
            ("BÜCHER.example", "https://bücher.example/v1"),
            ("api.example:443", "https://api.example/v1"),
            ("api.example:80", "http://api.example/v1"),
            (".example:8443", "https://api.example:8443/v1"),
            ("10.0.0.1", "http://10.0.0.1:8080/v1"),
            ("10.0.0.1:8080", "http://10.0.0.1:8080/v1"),
            ("10.0.0.0/8", "http://10.9.8.7/v1"),
            ("10.0.0.0/8:8080", "http://10.9.8.7:8080/v1"),
            ("10.9.8.7/32", "http://10.9.8.7/v1"),
            ("0.0.0.0/0", "http://10.9.8.7/v1"),
            ("fd00::1", "http://[fd00:0::1]/v1"),
            ("[fd00::1]", "http://[fd00::1]/v1"),
            ("[fd00::1]:8080", "http://[fd00::1]:8080/v1"),
            ("fd00::/8", "http://[fd12::1]/v1"),
            ("[fd00::]/8", "http://[fd12::1]/v1"),
            ("[fd00::/8]:8080", "http://[fd12::1]:8080/v1"),
            ("::/0", "http://[fd12::1]/v1"),
            ("10.0.0.0/8", "http://[::ffff:10.0.0.1]/v1"),
        ] {
            assert!(named(list, address), "{list} names {address}");
        }
        for (list, address) in [
            ("", "https://api.example/v1"),
            (" , ", "https://api.example/v1"),
            (".", "https://api.example/v1"),
            ("pi.example", "https://api.example/v1"),
            ("www.api.example", "https://api.example/v1"),
            ("a*i.example", "https://api.example/v1"),
            ("api.example:80", "https://api.example/v1"),
            ("api.example:8443", "https://api.example/v1"),
            ("*:8443", "https://api.example/v1"),
            ("api.example:https", "https://api.example/v1"),
            ("10.0.0.1:80", "http://10.0.0.1:8080/v1"),
            ("0.0.1", "http://10.0.0.1/v1"),
            ("10.0.0.0/8", "http://11.0.0.1/v1"),
            ("10.0.0.0/8:80", "http://10.0.0.1:8080/v1"),
            ("10.0.0.0/33", "http://10.0.0.1/v1"),
            ("10.0.0.0/x", "http://10.0.0.0/v1"),
            ("10.0.0.0/8", "http://10.example/v1"),
            ("[fd00::1]:80", "http://[fd00::1]:8080/v1"),
            ("fd00::/8", "http://[fe00::1]/v1"),
            ("0.0.0.0/0", "http://[fd00::1]/v1"),
        ] {
            assert!(!named(list, address), "{list} does not name {address}");
        }
    }
}
