//! The HTTP client of a model. The client is built for one server, and loads certificates only if
//! that server needs them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdpoint_common::{Certificates, Proxies};
use reqwest::Url;
use reqwest::redirect::{Attempt, Policy};
use rustls::ClientConfig;

use super::{proxy, tls};
use crate::model::ModelError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// How many redirects within an origin are followed.
const MAX_REDIRECTS: usize = 5;

/// How many connections of a client for an address are kept for further requests.
const MAX_IDLE: usize = 4;

/// A client for one server.
#[derive(Clone)]
pub(super) struct HttpClient {
    pub(super) http: reqwest::Client,
    pub(super) route: Arc<Route>,
}

/// How a client reaches its server, for errors.
#[derive(Default)]
pub(super) struct Route {
    /// The proxy, without user and password, and the variable that sets it.
    pub(super) proxy: Option<String>,
    /// The proxy's password; empty if it has none.
    pub(super) password: String,
    /// The variables that name the trusted authorities, with their values; empty if the system's
    /// are trusted.
    pub(super) authorities: String,
}

/// The client of a model, built by its first request. A setup error clears it, because the
/// certificates may have changed by the next request.
#[derive(Default)]
pub(super) struct ClientSlot(Mutex<Option<HttpClient>>);

impl ClientSlot {
    /// The client, built by the first call.
    pub(super) fn get(
        &self,
        build: impl FnOnce() -> Result<HttpClient, ModelError>,
    ) -> Result<HttpClient, ModelError> {
        if let Some(client) = self.lock().clone() {
            return Ok(client);
        }
        // Built without the lock, because this reads files. If two calls build a client at the same
        // time, the last one is kept.
        let client = build()?;
        *self.lock() = Some(client.clone());
        Ok(client)
    }

    pub(super) fn clear(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<HttpClient>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks that `base_url` is an HTTP URL to which requests can append their path, and that it has
/// no user, password or query.
pub(super) fn check_url(base_url: &str) -> Result<(), ModelError> {
    let wrong = match Url::parse(base_url) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => {
            // Errors would show the user and password. A key has its own setting.
            if !url.username().is_empty() || url.password().is_some() {
                "contains a user or password".to_owned()
            } else if url.query().is_some() || url.fragment().is_some() {
                "contains a `?` or `#`, but requests append their path to it".to_owned()
            } else {
                return Ok(());
            }
        }
        Ok(url) => format!("has the scheme `{}`, not http or https", url.scheme()),
        Err(error) => format!("is not a valid URL: {error}"),
    };
    Err(ModelError::Setup {
        message: format!("the model's base URL {wrong}"),
        hint: "set a URL such as http://localhost:8080/v1".into(),
    })
}

/// Builds a client for the server at `base_url`.
///
/// The client uses HTTP/1.1 only, so that dropping an answer ends its connection, and not just one
/// stream of it. It follows no redirects, so that the key goes to no other server, and does not
/// retry, because the turn does.
///
/// # Errors
/// [`ModelError::Setup`] if the proxy's address is not valid, or no certificate authority is found.
pub(super) fn build(
    base_url: &str,
    proxies: &Proxies,
    certificates: &Certificates,
) -> Result<HttpClient, ModelError> {
    let url = Url::parse(base_url).map_err(|error| tls::setup_error(&error))?;
    let (builder, route) = builder(&url, proxies, || tls::trusting(certificates))?;
    let http = builder.build().map_err(|error| tls::setup_error(&error))?;
    let route = Route { authorities: authorities(certificates), ..route };
    Ok(HttpClient { http, route: Arc::new(route) })
}

/// Builds a client for one address that is no model's. It differs from that of a model in following
/// redirects, if they are within the origin of the address and repeat the request as it is.
/// `trusting` is called only if the address needs authorities.
///
/// # Errors
/// As for [`build`], or if the address is not valid. The error does not repeat the address.
pub(crate) fn client_for(
    url: &str,
    proxies: &Proxies,
    trusting: impl FnOnce() -> Result<ClientConfig, ModelError>,
) -> Result<reqwest::Client, ModelError> {
    let url = Url::parse(url).map_err(|error| ModelError::Setup {
        message: format!("the address is not a valid URL: {error}"),
        hint: "set a URL such as https://example.com/mcp".into(),
    })?;
    let (builder, _) = builder(&url, proxies, trusting)?;
    let builder = builder.redirect(Policy::custom(within_origin)).pool_max_idle_per_host(MAX_IDLE);
    builder.build().map_err(|error| tls::setup_error(&error))
}

/// Follows a redirect to the same origin that keeps the method and the body. Any other one is the
/// answer to the request, so that neither headers nor a changed request go anywhere.
fn within_origin(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let keeps_request = matches!(attempt.status().as_u16(), 307 | 308);
    let first = attempt.previous().first();
    let is_within = first.is_some_and(|first| first.origin() == attempt.url().origin());
    match keeps_request && is_within && attempt.previous().len() <= MAX_REDIRECTS {
        true => attempt.follow(),
        false => attempt.stop(),
    }
}

/// A builder for the server of `url`, and the way there.
fn builder(
    url: &Url,
    proxies: &Proxies,
    trusting: impl FnOnce() -> Result<ClientConfig, ModelError>,
) -> Result<(reqwest::ClientBuilder, Route), ModelError> {
    let chosen = proxy::choose(url, proxies)?;
    // Loading authorities takes milliseconds and megabytes of memory. Plain HTTP needs none.
    let is_secure = url.scheme() == "https" || chosen.as_ref().is_some_and(|proxy| proxy.is_secure);
    let tls = if is_secure { trusting()? } else { tls::trusting_none()? };
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .http1_only()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        // Ignore the proxy variables of this process: a daemon's are not those of its sessions.
        .no_proxy()
        .user_agent(concat!("holdpoint/", env!("CARGO_PKG_VERSION")));
    let mut route = Route::default();
    if let Some(chosen) = chosen {
        builder = builder.proxy(chosen.proxy);
        route.proxy = Some(chosen.shown);
        route.password = chosen.password;
    }
    Ok((builder, route))
}

/// The variables that name authorities, with their values: `SSL_CERT_FILE (/etc/ca.pem)`.
fn authorities(Certificates { file, dir }: &Certificates) -> String {
    let shown = [("SSL_CERT_FILE", file), ("SSL_CERT_DIR", dir)]
        .into_iter()
        .filter_map(|(variable, path)| Some(format!("{variable} ({})", path.as_deref()?)));
    shown.collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_http_with_a_host_and_without_secrets() {
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
    }
}
