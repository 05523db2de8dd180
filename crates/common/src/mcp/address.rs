//! Checks of the address and the headers of a server that is reached over HTTP.

use std::collections::{BTreeMap, BTreeSet};

/// The most headers of one server.
const MAX_HEADERS: usize = 32;

/// Headers that the connection itself sets.
const RESERVED: [&str; 10] = [
    "accept",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];

/// Checks an address. If it has variables, only the text before the first one is checked, and the
/// whole once they are replaced.
///
/// # Errors
/// The problem, without the address, which may contain a key.
pub(super) fn check_url(url: &str) -> Result<(), String> {
    if url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err("`url` has a space or a control character".to_owned());
    }
    let variable = url.find("${").filter(|at| url[*at..].contains('}'));
    let (url, is_whole) = variable.map_or((url, true), |at| (&url[..at], false));
    let lower = url.to_ascii_lowercase();
    let schemes = ["http://", "https://"];
    let Some(scheme) = schemes.into_iter().find(|scheme| lower.starts_with(scheme)) else {
        if !is_whole && schemes.iter().any(|scheme| scheme.starts_with(&lower)) {
            return Ok(());
        }
        return Err("`url` must begin with http:// or https://".to_owned());
    };
    let rest = &url[scheme.len()..];
    let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    if host.contains('@') {
        return Err("`url` has a user or password; put it into `headers`".to_owned());
    }
    if is_whole && (host.is_empty() || host.starts_with(':')) {
        return Err("`url` has no host".to_owned());
    }
    Ok(())
}

/// Checks the names and values of headers.
///
/// # Errors
/// The problem, without the value.
pub(super) fn check_headers(headers: &BTreeMap<String, String>) -> Result<(), String> {
    if headers.len() > MAX_HEADERS {
        return Err(format!("there are {} `headers`; the limit is {MAX_HEADERS}", headers.len()));
    }
    let is_token = |c: u8| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c);
    let mut names = BTreeSet::new();
    for (name, value) in headers {
        if !names.insert(name.to_ascii_lowercase()) {
            return Err(format!("the header `{name}` is there twice"));
        }
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(format!("{name:?} in `headers` is not the name of a header"));
        }
        if RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(format!("the header `{name}` is set by the connection"));
        }
        if value.chars().any(|c| c.is_control() && c != '\t') {
            return Err(format!("the value of the header `{name}` has a control character"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_h2_an_address_is_http_with_a_host_and_without_a_password() {
        let plain = ["https://example.com/mcp", "HTTP://[::1]:80?a=b"];
        for good in
            [&plain[..], &["${URL}", "http://${H}/", "http${S}://h/", "https://h/${A"]].concat()
        {
            check_url(good).unwrap();
        }
        for (bad, why) in [
            ("", "must begin with"),
            ("example.com", "must begin with"),
            ("file:///etc", "must begin with"),
            ("https://", "has no host"),
            ("https:///mcp", "has no host"),
            ("https://:80/", "has no host"),
            ("https://me:hunter2@example.com/", "put it into `headers`"),
            ("https://me:hunter2@${HOST}/", "put it into `headers`"),
            ("https://me:hunter2@example.com/${", "put it into `headers`"),
            ("ftp://example.com/${A}", "must begin with"),
            ("https://example.com/a b", "a space"),
            ("https://example.com/\n", "a control character"),
        ] {
            let error = check_url(bad).unwrap_err();
            assert!(error.contains(why) && !error.contains("hunter2"), "{bad}: {error}");
        }
    }

    #[test]
    fn m_h2_headers_that_cannot_be_sent_are_refused() {
        let check = |name: &str, value: &str| {
            check_headers(&BTreeMap::from([(name.to_owned(), value.to_owned())]))
        };
        check("Authorization", "Bearer ${KEY}").unwrap();
        let twice = ["Cookie", "cookie"].map(|name| (name.to_owned(), "a".to_owned()));
        assert!(check_headers(&BTreeMap::from(twice)).unwrap_err().contains("twice"));
        for (name, value, why) in [
            ("", "x", "not the name"),
            ("a b", "x", "not the name"),
            ("a:", "x", "not the name"),
            ("Host", "x", "set by the connection"),
            ("mcp-session-id", "x", "set by the connection"),
            ("a", "hunter2\r\nb: c", "a control character"),
        ] {
            let error = check(name, value).unwrap_err();
            assert!(error.contains(why) && !error.contains("hunter2"), "{name}: {error}");
        }
        let many = (0..=MAX_HEADERS).map(|n| (format!("h{n}"), String::new())).collect();
        assert!(check_headers(&many).unwrap_err().contains("the limit is 32"));
    }
}
