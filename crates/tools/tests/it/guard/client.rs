//! A client of the proxy that writes what it likes.

use std::io::{Read, Write};
use std::net::TcpStream;

use holdpoint_tools::testing::patience;
use holdpoint_tools::web::guard::Guard;

/// A connection to a guard's proxy.
pub(crate) fn connect(guard: &Guard) -> TcpStream {
    let stream = TcpStream::connect(guard.address()).unwrap();
    stream.set_read_timeout(Some(patience())).unwrap();
    stream
}

/// Sends this to the proxy and reads until it closes: the answer as it is.
pub(crate) fn exchange(guard: &Guard, request: &[u8]) -> String {
    let mut stream = connect(guard);
    stream.write_all(request).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// Asks for a page of plain http: the answer as it is.
pub(crate) fn get(guard: &Guard, url: &str) -> String {
    exchange(guard, format!("GET {url} HTTP/1.1\r\nHost: else.example\r\nConnection: close\r\n\r\n").as_bytes())
}

/// Asks for a tunnel: the head of the answer, and the stream behind it.
pub(crate) fn tunnel(guard: &Guard, authority: &str) -> (String, TcpStream) {
    let mut stream = connect(guard);
    write!(stream, "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n").unwrap();
    (head(&mut stream), stream)
}

/// Reads the head of a message and nothing behind it.
pub(crate) fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// The number of an answer.
pub(crate) fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("no answer: {answer:?}"))
}

/// What the guard says of an answer, if it is its own.
pub(crate) fn by_guard(answer: &str) -> Option<&str> {
    answer.lines().find_map(|line| line.strip_prefix("holdpoint-guard: "))
}
