//! An X server for tests that open windows.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A running X server, ended when dropped.
pub(crate) struct Display {
    server: Child,
    name: String,
}

impl Display {
    pub(crate) fn start() -> Self {
        let mut server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "1280x1024x24", "-nolisten", "tcp"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Xvfb is installed: see scripts/test");
        let mut number = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut number).unwrap();
        Self { server, name: format!(":{}", number.trim()) }
    }

    /// The environment variables for programs that open windows on it.
    pub(crate) fn env(&self) -> Vec<(String, String)> {
        vec![("DISPLAY".to_owned(), self.name.clone())]
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
