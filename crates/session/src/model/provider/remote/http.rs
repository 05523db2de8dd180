//! One HTTP request and its answer, which arrives as a body of frames. A response that is not a
//! stream becomes an error that describes it.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Request, Response, StatusCode, header};

use super::client::{HttpClient, Route};
use super::error;
use super::frames::{Framer, Framing, LastFrames};
use crate::model::ModelError;

/// The most bytes of a refusal that are read.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// The timeout for the body of a refusal.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(3);

/// Sends a request.
///
/// # Errors
/// [`ModelError`] if the provider can't be reached, refuses the request, or answers with anything
/// but a stream. Its message contains neither `key` nor a proxy's password.
pub(super) async fn send(
    client: HttpClient,
    request: Request,
    framing: Framing,
    key: &str,
) -> Result<Body, ModelError> {
    let route = Arc::clone(&client.route);
    let sent = open_body(client, request, framing, key).await;
    sent.map_err(|error| error::without_secrets(error, &[key, &route.password]))
}

/// Sends a request, and checks that the response is a stream.
async fn open_body(
    HttpClient { http, route }: HttpClient,
    request: Request,
    framing: Framing,
    key: &str,
) -> Result<Body, ModelError> {
    let response =
        http.execute(request).await.map_err(|error| error::connection(&error, &route))?;
    let status = response.status();
    if let (StatusCode::PROXY_AUTHENTICATION_REQUIRED, Some(proxy)) = (status, &route.proxy) {
        return Err(error::proxy_auth_error(proxy));
    }
    if !status.is_success() {
        let headers = response.headers().clone();
        let secrets = [key, &route.password];
        let body = read_refusal(response, &secrets).await;
        return Err(error::refused(status, &headers, &body, &secrets));
    }
    if let Some(encoding) = encoding(&response) {
        let message = format!("it is encoded as `{encoding}`, which was not requested");
        return Err(ModelError::Malformed { message });
    }
    match non_stream_type(&response) {
        Some(kind) => Err(ModelError::Malformed {
            message: format!("it is not an event stream but `{kind}`"),
        }),
        None => Ok(Body::new(response, framing, route)),
    }
}

/// The body of an answer. Dropping it drops the connection.
pub(super) struct Body {
    response: Response,
    route: Arc<Route>,
    framer: Framer,
    /// The bytes that arrived last; those before `framed` are cut into frames already.
    chunk: Vec<u8>,
    framed: usize,
    /// The status, for the error if no byte arrives; `None` from the first byte on.
    status_if_empty: Option<StatusCode>,
}

impl Body {
    fn new(response: Response, framing: Framing, route: Arc<Route>) -> Self {
        Self {
            status_if_empty: Some(response.status()),
            response,
            route,
            framer: Framer::new(framing),
            chunk: Vec::new(),
            framed: 0,
        }
    }

    /// The password of the proxy, or an empty text.
    pub(super) fn proxy_password(&self) -> &str {
        &self.route.password
    }

    /// The next frame in the bytes that have arrived; `None` if more bytes are needed.
    ///
    /// # Errors
    /// [`ModelError::Malformed`] if a frame exceeds its bound.
    pub(super) fn frame(&mut self) -> Result<Option<String>, ModelError> {
        let mut rest = &self.chunk[self.framed..];
        let frame = self.framer.next(&mut rest);
        self.framed = self.chunk.len() - rest.len();
        frame
    }

    /// Waits for more bytes. Returns `false` at the end of the body.
    ///
    /// # Errors
    /// [`ModelError`] if the connection breaks, or the body ends without a byte.
    pub(super) async fn more(&mut self) -> Result<bool, ModelError> {
        match self.response.chunk().await.map_err(|error| error::connection(&error, &self.route))? {
            Some(chunk) => {
                if !chunk.is_empty() {
                    self.status_if_empty = None;
                }
                self.chunk = Vec::from(chunk);
                self.framed = 0;
                Ok(true)
            }
            None => self.status_if_empty.map_or(Ok(false), |status| Err(error::empty(status))),
        }
    }

    /// The last frames, after the end of the body.
    pub(super) fn close(&mut self) -> LastFrames {
        self.framer.close()
    }
}

/// The encoding of a body, if it has one. No request asks for an encoding.
fn encoding(response: &Response) -> Option<String> {
    let encoding =
        String::from_utf8_lossy(response.headers().get(header::CONTENT_ENCODING)?.as_bytes())
            .into_owned();
    (!encoding.trim().is_empty() && !encoding.trim().eq_ignore_ascii_case("identity"))
        .then_some(encoding)
}

/// The type of a response that can't be an answer. Servers stream under any text type, or without a
/// type.
fn non_stream_type(response: &Response) -> Option<String> {
    let kind = response.headers().get(header::CONTENT_TYPE)?.as_bytes().to_ascii_lowercase();
    let kind = String::from_utf8_lossy(&kind).into_owned();
    let may_stream =
        kind.contains("json") || (kind.starts_with("text/") && !kind.starts_with("text/html"));
    (!may_stream && !kind.trim().is_empty()).then_some(kind)
}

/// Reads the beginning of a refusal's body, without the secrets. The rest, and everything that
/// arrives after [`REFUSAL_TIMEOUT`], is dropped.
async fn read_refusal(mut response: Response, secrets: &[&str]) -> String {
    if let Some(encoding) = encoding(&response) {
        return format!("its body is encoded as `{encoding}`, which was not requested");
    }
    let mut bytes = Vec::new();
    let read = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            bytes.extend_from_slice(&chunk[..chunk.len().min(MAX_REFUSAL_BYTES - bytes.len())]);
            if bytes.len() == MAX_REFUSAL_BYTES {
                break;
            }
        }
    };
    // The refusal itself is known; its message is not worth a long wait.
    let _ = tokio::time::timeout(REFUSAL_TIMEOUT, read).await;
    error::masked_beginning(String::from_utf8_lossy(&bytes).into_owned(), secrets)
}
