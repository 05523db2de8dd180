//! HTTP/1.1, mostly over a Unix socket, with one connection per request and streamed response bodies.
//!
//! Uses hyper's client, which is set up in 0.1 ms. reqwest takes 4 to 9 ms, because it always sets
//! up TLS.

use std::io;
use std::path::{Path, PathBuf};

use futures_util::StreamExt;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use rustix::process::geteuid;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

pub use hyper::body::Bytes;
pub use hyper::{Method, StatusCode};

/// The response to a request. Dropping it closes the connection.
#[derive(Debug)]
pub struct Response {
    head: hyper::http::response::Parts,
    body: Incoming,
}

/// The reason why there is no response, or only a part of one.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HttpError {
    /// No process listens on the socket, or it can't be reached.
    #[error("{} can't be reached: {source}", socket.display())]
    Unreachable {
        /// The path of the socket.
        socket: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The connection broke, or its data is not HTTP.
    #[error("the connection broke: {0}")]
    Broken(#[from] hyper::Error),
    /// The request is not valid HTTP.
    #[error("invalid request: {0}")]
    Request(#[from] hyper::http::Error),
    /// The body of the response is too long.
    #[error("the response is longer than {most} bytes")]
    TooLong {
        /// The limit in bytes.
        most: usize,
    },
}

/// Sends a request. `path` begins with `/`, and a body is JSON. Must be called inside a tokio
/// runtime with I/O. There is no timeout.
///
/// # Errors
/// [`HttpError`] if there is no response. A response with any status is not an error.
pub async fn request(
    socket: &Path,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<Vec<u8>>,
) -> Result<Response, HttpError> {
    let mut all_headers = vec![(HOST.as_str(), "holdpoint")];
    if body.is_some() {
        all_headers.push((CONTENT_TYPE.as_str(), "application/json"));
    }
    all_headers.extend_from_slice(headers);
    send(socket, method, path, &all_headers, Full::new(Bytes::from(body.unwrap_or_default()))).await
}

/// Like [`request`], over this connection. `body` need not be JSON.
///
/// # Errors
/// [`HttpError`] if there is no response. A response with any status is not an error.
pub async fn request_over(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Bytes,
) -> Result<Response, HttpError> {
    let all_headers = [&[(HOST.as_str(), "holdpoint")], headers].concat();
    send_over(stream, method, path, &all_headers, Full::new(body)).await
}

/// Sends a `POST` request with a body in pieces. An error instead of a piece aborts the request.
pub(super) async fn upload(
    socket: &Path,
    path: &str,
    headers: &[(&str, &str)],
    pieces: mpsc::Receiver<io::Result<Bytes>>,
) -> Result<Response, HttpError> {
    let all_headers = [&[(HOST.as_str(), "holdpoint")], headers].concat();
    let body = StreamBody::new(ReceiverStream::new(pieces).map(|piece| piece.map(Frame::data)));
    send(socket, Method::POST, path, &all_headers, body).await
}

/// Fails if another user's process listens. It would receive the keys of this user.
fn check_is_ours(stream: &UnixStream) -> io::Result<()> {
    let uid = stream.peer_cred()?.uid();
    if uid == geteuid().as_raw() {
        return Ok(());
    }
    let message = format!("a process of another user (uid {uid}) listens there");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

async fn send<B>(
    socket: &Path,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: B,
) -> Result<Response, HttpError>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let unreachable = |source| HttpError::Unreachable { socket: socket.to_owned(), source };
    let stream = UnixStream::connect(socket).await.map_err(unreachable)?;
    check_is_ours(&stream).map_err(unreachable)?;
    send_over(stream, method, path, headers, body).await
}

async fn send_over<B>(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: B,
) -> Result<Response, HttpError>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // The task ends when the response is dropped. Its errors reach the request and the response's
    // body, too.
    tokio::spawn(connection);
    let mut request = hyper::Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (head, body) = sender.send_request(request.body(body)?).await?.into_parts();
    Ok(Response { head, body })
}

impl Response {
    /// The status of the response.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.head.status
    }

    /// A header, if it exists and is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.headers.get(name)?.to_str().ok()
    }

    /// The next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// [`HttpError::Broken`] if the connection ended before the body.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        while let Some(frame) = self.body.frame().await {
            // Trailers are ignored.
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// The whole body, of at most `most` bytes.
    ///
    /// # Errors
    /// [`HttpError::TooLong`], or [`HttpError::Broken`] if the connection ended before the body.
    pub async fn whole(mut self, most: usize) -> Result<Vec<u8>, HttpError> {
        let mut whole = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if whole.len() + chunk.len() > most {
                return Err(HttpError::TooLong { most });
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(whole)
    }
}
