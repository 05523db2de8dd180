//! The HTTP clients of MCP servers. They reach addresses as models do: through the proxies, and
//! with the certificate authorities, of the client that opened the session.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use holdpoint_common::{Certificates, Proxies};
use holdpoint_tools::HttpClients;
use rustls::ClientConfig;

use crate::model::{ModelError, http};

/// How long loaded authorities are used for further clients.
const KEPT: Duration = Duration::from_secs(10 * 60);

/// The certificate authorities that an engine loaded last. They take milliseconds and megabytes, so
/// the servers of all sessions share them.
#[derive(Default)]
pub(crate) struct Authorities(Mutex<Option<Loaded>>);

struct Loaded {
    certificates: Certificates,
    tls: ClientConfig,
    at: Instant,
}

impl Authorities {
    fn trusting(&self, certificates: &Certificates) -> Result<ClientConfig, ModelError> {
        let is_usable =
            |loaded: &&Loaded| loaded.certificates == *certificates && loaded.at.elapsed() < KEPT;
        if let Some(loaded) = self.loaded().as_ref().filter(is_usable) {
            return Ok(loaded.tls.clone());
        }
        // Loaded without the lock, because this reads files.
        let tls = http::trusting(certificates)?;
        let (certificates, at) = (certificates.clone(), Instant::now());
        *self.loaded() = Some(Loaded { certificates, tls: tls.clone(), at });
        Ok(tls)
    }

    fn loaded(&self) -> std::sync::MutexGuard<'_, Option<Loaded>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The HTTP clients of a session with these proxies and authorities.
pub(crate) fn http_clients(
    authorities: Arc<Authorities>,
    proxies: Proxies,
    certificates: Certificates,
) -> HttpClients {
    Arc::new(move |url| {
        let tls = || authorities.trusting(&certificates);
        http::client_for(url, &proxies, tls).map_err(|error| match error {
            ModelError::Setup { message, hint } => format!("{message}; {hint}"),
            error => error.to_string(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_h2_authorities_are_loaded_only_for_https_and_kept() {
        let authorities = Arc::new(Authorities::default());
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        let certificates = Certificates { file: Some(path), dir: None };
        let clients =
            http_clients(Arc::clone(&authorities), Proxies::default(), certificates.clone());
        clients("http://localhost:1/mcp").unwrap();
        assert!(authorities.loaded().is_none());
        let error = clients("https://localhost:1/mcp").unwrap_err();
        assert!(error.contains("SSL_CERT_FILE can't be used"), "{error}");
        assert!(authorities.loaded().is_none());
        // Authorities that are kept are not read again.
        let tls = http::trusting_none().unwrap();
        let at = Instant::now();
        *authorities.loaded() = Some(Loaded { certificates, tls, at });
        clients("https://localhost:1/mcp").unwrap();
        clients("not an address").unwrap_err();
    }
}
