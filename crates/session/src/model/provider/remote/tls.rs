//! TLS with rustls and ring. The HTTP client gets the configuration explicitly, because rustls'
//! provider for the whole process is the embedder's choice.

use std::sync::Arc;

use holdpoint_common::Certificates;
use rustls::client::WantsClientCert;
use rustls::crypto::{CryptoProvider, ring};
use rustls::{ClientConfig, ConfigBuilder, Error, RootCertStore, WantsVerifier};

use super::{error, roots};
use crate::model::ModelError;

/// A TLS configuration that checks certificates against the authorities that `certificates` names,
/// or else against the system's.
///
/// # Errors
/// [`ModelError::Setup`] if there is no authority.
pub(crate) fn trusting(certificates: &Certificates) -> Result<ClientConfig, ModelError> {
    if let Some(roots) = roots::named(certificates)? {
        return with_roots(roots);
    }
    let builder = with_system_roots(builder().map_err(|error| setup_error(&error))?)
        .map_err(|error| setup_error(&*error))?;
    Ok(http1(builder))
}

/// A TLS configuration for a client that connects without TLS. It trusts no certificate.
///
/// # Errors
/// [`ModelError::Setup`] if ring lacks a protocol version.
pub(crate) fn trusting_none() -> Result<ClientConfig, ModelError> {
    with_roots(RootCertStore::empty())
}

/// The error for a client that can't be built.
pub(super) fn setup_error(why: &dyn std::error::Error) -> ModelError {
    ModelError::Setup {
        message: format!("the HTTP client can't be built: {}", error::chain(why)),
        hint: "check that the system's TLS certificates are installed (package ca-certificates)"
            .into(),
    }
}

fn with_roots(roots: RootCertStore) -> Result<ClientConfig, ModelError> {
    let builder = builder().map_err(|error| setup_error(&error))?;
    Ok(http1(builder.with_root_certificates(roots)))
}

type Verifying = ConfigBuilder<ClientConfig, WantsClientCert>;
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Checks against the system's files. A platform verifier would read `SSL_CERT_FILE` of this
/// process.
#[cfg(not(target_vendor = "apple"))]
fn with_system_roots(
    builder: ConfigBuilder<ClientConfig, WantsVerifier>,
) -> Result<Verifying, BoxError> {
    Ok(builder.with_root_certificates(roots::of_system()?))
}

/// Checks against the keychain.
#[cfg(target_vendor = "apple")]
fn with_system_roots(
    builder: ConfigBuilder<ClientConfig, WantsVerifier>,
) -> Result<Verifying, BoxError> {
    let verifier = rustls_platform_verifier::Verifier::new(Arc::new(ring::default_provider()))?;
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)))
}

fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, Error> {
    let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()
}

fn http1(builder: Verifying) -> ClientConfig {
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}
