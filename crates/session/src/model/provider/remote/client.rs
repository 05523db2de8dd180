//! The HTTP client of a model: made for one server, and only as much as that server needs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdpoint_common::{Certificates, Proxies};
use reqwest::Url;

use super::{proxy, tls};
use crate::model::ModelError;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(30);

/// A client for one server.
#[derive(Clone)]
pub(super) struct HttpClient {
    pub(super) http: reqwest::Client,
    pub(super) route: Arc<Route>,
}

/// How a client reaches its server, for errors.
#[derive(Default)]
pub(super) struct Route {
    /// The proxy, without user and password, and the variable that names it.
    pub(super) proxy: Option<String>,
    /// The proxy's password; empty without one.
    pub(super) password: String,
    /// The variables that name the trusted authorities, and their values; empty if these are the system's.
    pub(super) authorities: String,
}

/// The client of a model, made by its first request. Cleared after an error of the set-up: the certificates that it has
/// read may be others by the next request.
#[derive(Default)]
pub(super) struct Slot(Mutex<Option<HttpClient>>);

impl Slot {
    /// The client, made by the first call.
    pub(super) fn get(&self, make: impl FnOnce() -> Result<HttpClient, ModelError>) -> Result<HttpClient, ModelError> {
        if let Some(client) = self.lock().clone() {
            return Ok(client);
        }
        // Without the lock: files are read for it. Of two that are made at the same time, one is kept.
        let client = make()?;
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

/// Whether `base_url` is an address that requests can go to.
pub(super) fn check_url(base_url: &str) -> Result<(), ModelError> {
    let wrong = match Url::parse(base_url) {
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
///
/// # Errors
/// [`ModelError::Setup`] if the proxy's address is not one, or there is no certificate authority.
pub(super) fn client(base_url: &str, proxies: &Proxies, certificates: &Certificates) -> Result<HttpClient, ModelError> {
    let url = Url::parse(base_url).map_err(|error| tls::no_client(&error))?;
    let chosen = proxy::choose(&url, proxies)?;
    // Loading authorities takes milliseconds and megabytes that plain HTTP has no use for.
    let is_secure = url.scheme() == "https" || chosen.as_ref().is_some_and(|proxy| proxy.is_secure);
    let tls = if is_secure { tls::by_authorities(certificates)? } else { tls::by_no_roots()? };
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .http1_only()
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        // This process's own environment counts for nothing: a daemon's is not that of its sessions.
        .no_proxy()
        .user_agent(concat!("holdpoint/", env!("CARGO_PKG_VERSION")));
    let mut route = Route { authorities: authorities(certificates), ..Route::default() };
    if let Some(chosen) = chosen {
        builder = builder.proxy(chosen.proxy);
        (route.proxy, route.password) = (Some(chosen.shown), chosen.password);
    }
    let http = builder.build().map_err(|error| tls::no_client(&error))?;
    Ok(HttpClient { http, route: Arc::new(route) })
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
    }
}
