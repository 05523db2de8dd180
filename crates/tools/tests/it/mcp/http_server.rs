//! Programs that are MCP servers over HTTP, for tests.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use holdpoint_common::McpServer;
use holdpoint_tools::HttpClients;

use super::installed;

/// A server that listens on a port of this machine. It ends when this is dropped.
pub(super) struct HttpServer {
    child: Child,
    port: u16,
}

impl HttpServer {
    /// Starts a program that prints its port at the end of a line.
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // A program can also print the port that it was given, which is 0.
        let port = |line: String| line.rsplit(' ').next()?.parse().ok().filter(|port| *port > 0);
        let port = lines.find_map(|line| port(line.unwrap()));
        // The program must be able to print more.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, port: port.expect("a port") }
    }

    /// A server of ours that misbehaves in this way.
    pub(super) fn bad(kind: &str, more: &[&str]) -> Self {
        let script = installed::folder().join("bad_http.py");
        Self::start(Command::new("python3").arg(script).arg(kind).args(more))
    }

    /// The server `server-everything`, of the old era, with this transport: `streamableHttp` or
    /// `sse`.
    pub(super) fn everything(transport: &str) -> Self {
        let script = installed::npm("server-everything/dist/index.js");
        let preload = installed::folder().join("port.cjs");
        let command = &mut Command::new("node");
        command.arg("--require").arg(preload).arg(script).arg(transport);
        Self::start(command.env("PORT", "0"))
    }

    /// The server `server-filesystem`, which speaks only over standard input and output, for this
    /// folder and behind a bridge to HTTP.
    pub(super) fn filesystem(folder: &Path) -> Self {
        let bridge = installed::npm("../supergateway/dist/index.js");
        let server = installed::npm("server-filesystem/dist/index.js");
        let preload = installed::folder().join("port.cjs");
        let command = &mut Command::new(installed::node());
        command.arg("--require").arg(preload).arg(bridge);
        command.args(["--outputTransport", "streamableHttp", "--stateful", "--port", "0"]);
        command.args(["--stdio", &format!("node '{server}' '{}'", folder.display())]);
        Self::start(command)
    }

    /// A server of the modern era.
    pub(super) fn modern() -> Self {
        let script = installed::folder().join("everything.py");
        Self::start(Command::new(installed::python()).arg(script).arg("http"))
    }

    /// The settings of a session for this server, if it speaks HTTP with SSE.
    pub(super) fn sse_settings(&self) -> McpServer {
        let url = format!("http://127.0.0.1:{}/sse", self.port);
        McpServer { sse: true, ..McpServer::address(url) }
    }

    /// The settings of a session for this server.
    pub(super) fn settings(&self) -> McpServer {
        McpServer::address(format!("http://127.0.0.1:{}/mcp", self.port))
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Clients for plain HTTP. Those of a session, with its proxies and authorities, are tested where
/// they are made.
pub(super) fn http_clients() -> HttpClients {
    Arc::new(|_| {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let builder = reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy();
        let builder = builder.redirect(reqwest::redirect::Policy::none());
        builder.build().map_err(|error| error.to_string())
    })
}
