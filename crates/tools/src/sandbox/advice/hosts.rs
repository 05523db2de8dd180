//! The hosts that the output of a failed program mentions.

use crate::sandbox::Domains;

/// Texts, in lower case, after which programs print the name of a host that they could not reach:
/// curl, git and cargo, Node.js, apt, pip, wget, and Go.
const BEFORE: [&str; 9] = [
    "could not resolve host: ",
    "failed to connect to ",
    "getaddrinfo enotfound ",
    "getaddrinfo eai_again ",
    "temporary failure resolving '",
    "failed to resolve '",
    "connectionpool(host='",
    "unable to resolve host address ",
    "dial tcp: lookup ",
];

/// Texts in front of the host in a URL.
const SCHEMES: [&str; 2] = ["https://", "http://"];

/// The host of pip, which does not print it.
const PIP: (&str, &str) = ("could not find a version that satisfies", "pypi.org");

/// Hosts from which a package manager downloads after it has reached the first.
const COMPANIONS: [(&str, &str); 3] = [
    ("index.crates.io", "static.crates.io"),
    ("pypi.org", "files.pythonhosted.org"),
    ("proxy.golang.org", "sum.golang.org"),
];

/// The most hosts that are found.
const MAX_HOSTS: usize = 6;

/// The hosts that a text in lower case mentions after a failure, or else in URLs.
pub(super) fn mentioned(text: &str) -> Vec<String> {
    let mut hosts = after(text, &BEFORE);
    if hosts.is_empty() && text.contains(PIP.0) {
        hosts.push(PIP.1.to_owned());
    }
    if hosts.is_empty() {
        hosts = after(text, &SCHEMES);
    }
    for (first, second) in COMPANIONS {
        let has = |name: &str| hosts.iter().any(|host| host == name);
        if has(first) && !has(second) {
            hosts.push(second.to_owned());
        }
    }
    hosts
}

/// The names of hosts directly after one of these texts.
fn after(text: &str, starts: &[&str]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for start in starts {
        for (at, _) in text.match_indices(start) {
            let rest = text[at + start.len()..].trim_start_matches(['\'', '"', '`', '\u{2018}']);
            let is_part = |char: char| char.is_ascii_alphanumeric() || "-._".contains(char);
            let end = rest.find(|char| !is_part(char)).unwrap_or(rest.len());
            let name = rest[..end].trim_end_matches('.').to_owned();
            let is_domain =
                name.contains('.') && Domains::parse(std::slice::from_ref(&name)).is_ok();
            if is_domain && found.len() < MAX_HOSTS && !found.contains(&name) {
                found.push(name);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_g3_hosts_are_found_in_the_messages_of_programs() {
        for (text, hosts) in [
            ("curl: (6) Could not resolve host: crates.io", &["crates.io"][..]),
            (
                "fatal: unable to access 'https://github.com/a/b/': Could not resolve host: github.com",
                &["github.com"],
            ),
            (
                "npm error request to https://registry.npmjs.org/x failed, reason: getaddrinfo \
                 ENOTFOUND registry.npmjs.org",
                &["registry.npmjs.org"],
            ),
            (
                "download of config.json failed\n  failed to download from \
                 `https://index.crates.io/config.json`\n  [6] Couldn't resolve host name",
                &["index.crates.io", "static.crates.io"],
            ),
            (
                "[6] Could not resolve hostname (Could not resolve host: index.crates.io)",
                &["index.crates.io", "static.crates.io"],
            ),
            (
                "ERROR: Could not find a version that satisfies the requirement x (from versions: none)",
                &["pypi.org", "files.pythonhosted.org"],
            ),
            (
                "HTTPSConnectionPool(host='example.org', port=443): Max retries exceeded with url: \
                 / (Caused by NewConnectionError(\"Failed to establish a new connection\"))",
                &["example.org"],
            ),
            (
                "Get \"https://proxy.golang.org/x/@v/list\": dial tcp: lookup proxy.golang.org: \
                 Temporary failure in name resolution",
                &["proxy.golang.org", "sum.golang.org"],
            ),
            ("wget: unable to resolve host address \u{2018}example.org\u{2019}", &["example.org"]),
            ("connect to 127.0.0.1 port 80: Connection refused at http://127.0.0.1/", &[]),
            ("Could not resolve host: localhost and $(rm).com", &[]),
        ] {
            assert_eq!(mentioned(&text.to_lowercase()), hosts, "{text}");
        }
        let many: String = (0..1_000).map(|n| format!("http://h{n}.example/ ")).collect();
        assert_eq!(mentioned(&many).len(), MAX_HOSTS);
    }
}
