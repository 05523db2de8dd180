//! A small server of pages on loopback that knows what it was asked for.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use holdpoint_tools::testing::patience;

/// What a path is answered with: the whole answer, head and all; then more of it for ever, or nothing at all.
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

/// Whose connections are open.
type Connections = Vec<(SocketAddr, TcpStream)>;

#[derive(Default)]
struct Shared {
    asked: Mutex<(Vec<String>, Connections)>,
    news: Condvar,
}

impl Server {
    /// One that answers a path, its query included, by this.
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

    /// Waits until it was asked for this.
    pub(crate) fn wait_asked(&self, path: &str) {
        self.wait(path, |asked, _| asked.iter().any(|known| known == path));
    }

    /// Waits until nothing that it was asked for is taken any more.
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
        assert!(!late.timed_out(), "{what} did not come, but {so_far:?}");
    }

    /// What it was asked for.
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

/// A connection that is being served.
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

/// A thread whose name says that it is of no product.
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
        // Until the other side, or the server, has had enough.
        Answer::Silence => drop(reader.read_line(&mut line)),
    }
    let _ = writer.shutdown(Shutdown::Both);
}

/// A page of HTML.
pub(crate) fn html(body: &str) -> Answer {
    typed(
        "text/html; charset=utf-8",
        &format!("<!doctype html>\n<html><head><title>A page</title></head><body>{body}</body></html>"),
    )
}

/// Anything.
pub(crate) fn typed(kind: &str, body: &str) -> Answer {
    status("200 OK", &format!("content-type: {kind}\r\n"), body)
}

/// Any answer, with these lines in its head.
pub(crate) fn status(status: &str, head: &str, body: &str) -> Answer {
    Answer::Whole(format!(
        "HTTP/1.1 {status}\r\n{head}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    ))
}
