//! As much of HTTP/1.1 as a model server reads.

use std::io::BufRead;
use std::time::Instant;

use super::Request;

/// The next request; nothing once the client ended the connection or sent what is no request.
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
    let length = headers.iter().find(|(name, _)| name == "content-length").map_or("0", |(_, value)| value);
    let mut body = vec![0; length.parse().ok()?];
    input.read_exact(&mut body).ok()?;
    let at = Instant::now();
    // What is no JSON is recorded as text; the checker refuses it.
    let body = serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into());
    Some(Request { at, path, headers, body, connection })
}

fn read_line(input: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    let read = input.read_line(&mut line).ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}
