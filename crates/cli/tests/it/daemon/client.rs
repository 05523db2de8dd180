//! A client of the API that is nobody's library: what goes over the socket is written and read here.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Barrier;

use holdpoint_common::api::ErrorBody;
use holdpoint_common::{Event, Snapshot};
use serde_json::{Value, json};

use super::house::House;
use crate::world::patience;

/// A client of a house's daemon, by a name.
#[derive(Clone)]
pub(crate) struct Api {
    socket: PathBuf,
    name: &'static str,
    env: Vec<(&'static str, String)>,
    work: PathBuf,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

/// A connection that is kept for one request after the other.
pub(crate) struct Line(BufReader<UnixStream>);

/// A stream of Server-Sent Events.
pub(crate) struct Stream(BufReader<Pieces>);

/// A body that comes in pieces.
struct Pieces {
    line: Line,
    /// Bytes of the piece that are still to come.
    left: usize,
    first: bool,
}

/// One of them.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub kind: String,
    pub id: Option<u64>,
    pub data: String,
}

impl Api {
    pub(crate) fn new(house: &House) -> Self {
        Self { socket: house.socket(), name: "tests", env: house.0.env(), work: house.0.path("work") }
    }

    /// The same, by another name.
    pub(crate) fn named(&self, name: &'static str) -> Self {
        Self { name, ..self.clone() }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn line(&self) -> Line {
        self.try_line().unwrap()
    }

    pub(crate) fn try_line(&self) -> io::Result<Line> {
        let stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(patience()))?;
        stream.set_write_timeout(Some(patience()))?;
        Ok(Line(BufReader::new(stream)))
    }

    /// A request, as it goes over the socket.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
        let name = self.name;
        let head = format!("{method} /v1/{path} HTTP/1.1\r\nhost: holdpoint\r\nholdpoint-client: {name}\r\n{headers}");
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

