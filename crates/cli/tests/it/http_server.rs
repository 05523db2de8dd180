//! An MCP server over HTTP, for tests.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// The program of the server.
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tools/tests/mcp/bad_http.py");

/// A server that listens on a port of this machine. It ends when this is dropped.
pub(crate) struct HttpServer {
    child: Child,
    port: String,
}

impl HttpServer {
    /// Starts a server that behaves as its first argument says.
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut command = Command::new("python3");
        command.arg(SERVER).args(args).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { child, port: port.trim().to_owned() }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
