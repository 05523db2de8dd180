//! An API client without any library of ours: it writes and reads the bytes of the socket itself.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Barrier;

use holdpoint_common::api::ErrorBody;
use holdpoint_common::{Event, SessionError, Snapshot};
use serde::Deserialize;
use serde_json::{Value, json};

use super::harness::DaemonWorld;
use crate::world::patience;

/// A named client of a house's daemon.
#[derive(Clone)]
pub(crate) struct Api {
    socket: PathBuf,
    name: &'static str,
    env: Vec<(&'static str, String)>,
    work: PathBuf,
}

/// A response with its whole body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

/// A connection that is kept open for several requests.
pub(crate) struct RawConnection(BufReader<UnixStream>);

/// A stream of Server-Sent Events.
pub(crate) struct Stream(BufReader<ChunkedBody>);

/// A chunked response body.
struct ChunkedBody {
    line: RawConnection,
    /// The unread bytes of the current chunk.
    left: usize,
    first: bool,
}

/// A frame of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub kind: String,
    pub id: Option<u64>,
    pub data: String,
}

impl Api {
    pub(crate) fn new(house: &DaemonWorld) -> Self {
        Self {
            socket: house.socket(),
            name: "tests",
            env: house.0.env(),
            work: house.0.path("work"),
        }
    }

    /// The same client under another name.
    pub(crate) fn named(&self, name: &'static str) -> Self {
        Self { name, ..self.clone() }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn line(&self) -> RawConnection {
        self.try_line().unwrap()
    }

    pub(crate) fn try_line(&self) -> io::Result<RawConnection> {
        let stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(patience()))?;
        stream.set_write_timeout(Some(patience()))?;
        Ok(RawConnection(BufReader::new(stream)))
    }

