//! The HTTP client of a model: made for one server, and only as much as that server needs.

use std::error::Error;
use std::time::Duration;

use holdpoint_common::Proxies;
use reqwest::{NoProxy, Proxy};

use super::tls;
use crate::model::ModelError;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(30);

/// Whether `base_url` is an address that requests can go to.
pub(super) fn check_url(base_url: &str) -> Result<(), ModelError> {
    let wrong = match reqwest::Url::parse(base_url) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => {
            // They would be shown; a key has its own place.
            if !url.username().is_empty() || url.password().is_some() {
                "has a user or password in it".to_owned()
            } else if url.query().is_some() || url.fragment().is_some() {
                "has something after a `?` or `#`, where requests add their path".to_owned()
            } else {
                return Ok(());
            }
        }
        Ok(url) => format!("is no http or https address but `{}:`", url.scheme()),
        Err(error) => format!("is no address: {error}"),
    };
    Err(ModelError::Setup {
        message: format!("the model's base URL {wrong}"),
        hint: "set it like http://localhost:8080/v1".into(),
    })
}

/// A client for the server at `base_url`.
///
/// HTTP/1.1 alone, so that dropping an answer ends its connection instead of a stream in one that lives on.
/// No redirects, so that no key goes anywhere it was not meant for; no retries, for these are the runtime's.
pub(super) fn client(base_url: &str, proxies: &Proxies) -> Result<reqwest::Client, ModelError> {
    let setup = |error: &dyn Error| ModelError::Setup {
        message: format!("no HTTP client can be made: {}", super::error::chain(error)),
        hint: "are the system's TLS certificates installed (package ca-certificates)?".into(),
    };
    // Loading the system's roots takes milliseconds and megabytes that plain HTTP has no use for.
    let tls = if base_url.starts_with("http://") { tls::by_no_roots() } else { tls::by_system_roots() };
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls.map_err(|error| setup(&error))?)
        .http1_only()
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        // This process's own environment counts for nothing: in a daemon it is nobody's.
        .no_proxy()
        .user_agent(concat!("holdpoint/", env!("CARGO_PKG_VERSION")));
    if !is_loopback(base_url) {
        for proxy in through(proxies)? {
            builder = builder.proxy(proxy);
        }
    }
    builder.build().map_err(|error| setup(&error))
}

/// The proxies, the particular ones first.
fn through(proxies: &Proxies) -> Result<Vec<Proxy>, ModelError> {
    let no = proxies.no.as_deref().and_then(NoProxy::from_string);
    let make = |address: &Option<String>, make: fn(&str) -> reqwest::Result<Proxy>| {
        let proxy = address.as_deref().map(make).transpose().map_err(|_| ModelError::Setup {
            message: "the proxy's address is none".to_owned(),
            hint: "http_proxy, https_proxy and all_proxy are set like http://proxy:3128".to_owned(),
        })?;
        Ok(proxy.map(|proxy| proxy.no_proxy(no.clone())))
    };
    let all = [
        make(&proxies.http, |address| Proxy::http(address))?,
        make(&proxies.https, |address| Proxy::https(address))?,
        make(&proxies.all, |address| Proxy::all(address))?,
    ];
    Ok(all.into_iter().flatten().collect())
}

fn is_loopback(base_url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(base_url) else { return false };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for good in ["http://localhost:8080/v1", "https://api.openai.com/v1", "http://[::1]:1/v1"] {
            check_url(good).unwrap();
        }
        for bad in [
            "",
            "localhost:8080",
            "ftp://x/v1",
            "http://",
            "https://user:sk-secret@host/v1",
            "http://h/v1?key=sk-secret",
            "http://h/v1#sk-secret",
        ] {
            let error = check_url(bad).unwrap_err();
            assert!(matches!(error, ModelError::Setup { .. }), "{bad}");
            assert!(!error.to_string().contains("sk-secret"));
        }
        assert!(
            is_loopback("http://127.0.0.1:1/v1") && is_loopback("http://[::1]/v1") && is_loopback("http://localhost")
        );
        assert!(!is_loopback("http://example.org/v1"));
    }
}
