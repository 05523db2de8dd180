//! A small page server on loopback that records its requests.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use holdpoint_tools::testing::patience;

/// The answer for a path: a complete HTTP response, one that is continued for ever, or no response.
#[derive(Clone)]
pub(crate) enum Answer {
    Whole(String),
    Endless(String),
    Silence,
}

pub(crate) struct Server {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

/// The open connections with their peers.
type Connections = Vec<(SocketAddr, TcpStream)>;

#[derive(Default)]
struct Shared {
    asked: Mutex<(Vec<String>, Connections)>,
    news: Condvar,
}

impl Server {
    /// Starts a server that passes each path with its query to `answer`.
    pub(crate) fn start(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::<Shared>::default();
        let (all, answer) = (Arc::clone(&shared), Arc::new(answer));
        let accepting = move || {
            for stream in listener.incoming().flatten() {
                let (shared, answer) = (Arc::clone(&all), Arc::clone(&answer));
                named(move || serve(stream, &shared, &*answer));
            }
        };
        named(accepting);
        Self { port, shared }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Waits for a request for this path.
    pub(crate) fn wait_asked(&self, path: &str) {
        self.wait(path, |asked, _| asked.iter().any(|known| known == path));
    }

    /// Waits until all connections are closed.
    pub(crate) fn wait_left(&self) {
        self.wait("the end of all connections", |_, connections| connections.is_empty());
    }

    fn wait(&self, what: &str, is: impl Fn(&[String], &Connections) -> bool) {
        let asked = self.shared.asked.lock().unwrap();
        let (asked, late) = self
            .shared
            .news
            .wait_timeout_while(asked, patience(), |(asked, connections)| !is(asked, connections))
            .unwrap();
        let so_far = asked.0.clone();
        drop(asked);
        assert!(!late.timed_out(), "{what} is missing; the requests are {so_far:?}");
    }

    /// The paths that were requested so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.shared.asked.lock().unwrap().0.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for (_, stream) in &self.shared.asked.lock().unwrap().1 {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// A served connection, which is removed from the list when dropped.
struct Open<'a> {
    shared: &'a Shared,
    peer: SocketAddr,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.shared.asked.lock().unwrap().1.retain(|(peer, _)| *peer != self.peer);
        self.shared.news.notify_all();
    }
}

/// Spawns a thread that `leaves.rs` recognizes as the server's by its name.
fn named(work: impl FnOnce() + Send + 'static) {
    thread::Builder::new().name("server".to_owned()).spawn(work).unwrap();
}

fn serve(stream: TcpStream, shared: &Shared, answer: &(dyn Fn(&str) -> Answer + Send + Sync)) {
    let mut writer = stream.try_clone().unwrap();
    let Ok(peer) = stream.peer_addr() else { return };
    shared.asked.lock().unwrap().1.push((peer, stream.try_clone().unwrap()));
    let _open = Open { shared, peer };
    let mut reader = BufReader::new(stream);
    let mut path = String::new();
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        if let Some((_, rest)) = line.split_once(' ').filter(|_| path.is_empty()) {
            path = rest.split(' ').next().unwrap().to_owned();
        }
        if line == "\r\n" {
            break;
        }
        line.clear();
    }
    if path.is_empty() {
        return;
    }
    shared.asked.lock().unwrap().0.push(path.clone());
    shared.news.notify_all();
    match answer(&path) {
        Answer::Whole(text) => drop(writer.write_all(text.as_bytes())),
        Answer::Endless(text) => {
            let mut more = writer.write_all(text.as_bytes());
            while more.is_ok() {
                more = writer.write_all(b"<p>and more</p>\n");
                thread::sleep(Duration::from_millis(20));
            }
        }
        // Waits until the client or the server closes the connection.
        Answer::Silence => drop(reader.read_line(&mut line)),
    }
    let _ = writer.shutdown(Shutdown::Both);
}

/// An HTML page with this body.
pub(crate) fn html(body: &str) -> Answer {
    typed(
        "text/html; charset=utf-8",
        &format!(
            "<!doctype html>\n<html><head><title>A page</title></head><body>{body}</body></html>"
        ),
    )
}

/// A successful response of this content type.
pub(crate) fn typed(kind: &str, body: &str) -> Answer {
    status("200 OK", &format!("content-type: {kind}\r\n"), body)
}

/// A response with these additional header lines.
pub(crate) fn status(status: &str, head: &str, body: &str) -> Answer {
    Answer::Whole(format!(
        "HTTP/1.1 {status}\r\n{head}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    ))
}
