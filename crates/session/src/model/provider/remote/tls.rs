//! TLS with rustls and ring, given to the client explicitly: a provider of the whole process would be an embedder's
//! affair.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::{ClientConfig, Error, RootCertStore};
use rustls_platform_verifier::Verifier;

/// The TLS of a client whose server is reached over HTTPS: certificates are verified by the system's roots.
///
/// # Errors
/// If the system's roots can't be loaded.
pub(super) fn by_system_roots() -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Verifier::new(Arc::clone(&provider))?);
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(http1(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()))
}

/// The TLS of a client whose server is reached over plain HTTP. It trusts nobody.
///
/// # Errors
/// If ring lacks a protocol version.
pub(super) fn by_no_roots() -> Result<ClientConfig, Error> {
    let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(http1(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()))
}

fn http1(mut config: ClientConfig) -> ClientConfig {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}
