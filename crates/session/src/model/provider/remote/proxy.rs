//! The choice of a proxy for a server, by the variables `http_proxy`, `https_proxy`, `all_proxy`
//! and `no_proxy`.

use std::net::IpAddr;

use holdpoint_common::Proxies;
use reqwest::{Proxy, Url};

use super::no_proxy;
use crate::model::ModelError;

/// The supported schemes of proxies.
const SCHEMES: [&str; 4] = ["http", "https", "socks5", "socks5h"];

/// A proxy for one server.
pub(super) struct ChosenProxy {
    pub(super) proxy: Proxy,
    /// Whether the proxy is reached over TLS.
    pub(super) is_secure: bool,
    /// The proxy's address without user and password, and the variable that sets it.
    pub(super) shown: String,
    /// The proxy's password; empty if it has none.
    pub(super) password: String,
}

/// The proxy for the server of `url`; `None` if no proxy is set, if the server is on this machine,
/// or if `no_proxy` names it.
///
/// # Errors
/// [`ModelError::Setup`] if the proxy's address is not valid. The error does not repeat the
/// address, which may contain a password.
pub(super) fn choose(url: &Url, proxies: &Proxies) -> Result<Option<ChosenProxy>, ModelError> {
    let for_scheme = if url.scheme() == "https" {
        ("https_proxy", proxies.https.as_deref())
    } else {
        ("http_proxy", proxies.http.as_deref())
    };
    let all = ("all_proxy", proxies.all.as_deref());
    let mut set =
        [for_scheme, all].into_iter().filter_map(|(variable, address)| Some((variable, address?)));
    let Some((variable, address)) = set.next() else { return Ok(None) };
    if is_loopback(url) || proxies.no.as_deref().is_some_and(|no| no_proxy::matches(no, url)) {
        return Ok(None);
    }
    let wrong = |why: &str| ModelError::Setup {
        message: format!("the proxy's URL in {variable} {why}"),
        hint: format!(
            "set {variable} to a URL such as http://proxy:3128 or socks5h://user:password@proxy:1080, with special \
             characters in the user and password percent-encoded"
        ),
    };
    let proxy = parse(address).map_err(wrong)?;
    let port = proxy.port().map(|port| format!(":{port}")).unwrap_or_default();
    let shown =
        format!("{}://{}{port} ({variable})", proxy.scheme(), proxy.host_str().unwrap_or_default());
    let is_secure = proxy.scheme() == "https";
    let password = percent_encoding::percent_decode_str(proxy.password().unwrap_or_default())
        .decode_utf8_lossy();
    let password = password.into_owned();
    let proxy = Proxy::all(proxy).map_err(|_| wrong("is not a valid URL"))?;
    Ok(Some(ChosenProxy { proxy, is_secure, shown, password }))
}

/// Parses a proxy's address. The error says why it is not valid.
fn parse(address: &str) -> Result<Url, &'static str> {
    let address = address.trim();
    let with_scheme =
        if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    let url = Url::parse(&with_scheme).map_err(|_| "is not a valid URL")?;
    if !SCHEMES.contains(&url.scheme()) {
        return Err("does not begin with http://, https://, socks5:// or socks5h://");
    }
    if !url.has_host() || url.host_str() == Some("") {
        return Err("has no host");
    }
    // A raw `@`, `/`, `?` or `#` in a password would make a part of the password the host.
    let has_user = !url.username().is_empty() || url.password().is_some();
    if with_scheme.matches('@').count() > usize::from(has_user) {
        return Err("has an `@` other than the one before its host");
    }
    Ok(url)
}

/// Whether the URL is on this machine: `localhost`, a name below it, or a loopback address.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.').trim_matches(['[', ']']);
    let is_name = host == "localhost" || host.ends_with(".localhost");
    is_name || host.parse().is_ok_and(|ip: IpAddr| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(address: &str, proxies: &Proxies) -> Option<String> {
        choose(&Url::parse(address).unwrap(), proxies).unwrap().map(|chosen| chosen.shown)
    }

    #[test]
    fn m_e2_the_scheme_chooses_the_proxy() {
        let set = |text: &str| Some(text.to_owned());
        let mut proxies = Proxies {
            http: set("http://a:1"),
            https: set("b:2"),
            all: set("socks5h://c"),
            no: None,
        };
        assert_eq!(chosen("http://x.example", &proxies).unwrap(), "http://a:1 (http_proxy)");
        assert_eq!(chosen("https://x.example", &proxies).unwrap(), "http://b:2 (https_proxy)");
        proxies.http = set("http://me:pw@a:1/x?y#z");
        assert_eq!(chosen("http://x.example", &proxies).unwrap(), "http://a:1 (http_proxy)");
        (proxies.http, proxies.https) = (None, None);
        for address in ["http://x.example", "https://x.example"] {
            assert_eq!(chosen(address, &proxies).unwrap(), "socks5h://c (all_proxy)");
        }
        proxies.no = set("x.example:443");
        assert_eq!(chosen("https://x.example", &proxies), None);
        assert!(chosen("https://x.example:8443", &proxies).is_some());
        for local in
            ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.2:1", "[::1]", "[::ffff:127.0.0.1]"]
        {
            assert_eq!(chosen(&format!("https://{local}/v1"), &proxies), None, "{local}");
        }
    }

    #[test]
    fn m_e2_a_proxys_address_is_never_repeated_with_its_password() {
        for bad in [
            "::",
            "http://",
            "socks5://",
            "socks://me:hunter2@proxy",
            "ftp://me:hunter2@proxy",
            "http://me:hun@ter2@proxy",
            "http://me:hun#hunter2@proxy",
            "http://me:1/hunter2@proxy",
            "http://me:1?hunter2@proxy:3128",
            "http://me:hunter2@proxy:port",
        ] {
            let proxies = Proxies { https: Some(bad.to_owned()), ..Proxies::default() };
            let error = choose(&Url::parse("https://x.example").unwrap(), &proxies).err().unwrap();
            let ModelError::Setup { message, hint } = &error else { panic!("{bad}: {error}") };
            let text = format!("{message} {hint}");
            assert!(text.contains("https_proxy") && !text.contains("hunter2"), "{bad}: {text}");
        }
        let proxies = Proxies {
            https: Some("http://me:hunter%322@proxy:3128/".to_owned()),
            ..Proxies::default()
        };
        let good = choose(&Url::parse("https://x.example").unwrap(), &proxies).unwrap().unwrap();
        assert_eq!(
            (&*good.shown, &*good.password),
            ("http://proxy:3128 (https_proxy)", "hunter22")
        );
    }
}
