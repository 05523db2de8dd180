//! TLS 1.3 between the machines of a fleet. Both ends have a certificate, and each accepts exactly the
//! certificates that the database has for the other machines.

use std::io;
use std::sync::Arc;

use holdpoint_session::remote::http::HttpError;
use holdpoint_session::store::OtherMachine;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::version::TLS13;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName,
    Error, ServerConfig, SignatureScheme,
};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The name in every certificate. It has no meaning: certificates are compared as a whole.
const NAME: &str = "holdpoint";

/// The certificate of this machine, with its key.
pub(super) struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Reads a certificate and its key from PEM.
    pub(super) fn of(certificate: &str, key: &str) -> Result<Self, rustls::pki_types::pem::Error> {
        Ok(Self {
            certificate: CertificateDer::from_pem_slice(certificate.as_bytes())?,
            key: PrivateKeyDer::from_pem_slice(key.as_bytes())?,
        })
    }

    /// The configuration of connections from the other machines.
    pub(super) fn server(
        &self,
        others: watch::Receiver<Arc<[OtherMachine]>>,
    ) -> Result<ServerConfig, Error> {
        let provider = provider();
        let verifier = Arc::new(Members { others, provider: Arc::clone(&provider) });
        let mut tls = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key())?;
        // Every connection is checked.
        tls.session_storage = Arc::new(NoServerSessionStorage {});
        tls.send_tls13_tickets = 0;
        Ok(tls)
    }

    /// The configuration of connections to the machine with this certificate, as PEM.
    pub(super) fn client(&self, certificate: &str) -> Result<ClientConfig, Error> {
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes())
            .map_err(|error| Error::General(format!("its certificate can't be read: {error}")))?;
        let provider = provider();
        let verifier = Arc::new(Pinned { certificate, provider: Arc::clone(&provider) });
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_auth_cert(vec![self.certificate.clone()], self.key.clone_key())?;
        tls.resumption = Resumption::disabled();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(tls)
    }
}

/// Makes a certificate and its key, both as PEM.
pub(crate) fn make_certificate() -> Result<(String, String), rcgen::Error> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed([NAME.to_owned()])?;
    Ok((cert.pem(), signing_key.serialize_pem()))
}

/// Begins TLS on a connection to another machine.
pub(super) async fn connect(
    tls: ClientConfig,
    stream: TcpStream,
) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
    TlsConnector::from(Arc::new(tls)).connect(name, stream).await
}

/// Whether the other end has refused the certificate of this machine, before it has read a request:
/// in TLS 1.3, the handshake of a client ends before that.
pub(super) fn is_refusal(failed: &HttpError) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(failed);
    while let Some(error) = cause {
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        // Only the check of a certificate causes this alert.
        let refusal = Error::AlertReceived(AlertDescription::AccessDenied);
        if inner.and_then(|inner| inner.downcast_ref::<Error>()) == Some(&refusal) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The machine with this certificate.
pub(super) fn with_certificate<'a>(
    machines: &'a [OtherMachine],
    certificate: &CertificateDer<'_>,
) -> Option<&'a OtherMachine> {
    machines.iter().find(|machine| {
        let known = CertificateDer::from_pem_slice(machine.certificate.as_bytes());
        known.is_ok_and(|known| known == *certificate)
    })
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Becomes the alert `AccessDenied`.
fn refused() -> Error {
    CertificateError::ApplicationVerificationFailure.into()
}

/// The methods of a verifier that check signatures, which are the same at both ends.
macro_rules! check_signatures_of_tls13 {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::General("only TLS 1.3 is used".to_owned()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let algorithms = &self.provider.signature_verification_algorithms;
            verify_tls13_signature(message, certificate, signature, algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.provider.signature_verification_algorithms.supported_schemes()
        }
    };
}

/// Accepts the certificates of the other machines with a lease.
#[derive(Debug)]
struct Members {
    others: watch::Receiver<Arc<[OtherMachine]>>,
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for Members {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let others = self.others.borrow();
        match with_certificate(&others, certificate) {
            Some(machine) if machine.has_lease => Ok(ClientCertVerified::assertion()),
            _ => Err(refused()),
        }
    }

    check_signatures_of_tls13!();
}

/// Accepts one certificate.
#[derive(Debug)]
struct Pinned {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.certificate == *certificate {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(refused())
        }
    }

    check_signatures_of_tls13!();
}