    /// The bytes of a request.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
        let name = self.name;
        let head = format!(
            "{method} /v1/{path} HTTP/1.1\r\nhost: holdpoint\r\nholdpoint-client: {name}\r\n{headers}"
        );
        let mut request = format!("{head}content-length: {}\r\n\r\n", body.len()).into_bytes();
        request.extend_from_slice(body);
        request
    }

    fn ask(&self, method: &str, path: &str, body: &[u8]) -> Answer {
        let mut line = self.line();
        line.send(&self.request(method, path, "", body)).unwrap();
        line.answer().unwrap()
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, b"")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, body.to_string().as_bytes())
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.ask("DELETE", path, b"")
    }

    /// The text of an exported session.
    pub(crate) fn export(&self, session: &str) -> Vec<u8> {
        let answer = self.get(&format!("sessions/{session}/log"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.body
    }

    /// The supplies that tests bring to sessions.
    pub(crate) fn supplies(&self) -> Value {
        json!({ "env": self.env })
    }

    /// Opens a session under `policy` and returns its id.
    pub(crate) fn open(&self, policy: &str) -> String {
        let request = json!({ "workspace": self.work, "model": "rehearsal", "policy": policy, "supplies": self.supplies() });
        self.post("sessions", &request).ok()["settings"]["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn prompt(&self, session: &str, script: &str) -> Value {
        self.post(&format!("sessions/{session}/prompts"), &json!({ "text": script })).ok()
    }

    pub(crate) fn answer(&self, ask: &str, answer: &Value) -> Answer {
        self.post(&format!("asks/{ask}/answer"), answer)
    }

    /// Attaches with the parameters in `query`. The first frame, the snapshot, is not read yet.
    pub(crate) fn attach(&self, session: &str, query: &str) -> Stream {
        self.stream(&format!("sessions/{session}/events{query}"), "")
    }

    pub(crate) fn stream(&self, path: &str, headers: &str) -> Stream {
        let mut line = self.line();
        line.send(&self.request("GET", path, headers, b"")).unwrap();
        let (status, headers) = line.head().unwrap();
        assert_eq!(status, 200, "{headers:?}");
        assert!(
            headers.contains(&("content-type".to_owned(), "text/event-stream".to_owned())),
            "{headers:?}"
        );
        Stream(BufReader::new(ChunkedBody { line, left: 0, first: true }))
    }

    /// Waits until a session has at least `count` open asks and returns their ids.
    pub(crate) fn asks(&self, session: &str, count: usize) -> Vec<String> {
        let mut stream = self.attach(session, "?limit=0&snapshots=true");
        loop {
            let snapshot: Snapshot = stream.until(|frame| frame.kind == "snapshot").read();
            if snapshot.asks.len() >= count {
                return snapshot.asks.iter().map(|ask| ask.id.to_string()).collect();
            }
        }
    }

    /// Waits until the session has no open turn and no queued prompt. Returns its snapshot.
    pub(crate) fn settled(&self, session: &str) -> Snapshot {
        let mut stream = self.attach(session, "?limit=0&snapshots=true");
        loop {
            let snapshot: Snapshot = stream.until(|frame| frame.kind == "snapshot").read();
            if snapshot.turn.is_none() && snapshot.queue.is_empty() {
                return snapshot;
            }
        }
    }

    /// Waits until no client is attached. The daemon notices a moment later that a client is gone,
    /// even one made by a wait above.
    pub(crate) fn wait_detached(&self, session: &str) {
        while self.look(session).clients > 0 {
            std::thread::yield_now();
        }
    }

    /// Waits until all facts of a session are on disk.
    pub(crate) fn wait_saved(&self, session: &str) {
        while !self.look(session).saved {
            std::thread::yield_now();
        }
    }

    pub(crate) fn look(&self, session: &str) -> Snapshot {
        serde_json::from_value(self.get(&format!("sessions/{session}")).ok()).unwrap()
    }
}

impl Answer {
    /// The body of a successful response.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert!((200..300).contains(&self.status), "{} {}", self.status, self.text());
        if self.body.is_empty() { Value::Null } else { serde_json::from_slice(&self.body).unwrap() }
    }

    /// The error of a response with this status.
    #[track_caller]
    pub(crate) fn error(&self, status: u16) -> ErrorResponse {
        assert_eq!(self.status, status, "{}", self.text());
        ErrorResponse::read(&self.body).unwrap()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl RawConnection {
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    /// Closes the sending half of the connection.
    pub(crate) fn close_half(&self) {
        self.0.get_ref().shutdown(Shutdown::Write).unwrap();
    }

    /// Reads a response that is not a stream.
    pub(crate) fn answer(&mut self) -> io::Result<Answer> {
        let (status, headers) = self.head()?;
        Ok(Answer { status, body: self.rest(&headers)? })
    }

    /// Reads the body after the headers: as many bytes as they state, or chunk by chunk.
    pub(crate) fn rest(&mut self, headers: &[(String, String)]) -> io::Result<Vec<u8>> {
        let header =
            |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
        let mut body = Vec::new();
        if header("transfer-encoding").is_none() {
            body.resize(header("content-length").map_or(0, |length| length.parse().unwrap()), 0);
            self.0.read_exact(&mut body)?;
            return Ok(body);
        }
        loop {
            let size = usize::from_str_radix(&self.text()?, 16).map_err(io::Error::other)?;
            let from = body.len();
            body.resize(from + size, 0);
            self.0.read_exact(&mut body[from..])?;
            self.text()?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    /// Reads the status and the headers.
    pub(crate) fn head(&mut self) -> io::Result<(u16, Vec<(String, String)>)> {
        let first = self.text()?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("not an HTTP response: {first:?}"));
        let mut headers = Vec::new();
        loop {
            let line = self.text()?;
            let Some((name, value)) = line.split_once(':') else { return Ok((status, headers)) };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// Whether any byte of a response has arrived.
    pub(crate) fn has_answer(&self) -> bool {
        rustix::io::ioctl_fionread(self.0.get_ref()).unwrap() > 0
    }

    /// Waits for the next byte. Returns whether the connection was closed instead.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.0.fill_buf().map_or(true, <[u8]>::is_empty)
    }

    /// Splits the connection, to send on one thread and to read on another.
    pub(crate) fn split(self) -> (Self, Self) {
        let other = self.0.get_ref().try_clone().unwrap();
        (Self(BufReader::new(other)), self)
    }

    fn text(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }
}

impl Stream {
    /// The next frame, or `None` at the end of the stream.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        let mut frame = Frame { kind: "message".to_owned(), id: None, data: String::new() };
        loop {
            let line = self.line()?;
            match line.split_once(": ") {
                _ if line.is_empty() && frame.data.is_empty() => {}
                _ if line.is_empty() => return Some(frame),
                Some(("event", kind)) => kind.clone_into(&mut frame.kind),
                Some(("id", id)) => frame.id = Some(id.parse().unwrap()),
                Some(("data", data)) => data.clone_into(&mut frame.data),
                _ => assert!(line.starts_with(':'), "{line:?}"),
            }
        }
    }

    /// Reads frames until one matches `wanted`.
    #[track_caller]
    pub(crate) fn until(&mut self, wanted: impl Fn(&Frame) -> bool) -> Frame {
        loop {
            let frame = self.next().expect("the stream continues");
            if wanted(&frame) {
                return frame;
            }
        }
    }

    /// Reads frames until one has an event that matches `wanted`.
    #[track_caller]
    pub(crate) fn until_event(&mut self, wanted: impl Fn(&Event) -> bool) -> Event {
        self.until(|frame| frame.event().is_some_and(|event| wanted(&event))).event().unwrap()
    }

    /// Closes the sending half of the connection.
    pub(crate) fn close_half(&self) {
        self.0.get_ref().line.close_half();
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        // A broken connection ends the stream, too.
        match self.0.read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line.trim_end_matches('\n').to_owned()),
        }
    }
}

impl Read for ChunkedBody {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            if !std::mem::take(&mut self.first) {
                // The end of line after the previous chunk.
                self.line.text()?;
            }
            let size = self.line.text()?;
            self.left = usize::from_str_radix(&size, 16).map_err(io::Error::other)?;
        }
        let most = bytes.len().min(self.left);
        let read = self.line.0.read(&mut bytes[..most])?;
        self.left -= read;
        Ok(read)
    }
}

