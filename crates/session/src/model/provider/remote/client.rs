//! The HTTP client of a model, built for one server and with no more than that server needs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdpoint_common::{Certificates, Proxies};
use reqwest::Url;

use super::{proxy, tls};
use crate::model::ModelError;

/// The timeout for connecting.
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
pub(super) struct Slot(Mutex<Option<HttpClient>>);

impl Slot {
    /// The client, built by the first call.
    pub(super) fn get(
        &self,
        make: impl FnOnce() -> Result<HttpClient, ModelError>,
    ) -> Result<HttpClient, ModelError> {
        if let Some(client) = self.lock().clone() {
            return Ok(client);
        }
        // Not under the lock, because this reads files. If two are built at the same time, one is
        // kept.
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

/// Checks that requests can be sent to `base_url`.
pub(super) fn check_url(base_url: &str) -> Result<(), ModelError> {
    let wrong = match Url::parse(base_url) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => {
            // Errors would show these; a key has its own setting.
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
/// retry, because the runtime does.
///
/// # Errors
/// [`ModelError::Setup`] if the proxy's address is not valid, or no certificate authority is found.
pub(super) fn client(
    base_url: &str,
    proxies: &Proxies,
    certificates: &Certificates,
) -> Result<HttpClient, ModelError> {
    let url = Url::parse(base_url).map_err(|error| tls::no_client(&error))?;
    let chosen = proxy::choose(&url, proxies)?;
    // Loading authorities takes milliseconds and megabytes, which plain HTTP does not need.
    let is_secure = url.scheme() == "https" || chosen.as_ref().is_some_and(|proxy| proxy.is_secure);
    let tls = if is_secure { tls::by_authorities(certificates)? } else { tls::by_no_roots()? };
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .http1_only()
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        // This process's own environment is ignored: a daemon's is not that of its sessions.
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
