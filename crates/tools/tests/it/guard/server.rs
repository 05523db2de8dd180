//! Servers that record the connections they receive.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A server that answers every request and records the address by which it was reached.
pub(crate) struct Server {
    address: SocketAddr,
    came: Arc<Mutex<Vec<IpAddr>>>,
}

/// A request as it arrived.
pub(crate) struct Request {
    /// Its first line and its fields, in lower case.
    pub(crate) head: String,
    /// The bytes after the head.
    pub(crate) body: Vec<u8>,
}

impl Server {
    /// Answers `hi` to every request.
    pub(crate) fn start(address: &str) -> Self {
        Self::answering(address, |_, stream| {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
                .unwrap();
        })
    }

    /// Answers one request of each connection, each on its own thread.
    pub(crate) fn answering(
        address: &str,
        answer: impl Fn(Request, &mut TcpStream) + Send + Sync + 'static,
    ) -> Self {
        let answer = Arc::new(answer);
        Self::accepting(address, move |mut stream| {
            let answer = answer.clone();
            thread::spawn(move || {
                if let Some(request) = read(&stream) {
                    answer(request, &mut stream);
                }
            });
        })
    }

    /// Passes each connection to `serve`.
    pub(crate) fn accepting(address: &str, serve: impl Fn(TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let came = Arc::new(Mutex::new(Vec::new()));
        let coming = came.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                coming.lock().unwrap().push(stream.local_addr().unwrap().ip().to_canonical());
                serve(stream);
            }
        });
        Self { address, came }
    }

    /// The addresses by which the server was reached since the last call. The call makes one more
    /// connection to itself, which arrives after all others.
    pub(crate) fn came(&self) -> Vec<IpAddr> {
        let mut last = TcpStream::connect(self.address).unwrap();
        let ours = last.peer_addr().unwrap().ip().to_canonical();
        write!(last, "GET / HTTP/1.1\r\n\r\n").unwrap();
        last.read_to_end(&mut Vec::new()).unwrap();
        let mut came = std::mem::take(&mut *self.came.lock().unwrap());
        assert_eq!(came.pop(), Some(ours));
        came
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// A URL of this server.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// Reads one request. None if the connection ends before it does.
fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    Some(Request { head, body })
}