    /// A session, written out.
    pub(crate) fn written(&self, session: &str) -> Vec<u8> {
        let answer = self.get(&format!("sessions/{session}/log"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.body
    }

    /// What tests bring along for sessions.
    pub(crate) fn supplies(&self) -> Value {
        json!({ "env": self.env })
    }

    /// Opens a session whose tools do as `policy` says; its id.
    pub(crate) fn open(&self, policy: &str) -> String {
        let request =
            json!({ "workspace": self.work, "model": "rehearsal", "policy": policy, "supplies": self.supplies() });
        self.post("sessions", &request).ok()["settings"]["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn prompt(&self, session: &str, script: &str) -> Value {
        self.post(&format!("sessions/{session}/prompts"), &json!({ "text": script })).ok()
    }

    pub(crate) fn answer(&self, ask: &str, answer: &Value) -> Answer {
        self.post(&format!("asks/{ask}/answer"), answer)
    }

    /// Attaches; `query` says how. The first frame, the snapshot, is still to come.
    pub(crate) fn attach(&self, session: &str, query: &str) -> Stream {
        self.stream(&format!("sessions/{session}/events{query}"), "")
    }

    pub(crate) fn stream(&self, path: &str, headers: &str) -> Stream {
        let mut line = self.line();
        line.send(&self.request("GET", path, headers, b"")).unwrap();
        let (status, headers) = line.head().unwrap();
        assert_eq!(status, 200, "{headers:?}");
        assert!(headers.contains(&("content-type".to_owned(), "text/event-stream".to_owned())), "{headers:?}");
        Stream(BufReader::new(Pieces { line, left: 0, first: true }))
    }

    /// The open asks of a session, by their ids, once it has so many.
    pub(crate) fn asks(&self, session: &str, count: usize) -> Vec<String> {
        let mut stream = self.attach(session, "?limit=0&snapshots=true");
        loop {
            let snapshot: Snapshot = stream.until(|frame| frame.kind == "snapshot").read();
            if snapshot.asks.len() >= count {
                return snapshot.asks.iter().map(|ask| ask.id.to_string()).collect();
            }
        }
    }

    /// Waits until no turn of the session is open; its snapshot then.
    pub(crate) fn settled(&self, session: &str) -> Snapshot {
        let mut stream = self.attach(session, "?limit=0&snapshots=true");
        loop {
            let snapshot: Snapshot = stream.until(|frame| frame.kind == "snapshot").read();
            if snapshot.turn.is_none() && snapshot.queue.is_empty() {
                return snapshot;
            }
        }
    }

    /// Waits until nobody is attached. That a client is gone, whoever waited included, the daemon sees a moment later.
    pub(crate) fn left(&self, session: &str) {
        while self.look(session).clients > 0 {
            std::thread::yield_now();
        }
    }

    /// Until all facts of a session are on disk.
    pub(crate) fn saved(&self, session: &str) {
        while !self.look(session).saved {
            std::thread::yield_now();
        }
    }

    pub(crate) fn look(&self, session: &str) -> Snapshot {
        serde_json::from_value(self.get(&format!("sessions/{session}")).ok()).unwrap()
    }
}

impl Answer {
    /// What was answered, which is no error.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert!((200..300).contains(&self.status), "{} {}", self.status, self.text());
        if self.body.is_empty() { Value::Null } else { serde_json::from_slice(&self.body).unwrap() }
    }

    /// The error that was answered, with this status.
    #[track_caller]
    pub(crate) fn error(&self, status: u16) -> ErrorBody {
        assert_eq!(self.status, status, "{}", self.text());
        let error: ErrorBody = serde_json::from_slice(&self.body).unwrap();
        assert!(!error.code.is_empty() && !error.message.is_empty(), "{error:?}");
        error
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Line {
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    /// Says that nothing more will come from here.
    pub(crate) fn close_half(&self) {
        self.0.get_ref().shutdown(Shutdown::Write).unwrap();
    }

    /// Reads an answer that is no stream.
    pub(crate) fn answer(&mut self) -> io::Result<Answer> {
        let (status, headers) = self.head()?;
        Ok(Answer { status, body: self.rest(&headers)? })
    }

    /// Reads what comes after an answer's first lines: as much as they say, or piece by piece.
    pub(crate) fn rest(&mut self, headers: &[(String, String)]) -> io::Result<Vec<u8>> {
        let header = |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
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

    /// Reads an answer's first lines.
    pub(crate) fn head(&mut self) -> io::Result<(u16, Vec<(String, String)>)> {
        let first = self.text()?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no answer of HTTP: {first:?}"));
        let mut headers = Vec::new();
        loop {
            let line = self.text()?;
            let Some((name, value)) = line.split_once(':') else { return Ok((status, headers)) };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// Whether something has come already.
    pub(crate) fn has_answer(&self) -> bool {
        rustix::io::ioctl_fionread(self.0.get_ref()).unwrap() > 0
    }

    /// The same connection, to send on one thread and to read on another.
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
    /// The next frame; nothing at the end.
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

    /// The next frame that is as wanted.
    #[track_caller]
    pub(crate) fn until(&mut self, wanted: impl Fn(&Frame) -> bool) -> Frame {
        loop {
            let frame = self.next().expect("the stream goes on");
            if wanted(&frame) {
                return frame;
            }
        }
    }

    /// The next event that is as wanted.
    #[track_caller]
    pub(crate) fn until_event(&mut self, wanted: impl Fn(&Event) -> bool) -> Event {
        self.until(|frame| frame.event().is_some_and(|event| wanted(&event))).event().unwrap()
    }

    /// Says that nothing more will come from here.
    pub(crate) fn close_half(&self) {
        self.0.get_ref().line.close_half();
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        // A connection that breaks ends the stream, too.
        match self.0.read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line.trim_end_matches('\n').to_owned()),
        }
    }
}

impl Read for Pieces {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            if !std::mem::take(&mut self.first) {
                // The line's end after the last piece.
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

    /// The session's event, if it is one.
    pub(crate) fn event(&self) -> Option<Event> {
        (self.kind == "message").then(|| self.read())
    }
}

/// Does so many things at once, each on a thread of its own; what came of them, in their order.
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
