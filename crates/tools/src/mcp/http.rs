//! The transport of a server that is reached over streamable HTTP.
//!
//! Each message of ours is a POST, and its answer is JSON or a stream of events. A server may also
//! offer a stream of its own, which is opened once. `rmcp` does all that; this file keeps its
//! requests within bounds, and turns errors into words.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdpoint_common::McpServer;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::RoleClient;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::common::client_side_sse::{BoxedSseResponse, ExponentialBackoff};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse, StreamableHttpResponseLimits,
};
use rmcp::transport::{StreamableHttpClientTransport, Transport};
use tokio_util::sync::CancellationToken;

use super::calls::Calls;
use super::http_error::{HttpError, HttpFailure, in_words, is_unauthorized, text};
use super::login::ServerLogin;
use super::pace::Pace;
use super::requests::OpenRequests;
use super::stdio::{Fault, MAX_MESSAGE};
use crate::source::HttpClients;

/// How often a stream that broke off is continued until one works again.
const MAX_RETRIES: usize = 5;

/// The time before a stream is continued the second time. It doubles each time.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// How long the start of a server waits for the answer to the request for its own stream.
const STREAM_WAIT: Duration = Duration::from_secs(1);

/// The stream of a server that belongs to no request. Servers that have a session send requests of
/// their own in it, and some lose those that they send before it is open.
#[derive(Clone, Default)]
pub(super) struct OwnStream {
    /// Cancelled once the server has a session.
    expected: CancellationToken,
    /// Cancelled once the stream is open or refused.
    settled: CancellationToken,
}

impl OwnStream {
    /// Waits until the stream is open or refused, if the server has a session.
    pub(super) async fn settled(&self) {
        if self.expected.is_cancelled() {
            let _ = tokio::time::timeout(STREAM_WAIT, self.settled.cancelled()).await;
        }
    }
}

/// The connection to an address.
pub(super) struct Http {
    inner: StreamableHttpClientTransport<Client>,
    own_stream: OwnStream,
    requests: OpenRequests,
    calls: Calls,
    fault: Fault,
}

/// The HTTP client of one server.
#[derive(Clone)]
pub(super) struct Client {
    http: reqwest::Client,
    /// Values that are hidden in errors.
    secrets: Arc<[String]>,
    login: ServerLogin,
    pace: Arc<Mutex<Pace>>,
    own_stream: OwnStream,
    /// The reason why the last message could not be sent.
    fault: Fault,
}

impl Http {
    /// Prepares the connection to a server. Must be called on a runtime.
    ///
    /// # Errors
    /// The address or a header can't be used.
    pub(super) fn new(
        server: &McpServer,
        clients: &HttpClients,
        login: ServerLogin,
        grace: Duration,
        calls: Calls,
        fault: Fault,
    ) -> Result<Self, String> {
        let url = server.url.as_deref().unwrap_or_default();
        let mut config = StreamableHttpClientTransportConfig::with_uri(url)
            .custom_headers(headers(server)?)
            .max_sse_event_size(MAX_MESSAGE)
            .max_json_response_size(MAX_MESSAGE)
            .control_request_timeout(grace / 2);
        let mut retries = ExponentialBackoff::default();
        retries.max_times = Some(MAX_RETRIES);
        retries.base_duration = RETRY_DELAY;
        config.retry_config = Arc::new(retries);
        let client = Client {
            http: clients(url)?,
            secrets: secrets(server).into(),
            login,
            pace: Arc::default(),
            own_stream: OwnStream::default(),
            fault: fault.clone(),
        };
        let own_stream = client.own_stream.clone();
        let inner = StreamableHttpClientTransport::with_client(client, config);
        Ok(Self { inner, own_stream, requests: OpenRequests::default(), calls, fault })
    }

    pub(super) fn own_stream(&self) -> OwnStream {
        self.own_stream.clone()
    }
}

/// The headers of a server.
///
/// # Errors
/// One can't be sent.
pub(super) fn headers(server: &McpServer) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let mut headers = HashMap::new();
    for (name, value) in &server.headers {
        let unusable = || format!("its header `{name}` can't be sent");
        let key = HeaderName::try_from(name).map_err(|_| unusable())?;
        let mut value = HeaderValue::try_from(value).map_err(|_| unusable())?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}

/// The least bytes of a part of a path, and of a value of a query, that can be a key.
const MIN_KEY: usize = 8;