impl Frame {
    #[track_caller]
    pub(crate) fn read<T: serde::de::DeserializeOwned>(&self) -> T {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The session event in this frame, if it has one.
    pub(crate) fn event(&self) -> Option<Event> {
        (self.kind == "message").then(|| self.read())
    }
}

/// Runs `what` on `count` threads at once and returns the results in order.
pub(crate) fn at_once<T: Send>(count: usize, what: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let start = Barrier::new(count);
    std::thread::scope(|scope| {
        let (start, what) = (&start, &what);
        let one = |n| {
            scope.spawn(move || {
                start.wait();
                what(n)
            })
        };
        let all: Vec<_> = (0..count).map(one).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

/// An error response, as its JSON has it.
#[derive(Debug, Deserialize)]
pub(crate) struct ErrorResponse {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    #[serde(default)]
    pub(crate) details: Value,
}

impl ErrorResponse {
    /// Reads a body, and checks that a client of this version has the same error as the daemon.
    pub(crate) fn read(body: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(body);
        let response: Self =
            serde_json::from_slice(body).map_err(|error| format!("{error}: {text}"))?;
        let sent: ErrorBody =
            serde_json::from_slice(body).map_err(|error| format!("{error}: {text}"))?;
        let error = SessionError::from(sent);
        let is_same = error.code() == response.code && error.to_string() == response.message;
        let is_known = !matches!(error, SessionError::Other { .. });
        if is_same && is_known { Ok(response) } else { Err(format!("{error:?}: {text}")) }
    }
}
