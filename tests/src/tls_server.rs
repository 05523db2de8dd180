//! A TLS server in front of a scripted model server, with a self-signed certificate or one of a
//! test authority.
#![allow(clippy::expect_used, reason = "test support: a failure ends the test")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CertifiedKey, DnType, IsCa, KeyPair,
    generate_simple_self_signed,
};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A server that speaks TLS and forwards to another.
pub struct TlsServer {
    /// The loopback address on which it listens.
    pub address: SocketAddr,
}

/// A certificate authority with its own key.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// Creates an authority with this name and a new key.
    ///
    /// # Panics
    /// If the certificate can't be made.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(
            CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key"))
                .expect("an authority"),
        )
    }

    /// A new certificate of this authority for these names and addresses, and its key, both in PEM.
    ///
    /// # Panics
    /// If the certificate can't be made.
    #[must_use]
    pub fn issue(&self, names: &[&str]) -> (String, String) {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let params = CertificateParams::new(names).expect("names");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        (pem("CERTIFICATE", certificate.der()), pem("PRIVATE KEY", &key.serialize_der()))
    }

    /// The authority's certificate in PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        pem("CERTIFICATE", self.0.der())
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    let lines = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect::<Vec<_>>();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

impl TlsServer {
    /// Starts a server for `localhost` and 127.0.0.1 that forwards to `target` until the process
    /// ends.
    ///
    /// # Panics
    /// If the server can't be started.
    #[must_use]
    pub fn before(target: SocketAddr) -> Self {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(names).expect("a certificate");
        Self::with(target, cert.der().clone(), &signing_key)
    }

    /// Like [`before`](Self::before), with a certificate of `authority` for these names and
    /// addresses.
    ///
    /// # Panics
    /// If the server can't be started.
    #[must_use]
    pub fn signed(authority: &Authority, names: &[&str], target: SocketAddr) -> Self {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let params = CertificateParams::new(names).expect("names");
        let key = KeyPair::generate().expect("a key");
        let cert = params.signed_by(&key, &authority.0).expect("a certificate");
        Self::with(target, cert.der().clone(), &key)
    }

    fn with(target: SocketAddr, cert: CertificateDer<'static>, key: &KeyPair) -> Self {
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("the server's key");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the TLS versions of ring")
            .with_no_client_auth()
            .with_single_cert(vec![cert], key)
            .expect("a configuration");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener =
            std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port on loopback");
        let address = listener.local_addr().expect("the server's address");
        listener.set_nonblocking(true).expect("a socket for tokio");
        thread::spawn(move || {
            Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(
                async {
                    let listener = TcpListener::from_std(listener).expect("a socket for tokio");
                    while let Ok((stream, _)) = listener.accept().await {
                        let acceptor = acceptor.clone();
                        tokio::spawn(async move {
                            let (Ok(mut client), Ok(mut server)) =
                                (acceptor.accept(stream).await, TcpStream::connect(target).await)
                            else {
                                return;
                            };
                            // Either side may close the connection.
                            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                        });
                    }
                },
            );
        });
        Self { address }
    }
}
