//! The part of HTTP/1.1 that the model server needs to read requests.

use std::io::BufRead;
use std::time::Instant;

use super::Request;

/// Reads the next request. `None` once the client has ended the connection or sent an invalid
/// request.
pub(super) fn read_request(input: &mut impl BufRead, connection: usize) -> Option<Request> {
    let first = read_line(input)?;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let line = read_line(input)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length =
        headers.iter().find(|(name, _)| name == "content-length").map_or("0", |(_, value)| value);
    let mut body = vec![0; length.parse().ok()?];
    input.read_exact(&mut body).ok()?;
    let at = Instant::now();
    // A body that is not JSON is recorded as a string; the checks refuse it.
    let body =
        serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into());
    Some(Request { at, path, headers, body, connection })
}

fn read_line(input: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    let read = input.read_line(&mut line).ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}
