//! One request over HTTP: sent as it is, and answered by a body that comes in frames. A response that is no stream
//! becomes an error that says what it is instead.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Request, Response, StatusCode, header};

use super::client::{HttpClient, Route};
use super::error;
use super::frames::{Framer, Framing, Rest};
use crate::model::ModelError;

/// Bytes of a refusal that are read.
const MOST_REFUSAL: usize = 64 * 1024;

/// How long the body of a refusal is read.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(3);

/// Sends a request.
///
/// # Errors
/// [`ModelError`] if the provider can't be reached, refuses the request, or answers with something else than a stream.
/// `key` is not in the part of a body that it quotes, and neither is a proxy's password.
pub(super) async fn send(
    client: HttpClient,
    request: Request,
    framing: Framing,
    key: &str,
) -> Result<Body, ModelError> {
    let route = Arc::clone(&client.route);
    let sent = request_body(client, request, framing, key).await;
    sent.map_err(|error| error::without_key(error, &route.password))
}

async fn request_body(
    HttpClient { http, route }: HttpClient,
    request: Request,
    framing: Framing,
    key: &str,
) -> Result<Body, ModelError> {
    let response = http.execute(request).await.map_err(|error| error::connection(&error, &route))?;
    let status = response.status();
    if let (StatusCode::PROXY_AUTHENTICATION_REQUIRED, Some(proxy)) = (status, &route.proxy) {
        return Err(error::locked(proxy));
    }
    if !status.is_success() {
        let headers = response.headers().clone();
        return Err(error::refused(status, &headers, &beginning(response, key).await, key));
    }
    if let Some(encoding) = encoding(&response) {
        let message = format!("it is encoded as `{encoding}`, which was not asked for");
        return Err(ModelError::Malformed { message });
    }
    match not_a_stream(&response) {
        Some(kind) => Err(ModelError::Malformed { message: format!("it is no event stream but `{kind}`") }),
        None => Ok(Body::new(response, framing, route)),
    }
}

/// The body of an answer. Dropping it drops the connection.
pub(super) struct Body {
    response: Response,
    route: Arc<Route>,
    framer: Framer,
    /// The bytes that came last; up to `framed`, they are cut into frames.
    chunk: Vec<u8>,
    framed: usize,
    /// The status, until something comes.
    empty: Option<StatusCode>,
}

impl Body {
    fn new(response: Response, framing: Framing, route: Arc<Route>) -> Self {
        let empty = Some(response.status());
        Self { response, route, framer: Framer::new(framing), chunk: Vec::new(), framed: 0, empty }
    }

    /// The next frame of what came. `None`: more has to come.
    ///
    /// # Errors
    /// [`ModelError::Malformed`] if a frame is beyond its bound.
    pub(super) fn frame(&mut self) -> Result<Option<String>, ModelError> {
        let mut rest = &self.chunk[self.framed..];
        let frame = self.framer.next(&mut rest);
        self.framed = self.chunk.len() - rest.len();
        frame
    }

    /// Waits for more. `false`: the body is over.
    ///
    /// # Errors
    /// [`ModelError`] if the connection breaks, or the body is over without a byte.
    pub(super) async fn more(&mut self) -> Result<bool, ModelError> {
        match self.response.chunk().await.map_err(|error| error::connection(&error, &self.route))? {
            Some(chunk) => {
                if !chunk.is_empty() {
                    self.empty = None;
                }
                self.chunk = Vec::from(chunk);
                self.framed = 0;
                Ok(true)
            }
            None => self.empty.map_or(Ok(false), |status| Err(error::empty(status))),
        }
    }

    /// The last frames, once the body is over.
    pub(super) fn close(&mut self) -> Rest {
        self.framer.close()
    }
}

/// How a body is encoded, where it is: no request asks for it.
fn encoding(response: &Response) -> Option<String> {
    let encoding = String::from_utf8_lossy(response.headers().get(header::CONTENT_ENCODING)?.as_bytes()).into_owned();
    (!encoding.trim().is_empty() && !encoding.trim().eq_ignore_ascii_case("identity")).then_some(encoding)
}

/// The type of a response that can't be an answer. Servers stream under any type of text, or without one.
fn not_a_stream(response: &Response) -> Option<String> {
    let kind = response.headers().get(header::CONTENT_TYPE)?.as_bytes().to_ascii_lowercase();
    let kind = String::from_utf8_lossy(&kind).into_owned();
    let may_be = kind.contains("json") || (kind.starts_with("text/") && !kind.starts_with("text/html"));
    (!may_be && !kind.trim().is_empty()).then_some(kind)
}

/// The beginning of a body, as far as it comes soon, with `key` nowhere in it.
async fn beginning(mut response: Response, key: &str) -> String {
    if let Some(encoding) = encoding(&response) {
        return format!("its words are encoded as `{encoding}`, which was not asked for");
    }
    let mut bytes = Vec::new();
    let read = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            bytes.extend_from_slice(&chunk[..chunk.len().min(MOST_REFUSAL - bytes.len())]);
            if bytes.len() == MOST_REFUSAL {
                break;
            }
        }
    };
    // That it was refused is known; what it says besides is not worth a long wait.
    let _ = tokio::time::timeout(REFUSAL_PATIENCE, read).await;
    error::hidden_beginning(String::from_utf8_lossy(&bytes).into_owned(), key)
}
