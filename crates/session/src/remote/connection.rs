//! The way to a daemon: its socket, who asks, and what it is asked with.

use std::io;
use std::path::Path;
use std::sync::Arc;

use holdpoint_common::api::{API_VERSION, CLIENT_HEADER, DESKTOP_HEADER, ErrorBody, VERSION_HEADER};
use holdpoint_common::{Supplies, Who};
use holdpoint_tools::environment;
use hyper::body::Bytes;
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::http::{self, HttpError, Method, Response};
use crate::error::SessionError;

/// Bytes of an answer that is no stream, at most.
const ANSWER: usize = 256 * 1024 * 1024;

/// Bytes of a variable that is sent in a header; a longer one is left out.
const VARIABLE: usize = 1024;

/// What stays as it is in a piece of a path.
const PIECE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A client, and its way to a daemon. Each request has a connection of its own: nothing is kept open between them, and
/// a daemon that was started anew is found by the next one.
#[derive(Clone)]
pub(crate) struct Connection {
    socket: Arc<Path>,
    client: Arc<str>,
    /// How the user's desktop is reached, as a header; empty without a desktop.
    desktop: Arc<str>,
    pub(super) supplies: Arc<Supplies>,
}

impl Connection {
    pub(super) fn new(socket: Arc<Path>, who: &Who) -> Self {
        let (client, desktop, supplies) = (Arc::from(""), Arc::from(""), Arc::default());
        Self { socket, client, desktop, supplies }.for_client(who)
    }

    pub(super) fn for_client(self, who: &Who) -> Self {
        Self { client: utf8_percent_encode(&who.name, CONTROLS).to_string().into(), ..self }
    }

    pub(super) fn with_supplies(self, supplies: Supplies) -> Self {
        Self { desktop: desktop(&supplies.env).into(), supplies: Arc::new(supplies), ..self }
    }

    /// Asks with nothing, and reads the answer.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, SessionError> {
        answer(self.request(Method::GET, path, None).await?).await
    }

    /// Asks, and reads the answer.
    pub(super) async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, SessionError> {
        let body = serde_json::to_vec(body).map_err(|error| strange(&error))?;
        answer(self.request(Method::POST, path, Some(body)).await?).await
    }

    /// Asks for a stream.
    pub(super) async fn stream(&self, path: &str) -> Result<Response, SessionError> {
        self.request(Method::GET, path, None).await
    }

    /// Asks. What is answered is no error.
    pub(super) async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Response, SessionError> {
        let version = API_VERSION.to_string();
        let headers = self.headers(&version);
        answered(http::request(&self.socket, method, path, &headers, body).await).await
    }

    /// Sends a text, piece by piece. What is answered is no error.
    pub(super) async fn upload(
        &self,
        path: &str,
        pieces: mpsc::Receiver<io::Result<Bytes>>,
    ) -> Result<Response, SessionError> {
        let version = API_VERSION.to_string();
        answered(http::upload(&self.socket, path, &self.headers(&version), pieces).await).await
    }

    fn headers<'a>(&'a self, version: &'a str) -> Vec<(&'static str, &'a str)> {
        let headers = [(VERSION_HEADER, version), (CLIENT_HEADER, &*self.client), (DESKTOP_HEADER, &*self.desktop)];
        headers.into_iter().filter(|(name, value)| *name != DESKTOP_HEADER || !value.is_empty()).collect()
    }
}

/// How the desktop of an environment is reached, as a header.
fn desktop(env: &[(String, String)]) -> String {
    let vars = environment::desktop(env.iter().cloned()).into_iter().filter(|(_, value)| value.len() <= VARIABLE);
    vars.map(|(name, value)| format!("{name}={}", piece(&value))).collect::<Vec<_>>().join("&")
}

/// What was answered, which is no error.
async fn answered(response: Result<Response, HttpError>) -> Result<Response, SessionError> {
    let response = response.map_err(failed)?;
    if response.status().is_success() {
        return Ok(response);
    }
    let status = response.status();
    let body = response.whole(ANSWER).await.map_err(failed)?;
    Err(match serde_json::from_slice::<ErrorBody>(&body) {
        Ok(error) if !error.code.is_empty() => error.into(),
        _ => strange(&format!("HTTP {status}: {}", String::from_utf8_lossy(&body))),
    })
}

/// A piece of a path: of whatever characters.
pub(super) fn piece(text: &str) -> impl std::fmt::Display {
    utf8_percent_encode(text, PIECE)
}

/// What was answered; where that is nothing, `()` and options read it.
pub(super) async fn answer<T: DeserializeOwned>(response: Response) -> Result<T, SessionError> {
    let body = response.whole(ANSWER).await.map_err(failed)?;
    let body = if body.is_empty() { b"null".as_slice() } else { &body };
    serde_json::from_slice(body).map_err(|error| strange(&error))
}

/// Why there was no answer.
pub(super) fn failed(error: HttpError) -> SessionError {
    let message = error.to_string();
    match error {
        HttpError::Unreachable { .. } => SessionError::Unreachable { message },
        _ => SessionError::Disconnected { message },
    }
}

/// An answer that is none.
fn strange(what: &impl std::fmt::Display) -> SessionError {
    SessionError::Disconnected { message: format!("what the daemon says can't be read: {what}") }
}
