//! TLS before a scripted model server, with a self-signed certificate.
#![allow(clippy::expect_used, reason = "a part of tests: what goes wrong here ends the test")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A server that speaks TLS and forwards to another.
pub struct TlsServer {
    /// Where it listens, on loopback.
    pub address: SocketAddr,
}

impl TlsServer {
    /// Starts one for `localhost` and 127.0.0.1, which passes on to `target`. It ends with the process.
    ///
    /// # Panics
    /// If it can't be started.
    #[must_use]
    pub fn before(target: SocketAddr) -> Self {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).expect("a certificate");
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("its key");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring's versions of TLS")
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .expect("a configuration");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port on loopback");
        let address = listener.local_addr().expect("its address");
        listener.set_nonblocking(true).expect("a socket for tokio");
        thread::spawn(move || {
            Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(async {
                let listener = TcpListener::from_std(listener).expect("a socket for tokio");
                while let Ok((stream, _)) = listener.accept().await {
                    let acceptor = acceptor.clone();
                    tokio::spawn(async move {
                        let (Ok(mut client), Ok(mut server)) =
                            (acceptor.accept(stream).await, TcpStream::connect(target).await)
                        else {
                            return;
                        };
                        // Either side may hang up.
                        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                    });
                }
            });
        });
        Self { address }
    }
}
