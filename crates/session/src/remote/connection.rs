//! The connection to a daemon: its socket, the client and the client's supplies.

use std::io;
use std::path::Path;
use std::sync::Arc;

use holdpoint_common::api::{
    API_VERSION, CLIENT_HEADER, DESKTOP_HEADER, ErrorBody, VERSION_HEADER,
};
use holdpoint_common::{SessionError, Supplies, Who};
use holdpoint_tools::environment;
use hyper::body::Bytes;
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::http::{self, HttpError, Method, Response};
use crate::hosted::is_variable;

/// The maximum size of a reply that is not a stream, in bytes.
const MAX_REPLY_BYTES: usize = 256 * 1024 * 1024;

/// The maximum length of a variable that is sent in a header, in bytes. A longer one is left out.
const MAX_VARIABLE_BYTES: usize = 1024;

/// The characters that are escaped in a segment of a path.
const SEGMENT_ESCAPES: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The characters that are escaped in the client's name, besides those outside ASCII.
const NAME_ESCAPES: &AsciiSet = &CONTROLS.add(b'%');

/// A client and its access to a daemon. Each request has a connection of its own. No connection
/// stays open between requests, so the next request finds a daemon that was restarted.
#[derive(Clone)]
pub(crate) struct Connection {
    socket: Arc<Path>,
    client: Arc<str>,
    /// The access to the user's desktop, as a header; empty without a desktop.
    desktop: Arc<str>,
    pub(super) supplies: Arc<Supplies>,
}

impl Connection {
    pub(super) fn new(socket: Arc<Path>, who: &Who) -> Self {
        let connection = Self {
            socket,
            client: Arc::from(""),
            desktop: Arc::from(""),
            supplies: Arc::default(),
        };
        connection.for_client(who)
    }

    pub(super) fn for_client(self, who: &Who) -> Self {
        Self { client: client_header(&who.name).into(), ..self }
    }

    pub(super) fn with_supplies(self, mut supplies: Supplies) -> Self {
        let desktop = desktop_header(&supplies.env).into();
        // The others may be secrets.
        supplies.env.retain(|(name, _)| environment::is_used(name) || is_variable(name));
        Self { desktop, supplies: Arc::new(supplies), ..self }
    }

    /// Sends a request without a body, and reads the reply.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, SessionError> {
        read_reply(self.request(Method::GET, path, None).await?).await
    }

    /// Sends a request, and reads the reply.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, SessionError> {
        let body = serde_json::to_vec(body).map_err(|error| SessionError::Disconnected {
            message: format!("the request can't be written: {error}"),
        })?;
        read_reply(self.request(Method::POST, path, Some(body)).await?).await
    }

    /// Requests a stream.
    pub(super) async fn stream(&self, path: &str) -> Result<Response, SessionError> {
        self.request(Method::GET, path, None).await
    }

    /// Sends a request. A reply with an error status is returned as that error.
    pub(super) async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Response, SessionError> {
        let version = API_VERSION.to_string();
        let headers = self.headers(&version);
        check_status(http::request(&self.socket, method, path, &headers, body).await).await
    }

    /// Sends a text in pieces. A reply with an error status is returned as that error.
    pub(super) async fn upload(
        &self,
        path: &str,
        pieces: mpsc::Receiver<io::Result<Bytes>>,
    ) -> Result<Response, SessionError> {
        let version = API_VERSION.to_string();
        check_status(http::upload(&self.socket, path, &self.headers(&version), pieces).await).await
    }

    fn headers<'a>(&'a self, version: &'a str) -> Vec<(&'static str, &'a str)> {
        let headers = [
            (VERSION_HEADER, version),
            (CLIENT_HEADER, &*self.client),
            (DESKTOP_HEADER, &*self.desktop),
        ];
        headers
            .into_iter()
            .filter(|(name, value)| *name != DESKTOP_HEADER || !value.is_empty())
            .collect()
    }
}

/// The name of a client, as the header [`CLIENT_HEADER`] has it.
#[must_use]
pub fn client_header(name: &str) -> String {
    utf8_percent_encode(name, NAME_ESCAPES).to_string()
}

/// The variables that give access to the desktop, as a header.
fn desktop_header(env: &[(String, String)]) -> String {
    let vars = environment::desktop(env.iter().cloned())
        .into_iter()
        .filter(|(_, value)| value.len() <= MAX_VARIABLE_BYTES);
    vars.map(|(name, value)| format!("{name}={}", escape_segment(&value)))
        .collect::<Vec<_>>()
        .join("&")
}

/// Reads the reply of another daemon. A reply with an error status is returned as that error.
///
/// # Errors
/// The error of the reply; [`SessionError::Disconnected`] if it can't be read.
pub async fn reply_of<T: DeserializeOwned>(response: Response) -> Result<T, SessionError> {
    read_reply(check_status(Ok(response)).await?).await
}

/// Turns a reply with an error status into that error.
async fn check_status(response: Result<Response, HttpError>) -> Result<Response, SessionError> {
    let response = response.map_err(http_error)?;
    if response.status().is_success() {
        return Ok(response);
    }
    let status = response.status();
    let body = response.whole(MAX_REPLY_BYTES).await.map_err(http_error)?;
    Err(match serde_json::from_slice::<ErrorBody>(&body) {
        Ok(body) => body.into(),
        Err(_) => unreadable_reply(&format!("HTTP {status}: {}", String::from_utf8_lossy(&body))),
    })
}

/// Escapes a segment of a path, which may have any characters.
pub(super) fn escape_segment(text: &str) -> impl std::fmt::Display {
    utf8_percent_encode(text, SEGMENT_ESCAPES)
}

/// Reads a reply. An empty one is read as `null`, for `()` and options.
pub(super) async fn read_reply<T: DeserializeOwned>(response: Response) -> Result<T, SessionError> {
    let body = response.whole(MAX_REPLY_BYTES).await.map_err(http_error)?;
    let body = if body.is_empty() { b"null".as_slice() } else { &body };
    serde_json::from_slice(body).map_err(|error| unreadable_reply(&error))
}

/// The error for a request without a complete reply.
pub(super) fn http_error(error: HttpError) -> SessionError {
    let message = error.to_string();
    match error {
        HttpError::Unreachable { .. } => SessionError::Unreachable { message },
        _ => SessionError::Disconnected { message },
    }
}

/// The error for a reply that can't be read.
fn unreadable_reply(error: &impl std::fmt::Display) -> SessionError {
    SessionError::Disconnected { message: format!("unreadable reply from the daemon: {error}") }
}

#[cfg(test)]
mod tests {
    use percent_encoding::percent_decode_str;

    use super::*;

    #[test]
    fn the_name_of_a_client_is_sent_without_change() {
        for name in ["100%41", "%", "é%\n\u{1f600}"] {
            let who = Who::named(name);
            let connection = Connection::new(Path::new("socket").into(), &who);
            let decoded = percent_decode_str(&connection.client).decode_utf8_lossy();
            assert_eq!(decoded, name);
        }
    }
}
