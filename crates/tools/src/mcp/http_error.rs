//! Errors of HTTP requests in words for the user, without addresses and keys.

use std::borrow::Cow;
use std::error::Error;

use rmcp::transport::streamable_http_client::StreamableHttpError;
use thiserror::Error;

use super::content::cut;
use super::login::ServerLogin;
use crate::shown::{prose_line, without_values};

/// The most bytes of a server's own text in an error.
const MAX_TEXT: usize = 300;

/// The most bytes that are read of the body of an error. Much more than its text in words, so that a
/// secret in that is read whole, and hidden.
const MAX_BODY: usize = 64 * 1024;

/// The reason why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub(super) struct HttpError(String);

impl HttpError {
    pub(super) fn new(why: String) -> Self {
        Self(why)
    }
}

/// The words for an answer that is not a success.
pub(super) async fn status(
    mut answer: reqwest::Response,
    secrets: &[String],
    login: &ServerLogin,
) -> String {
    let mut body = Vec::new();
    while body.len() < MAX_BODY
        && let Ok(Some(chunk)) = answer.chunk().await
    {
        body.extend_from_slice(&chunk[..chunk.len().min(MAX_BODY - body.len())]);
    }
    let text = format!("HTTP {}: {}", answer.status(), String::from_utf8_lossy(&body));
    self::answer(&without_values(&text, secrets), login)
}

/// The error of a transport.
pub(super) type HttpFailure = StreamableHttpError<HttpError>;

/// The words of an error that a transport reported.
pub(super) fn words(error: &(dyn Error + Send + Sync + 'static)) -> String {
    error.downcast_ref().map_or_else(|| error.to_string(), text)
}

/// The words of an error.
pub(super) fn text(failure: &HttpFailure) -> String {
    match failure {
        StreamableHttpError::Client(error) => error.to_string(),
        other => other.to_string(),
    }
}

/// Whether the server requires another login, or a key.
pub(super) fn is_unauthorized(error: &StreamableHttpError<reqwest::Error>) -> bool {
    match error {
        StreamableHttpError::AuthRequired(_) => true,
        StreamableHttpError::UnexpectedServerResponse(text) => text.starts_with("HTTP 401"),
        StreamableHttpError::Client(error) => error.status().is_some_and(|it| it.as_u16() == 401),
        _ => false,
    }
}

/// Turns an error into words. Kinds on which `rmcp` acts are kept.
pub(super) fn in_words(
    error: StreamableHttpError<reqwest::Error>,
    secrets: &[String],
    login: &ServerLogin,
) -> HttpFailure {
    use StreamableHttpError as E;
    let text = match error {
        E::Client(error) => connection(&error),
        E::ServerDoesNotSupportSse => return E::ServerDoesNotSupportSse,
        E::SessionExpired => return E::SessionExpired,
        error if is_unauthorized(&error) => login.unauthorized(401, None),
        E::InsufficientScope(error) => login.unauthorized(403, error.required_scope.as_deref()),
        E::HttpStatus(error) => format!("it answered with {error}"),
        E::ResponseBodyTooLarge { max_size } => {
            format!("it sent a message of more than {max_size} bytes")
        }
        E::UnexpectedContentType(kind) => format!(
            "its answer is of the type {}, not JSON or a stream of events; check that the address \
             is the one of an MCP server",
            kind.map_or("none".into(), |kind| format!("`{}`", shortened(&kind)))
        ),
        E::UnexpectedServerResponse(text) => answer(&without_values(&text, secrets), login),
        error => format!("its answer can't be used: {error}"),
    };
    E::Client(HttpError(text))
}

/// The words for an answer with an HTTP status, or one that is no message.
fn answer(text: &str, login: &ServerLogin) -> String {
    let text = shortened(text);
    if text.starts_with("HTTP 401") || text.starts_with("HTTP 403") {
        let status = if text.starts_with("HTTP 401") { 401 } else { 403 };
        return login.unauthorized(status, None);
    }
    if text.starts_with("HTTP 3") {
        return format!(
            "it redirects to another address ({text}), which is not followed; use that address"
        );
    }
    match text.starts_with("HTTP ") {
        true => format!("it answered with {text}"),
        false => format!("its answer is not a message: {text}"),
    }
}

/// The words for a request that had no complete answer.
pub(super) fn connection(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    // The error itself has the address, which may contain a key.
    let cause = match error.source() {
        Some(_) => shortened(&cause.to_string()).into_owned(),
        None => "no reason given".to_owned(),
    };
    match error.is_connect() {
        true => format!("it can't be reached: {cause}; check its address and that it runs"),
        false => format!("the connection broke off: {cause}"),
    }
}

/// The beginning of a text, on one line.
fn shortened(text: &str) -> Cow<'_, str> {
    prose_line(cut(text, MAX_TEXT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_h2_t_h3_errors_show_neither_keys_nor_long_answers() {
        let secrets = ["Bearer sk-secret".to_owned(), "sk-secret".to_owned()];
        let text = format!("HTTP 400 Bad Request: no key sk-secret\n{}", "x".repeat(1_000));
        let server = holdpoint_common::McpServer::address("https://example.com");
        let clients = std::sync::Arc::new(|_: &str| Err("no client".to_owned()));
        let login = ServerLogin::new("s", &server, None, clients);
        let error = StreamableHttpError::UnexpectedServerResponse(text.into());
        let error = in_words(error, &secrets, &login);
        let error = super::text(&error);
        assert!(error.starts_with("it answered with HTTP 400 Bad Request: no key ***"), "{error}");
        assert!(error.len() < 400 && !error.contains('\n'), "{error}");
    }
}
