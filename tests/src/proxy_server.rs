//! Proxies on loopback: HTTP with `CONNECT`, and SOCKS5. Every connection leads to one server.
#![allow(clippy::expect_used, reason = "test support: a failure ends the test")]

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;

/// A proxy, which runs until the process ends.
pub struct ProxyServer {
    /// The loopback address on which it listens.
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<ProxyRequest>>>,
}

/// A connection that a client requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyRequest {
    /// The requested host, as the client named it, and port.
    pub target: String,
    /// The login as `user:password`.
    pub login: Option<String>,
}

/// The protocol of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// HTTP with the method `CONNECT`.
    Http,
    /// SOCKS5 (RFC 1928), with login by user and password (RFC 1929).
    Socks5,
}

struct Proxy {
    kind: Kind,
    target: SocketAddr,
    login: Option<String>,
    asked: Arc<Mutex<Vec<ProxyRequest>>>,
}

impl ProxyServer {
    /// Starts a proxy that connects every client to `target`.
    #[must_use]
    pub fn start(kind: Kind, target: SocketAddr) -> Self {
        Self::with(kind, target, None)
    }

    /// Starts a proxy that requires this login, as `user:password`.
    #[must_use]
    pub fn locked(kind: Kind, target: SocketAddr, login: &str) -> Self {
        Self::with(kind, target, Some(login.to_owned()))
    }

    fn with(kind: Kind, target: SocketAddr, login: Option<String>) -> Self {
        let listener =
            std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port on loopback");
        let address = listener.local_addr().expect("the server's address");
        listener.set_nonblocking(true).expect("a socket for tokio");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let proxy = Arc::new(Proxy { kind, target, login, asked: Arc::clone(&asked) });
        thread::spawn(move || {
            Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(
                async {
                    let listener = TcpListener::from_std(listener).expect("a socket for tokio");
                    while let Ok((stream, _)) = listener.accept().await {
                        let proxy = Arc::clone(&proxy);
                        // Either side may close the connection.
                        tokio::spawn(async move { drop(proxy.serve(stream).await) });
                    }
                },
            );
        });
        Self { address, asked }
    }

    /// The connections requested so far, including refused ones.
    #[must_use]
    pub fn asked(&self) -> Vec<ProxyRequest> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Proxy {
    async fn serve(&self, client: TcpStream) -> io::Result<()> {
        match self.kind {
            Kind::Http => self.http(client).await,
            Kind::Socks5 => self.socks5(client).await,
        }
    }

    /// Records a requested connection and returns whether its login is right.
    fn lets(&self, target: String, login: Option<String>) -> bool {
        let lets = self.login.is_none() || self.login == login;
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(ProxyRequest { target, login });
        lets
    }

    async fn connect(&self, mut client: TcpStream) -> io::Result<()> {
        let mut server = TcpStream::connect(self.target).await?;
        tokio::io::copy_bidirectional(&mut client, &mut server).await.map(drop)
    }

    async fn http(&self, mut client: TcpStream) -> io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(client.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let Some(target) = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next())
        else {
            return client
                .write_all(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n")
                .await;
        };
        let header = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("proxy-authorization").then(|| value.trim().to_owned())
        });
        let login =
            header.and_then(|value| BASE64_STANDARD.decode(value.strip_prefix("Basic ")?).ok());
        if !self.lets(target.to_owned(), login.and_then(|login| String::from_utf8(login).ok())) {
            let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic realm=\"x\"\r\n";
            return client
                .write_all(format!("{refusal}content-length: 0\r\n\r\n").as_bytes())
                .await;
        }
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
        self.connect(client).await
    }

    async fn socks5(&self, mut client: TcpStream) -> io::Result<()> {
        // Version, then the methods: 0 is no login, 2 is a user and a password.
        let _version = client.read_u8().await?;
        let methods = piece(&mut client).await?;
        let wanted = if methods.contains(&2) { 2 } else { 0 };
        if wanted == 0 && self.login.is_some() {
            self.lets(String::new(), None);
            return client.write_all(&[5, 0xff]).await;
        }
        client.write_all(&[5, wanted]).await?;
        let mut login = None;
        if wanted == 2 {
            let _version = client.read_u8().await?;
            let (user, password) = (piece(&mut client).await?, piece(&mut client).await?);
            let given = format!(
                "{}:{}",
                String::from_utf8_lossy(&user),
                String::from_utf8_lossy(&password)
            );
            if self.login.as_ref().is_some_and(|login| *login != given) {
                self.lets(String::new(), Some(given));
                return client.write_all(&[1, 1]).await;
            }
            client.write_all(&[1, 0]).await?;
            login = Some(given);
        }
        // Version, command (1 is connect), reserved, and the address type.
        let mut request = [0; 4];
        client.read_exact(&mut request).await?;
        let host = match request[3] {
            1 => Ipv4Addr::from_bits(client.read_u32().await?).to_string(),
            4 => format!("[{}]", Ipv6Addr::from_bits(client.read_u128().await?)),
            _ => String::from_utf8_lossy(&piece(&mut client).await?).into_owned(),
        };
        let port = client.read_u16().await?;
        self.lets(format!("{host}:{port}"), login);
        client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
        self.connect(client).await
    }
}

/// Reads a length byte and that many bytes.
async fn piece(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; client.read_u8().await?.into()];
    client.read_exact(&mut bytes).await?;
    Ok(bytes)
}
