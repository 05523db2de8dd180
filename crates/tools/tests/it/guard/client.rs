//! A client of the proxy that can send any bytes.

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

/// Sends `request` to the proxy and reads the raw answer until the proxy closes the connection.
pub(crate) fn exchange(guard: &Guard, request: &[u8]) -> String {
    let mut stream = connect(guard);
    stream.write_all(request).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// Requests a page over plain http. Returns the raw answer.
pub(crate) fn get(guard: &Guard, url: &str) -> String {
    exchange(
        guard,
        format!("GET {url} HTTP/1.1\r\nHost: else.example\r\nConnection: close\r\n\r\n").as_bytes(),
    )
}

/// Requests a tunnel. Returns the head of the answer, and the stream after it.
pub(crate) fn tunnel(guard: &Guard, authority: &str) -> (String, TcpStream) {
    let mut stream = connect(guard);
    write!(stream, "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n").unwrap();
    (head(&mut stream), stream)
}

/// Reads only the head of a message.
pub(crate) fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// The status code of an answer.
pub(crate) fn status(answer: &str) -> u16 {
    answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap_or_else(|| panic!("no answer: {answer:?}"))
}

/// The guard's own field in an answer, if the guard itself answered.
pub(crate) fn by_guard(answer: &str) -> Option<&str> {
    answer.lines().find_map(|line| line.strip_prefix("holdpoint-guard: "))
}
