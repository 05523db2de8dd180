//! The common base of the web tests: a session with its own browser, and helpers for calls.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use holdpoint_common::{AskRequest, PauseRequest, PauseResponse, WebSettings};
use holdpoint_tools::testing::{Bench, Called, Calling, Census, patience};
use holdpoint_tools::web::guard::{Resolve, SystemResolver};
use holdpoint_tools::web::{Browsers, Web};
use holdpoint_tools::{AskReply, ToolError};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A session that uses the web, with its browsers and the census of their processes.
pub(crate) struct Session {
    pub(crate) bench: Bench,
    pub(crate) browsers: Browsers,
    pub(crate) census: Census,
    make: Option<Box<dyn FnMut() -> Web>>,
    folder: TempDir,
}

impl Session {
    /// A session that may reach this machine.
    pub(crate) fn new() -> Self {
        Self::with(local())
    }

    pub(crate) fn with(settings: WebSettings) -> Self {
        Self::with_names(settings, Arc::new(SystemResolver))
    }

    /// A session whose names are looked up by `names`.
    pub(crate) fn with_names(settings: WebSettings, names: Arc<dyn Resolve>) -> Self {
        Self::within(tempfile::tempdir().unwrap(), settings, names)
    }

    /// A session with the browsers' folders in `web` below `folder`.
    pub(crate) fn within(folder: TempDir, settings: WebSettings, names: Arc<dyn Resolve>) -> Self {
        let browsers = Browsers::with_resolver(settings, folder.path().join("web"), names).unwrap();
        let make = browsers.of_session("s1".parse().unwrap());
        let census = Census::new();
        let bench = Bench::new().env("HOLDPOINT_TEST", census.mark());
        Self { bench, browsers, census, make: Some(Box::new(make)), folder }
    }

    /// Adds a display.
    pub(crate) fn seen(self, display: &super::display::Display) -> Self {
        Self { bench: self.bench.display(display.env()), ..self }
    }

    /// Makes another instance of the session's tool.
    pub(crate) fn tool(&mut self) -> Web {
        self.make.as_mut().expect("the session is open")()
    }

    pub(crate) fn start(&mut self, input: Value) -> Calling {
        let tool = self.tool();
        self.bench.start(tool, input)
    }

    pub(crate) fn call(&mut self, input: Value) -> Called {
        self.start(input).wait()
    }

    /// The output of opening this page.
    pub(crate) fn open(&mut self, url: &str) -> String {
        output_of(self.call(json!({"action": "open_page", "url": url})))
    }

    /// The error of opening this page.
    pub(crate) fn open_fails(&mut self, url: &str) -> String {
        failure(self.call(json!({"action": "open_page", "url": url})))
    }

    /// The parent folder of the browsers' folders.
    pub(crate) fn place(&self) -> std::path::PathBuf {
        self.folder.path().join("web")
    }

    pub(crate) fn folders(&self) -> Vec<std::path::PathBuf> {
        browser_folders(&self.place())
    }

    /// Ends the session and checks that its processes and folders are gone.
    pub(crate) fn close(mut self) {
        self.end();
        self.census.wait_none();
        wait_until("no browser folder is left", || self.folders().is_empty());
    }

    /// Drops the session's tools and with them its browser.
    pub(crate) fn end(&mut self) {
        self.make = None;
    }
}

pub(crate) fn browser_folders(place: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("browser-"))
        .map(|entry| entry.path())
        .collect()
}

/// Settings that allow this machine.
pub(crate) fn local() -> WebSettings {
    WebSettings {
        allow: vec!["127.0.0.1".to_owned(), "localhost".to_owned()],
        load_s: 300,
        ..WebSettings::default()
    }
}

/// Tries `attempt` with a load limit of 1 s, then with larger ones, because a slow machine may need
/// more time than a page has. Returns the result of the first attempt that succeeds.
#[track_caller]
pub(crate) fn retry_with_more_time<T>(
    attempt: impl Fn(&mut Session, u32) -> Result<T, String>,
) -> T {
    let mut why = String::new();
    for load_s in [1, 4, 16, 64] {
        let mut session = Session::with(WebSettings { load_s, ..local() });
        let result = attempt(&mut session, load_s);
        session.close();
        match result {
            Ok(found) => return found,
            Err(too_little) => why = too_little,
        }
    }
    panic!("{why}")
}

/// Checks that `text` contains `wanted`; the error shows the text.
pub(crate) fn has(text: &str, wanted: &str) -> Result<(), String> {
    if text.contains(wanted) { Ok(()) } else { Err(format!("no {wanted:?} in: {text}")) }
}

#[track_caller]
pub(crate) fn output_of(called: Called) -> String {
    called.result.unwrap().output
}

#[track_caller]
pub(crate) fn failure(called: Called) -> String {
    match called.result {
        Ok(outcome) => panic!("the call succeeded: {}", outcome.output),
        Err(ToolError::Interrupted) => panic!("the call was interrupted"),
        Err(error) => error.to_string(),
    }
}

pub(crate) fn resumed() -> AskReply {
    AskReply::Pause(PauseResponse::Resumed)
}

pub(crate) fn pause(ask: AskRequest) -> PauseRequest {
    match ask {
        AskRequest::Pause(pause) => pause,
        AskRequest::Question(question) => panic!("{question:?}"),
    }
}

/// Polls for a condition that sends no notification.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let by = std::time::Instant::now() + patience();
    while !is() {
        assert!(std::time::Instant::now() < by, "timed out: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn pages(address: &str) -> String {
    get(address, "/json/list")
}

/// The body of a response from a browser's DevTools port.
fn get(address: &str, path: &str) -> String {
    use std::io::{BufRead, BufReader, Read, Write};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n").unwrap();
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 2) {
        if let Some((_, value)) = line.to_ascii_lowercase().split_once("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    let _ = reader.read_exact(&mut body);
    String::from_utf8(body).unwrap()
}