/// The values that errors must not show: those of headers, also without a scheme such as `Bearer`,
/// and the parts of the address that can be keys. The longest come first.
pub(super) fn secrets(server: &McpServer) -> Vec<String> {
    let values = server.headers.values();
    let parts = values.flat_map(|value| [Some(value.as_str()), value.split_whitespace().last()]);
    let url = server.url.as_deref().unwrap_or_default();
    let after_host = url.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
    let after_host = after_host.map_or("", |(_, rest)| rest);
    let parts_of_url = after_host.split(['/', '?', '&', '#', '=']);
    let parts_of_url = parts_of_url.filter(|part| part.len() >= MIN_KEY);
    let mut secrets: Vec<_> = parts.flatten().chain(parts_of_url).map(str::to_owned).collect();
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets
}

impl Transport<RoleClient> for Http {
    type Error = HttpFailure;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let sending = self.requests.sending(&message);
        let sent = self.inner.send(message);
        async move {
            let _sending = sending;
            sent.await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.inner.receive().await?;
            match self.requests.receive(message, &self.calls) {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(why) => {
                    self.fault.replace(Some(why));
                    // The worker of `rmcp` only ends once its messages are taken.
                    self.inner.cancel_token().cancel();
                    while self.inner.receive().await.is_some() {}
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

impl Client {
    /// Waits so that streams which end at once are not opened again without a pause.
    async fn keep_pace(&self) {
        let now = tokio::time::Instant::now();
        let next = self.pace.lock().unwrap_or_else(PoisonError::into_inner).next(now);
        tokio::time::sleep_until(next).await;
    }

    /// Makes a request with the token of the login, if there is one.
    async fn authorized<T, F>(
        &self,
        request: impl Fn(Option<String>) -> F + Send + Sync,
    ) -> Result<T, HttpFailure>
    where
        T: Send,
        F: Future<Output = Result<T, StreamableHttpError<reqwest::Error>>> + Send,
    {
        let is_refused = |answer: &Result<_, _>| answer.as_ref().is_err_and(is_unauthorized);
        let (answer, tokens) = self
            .login
            .authorized(request, is_refused)
            .await
            .map_err(|why| StreamableHttpError::Client(HttpError::new(why)))?;
        answer.map_err(|error| {
            let secrets: Vec<_> = self.secrets.iter().cloned().chain(tokens).collect();
            in_words(error, &secrets, &self.login)
        })
    }
}

type Headers = HashMap<HeaderName, HeaderValue>;

impl StreamableHttpClient for Client {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpFailure> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session, auth, headers, limits).await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, HttpFailure> {
        let posting = self.authorized(|token| {
            self.http.post_message_with_response_limits(
                Arc::clone(&uri),
                message.clone(),
                session.clone(),
                token,
                headers.clone(),
                limits,
            )
        });
        let posted = posting.await;
        self.fault.replace(posted.as_ref().err().map(text));
        if let Ok(
            StreamableHttpPostResponse::Json(_, Some(_))
            | StreamableHttpPostResponse::Sse(_, Some(_)),
        ) = &posted
        {
            self.own_stream.expected.cancel();
        }
        posted
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<(), HttpFailure> {
        let deleting = self.authorized(|token| {
            self.http.delete_session(Arc::clone(&uri), Arc::clone(&session), token, headers.clone())
        });
        deleting.await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<BoxedSseResponse, HttpFailure> {
        let max = MAX_MESSAGE;
        self.get_stream_with_max_sse_event_size(uri, session, last_event, auth, headers, max).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _: Option<String>,
        headers: Headers,
        max: usize,
    ) -> Result<BoxedSseResponse, HttpFailure> {
        self.keep_pace().await;
        let opening = self.authorized(|token| {
            self.http.get_stream_with_max_sse_event_size(
                Arc::clone(&uri),
                session.clone(),
                last_event.clone(),
                token,
                headers.clone(),
                max,
            )
        });
        let stream = opening.await;
        self.own_stream.settled.cancel();
        stream
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn m_h2_t_h3_keys_in_addresses_and_headers_are_secrets() {
        let header = ("Authorization".to_owned(), "Bearer the-key-1".to_owned());
        let server = McpServer {
            url: Some("https://example.com/v1/a-key-in-a-path/mcp?key=another-key&x=1".to_owned()),
            headers: BTreeMap::from([header]),
            ..McpServer::program("", [""; 0])
        };
        let mut secrets = secrets(&server);
        secrets.sort();
        assert_eq!(secrets, ["Bearer the-key-1", "a-key-in-a-path", "another-key", "the-key-1"]);
    }
}
