//! The transport of a server that is reached over the HTTP of revisions before 2025-03-26: all its
//! messages are events of one stream, and ours are POSTs to an address that the stream names.

use std::sync::Arc;
use std::time::Duration;

use holdpoint_common::McpServer;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use reqwest::{StatusCode, Url};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

use super::calls::Calls;
use super::events::Events;
use super::http;
use super::http_error::{HttpError, connection, status};
use super::login::ServerLogin;
use super::requests::OpenRequests;
use super::stdio::Fault;
use crate::source::HttpClients;

/// How long the POST of one message may take.
const POST_LIMIT: Duration = Duration::from_secs(30);

/// The connection to an address.
pub(super) struct Sse {
    client: Client,
    events: Events,
    /// The address for our messages.
    endpoint: Url,
    requests: OpenRequests,
    calls: Calls,
    fault: Fault,
}

/// Sends messages.
#[derive(Clone)]
struct Client {
    http: reqwest::Client,
    headers: HeaderMap,
    secrets: Arc<[String]>,
    login: ServerLogin,
}

impl Sse {
    /// Opens the stream of a server, and waits for the address for our messages.
    ///
    /// # Errors
    /// The address or a header can't be used, or the server can't.
    pub(super) async fn open(
        server: &McpServer,
        clients: &HttpClients,
        login: ServerLogin,
        calls: Calls,
        fault: Fault,
    ) -> Result<Self, String> {
        let url = server.url.as_deref().unwrap_or_default();
        let headers = http::headers(server)?.into_iter().collect();
        let secrets = http::secrets(server).into();
        let client = Client { http: clients(url)?, headers, secrets, login };
        let url = Url::parse(url).map_err(|error| format!("its address is not valid: {error}"))?;
        let mut events = client.open(&url).await?;
        let endpoint = loop {
            match events.next().await? {
                Some(event) if event.kind == "endpoint" => break endpoint(&url, &event.data)?,
                Some(_) => {}
                None => return Err("it closed the stream before it named an address".to_owned()),
            }
        };
        Ok(Self { client, events, endpoint, requests: OpenRequests::default(), calls, fault })
    }

    /// The next message of the server; `None` at the end of the stream.
    async fn next(&mut self) -> Result<Option<RxJsonRpcMessage<RoleClient>>, String> {
        while let Some(event) = self.events.next().await? {
            if event.kind != "message" {
                continue;
            }
            match serde_json::from_str(&event.data) {
                Ok(message) => {
                    if let Some(message) = self.requests.receive(message, &self.calls)? {
                        return Ok(Some(message));
                    }
                }
                Err(error) => tracing::debug!(%error, "an event of an MCP server"),
            }
        }
        Ok(None)
    }
}

/// The address for our messages. It must be of the same origin, so that headers go to no other
/// server.
fn endpoint(url: &Url, text: &str) -> Result<Url, String> {
    match url.join(text) {
        Ok(endpoint) if endpoint.origin() == url.origin() => Ok(endpoint),
        Ok(_) => Err("it wants messages at an address of another origin".to_owned()),
        Err(error) => Err(format!("it wants messages at an address that is not valid: {error}")),
    }
}

impl Client {
    /// Opens the stream.
    async fn open(&self, url: &Url) -> Result<Events, String> {
        let request = || {
            let request = self.http.get(url.clone()).headers(self.headers.clone());
            request.header(ACCEPT, "text/event-stream")
        };
        let answer = self.authorized(request).await?;
        let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        match kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            true => Ok(Events::new(answer)),
            false => Err("its answer is not a stream of events; check its address".to_owned()),
        }
    }

    async fn post(&self, endpoint: Url, body: Vec<u8>) -> Result<(), String> {
        let request = || {
            let request = self.http.post(endpoint.clone()).headers(self.headers.clone());
            request.header(CONTENT_TYPE, "application/json").body(body.clone())
        };
        self.authorized(request).await.map(drop)
    }

    /// Makes a request with the token of the login, if there is one.
    ///
    /// # Errors
    /// The request failed, or its answer is an error.
    async fn authorized(
        &self,
        request: impl Fn() -> reqwest::RequestBuilder,
    ) -> Result<reqwest::Response, String> {
        let with = |token: Option<String>| match token {
            Some(token) => request().bearer_auth(token).send(),
            None => request().send(),
        };
        let is_refused = |answer: &reqwest::Result<reqwest::Response>| {
            answer.as_ref().is_ok_and(|answer| answer.status() == StatusCode::UNAUTHORIZED)
        };
        let (answer, tokens) = self.login.authorized(with, is_refused).await?;
        let answer = answer.map_err(|error| connection(&error))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let secrets: Vec<_> = self.secrets.iter().cloned().chain(tokens).collect();
        Err(status(answer, &secrets, &self.login).await)
    }
}

impl Transport<RoleClient> for Sse {
    type Error = HttpError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), HttpError>> + Send + 'static {
        let sending = self.requests.sending(&message);
        let (client, endpoint) = (self.client.clone(), self.endpoint.clone());
        async move {
            let _sending = sending;
            let posting = async {
                let body = serde_json::to_vec(&message).map_err(|error| error.to_string())?;
                client.post(endpoint, body).await
            };
            match tokio::time::timeout(POST_LIMIT, posting).await {
                Ok(posted) => posted.map_err(HttpError::new),
                Err(_) => Err(HttpError::new(format!(
                    "it did not accept a message within {} s",
                    POST_LIMIT.as_secs()
                ))),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        match self.next().await {
            Ok(message) => message,
            Err(why) => {
                self.fault.replace(Some(why));
                None
            }
        }
    }

    async fn close(&mut self) -> Result<(), HttpError> {
        Ok(())
    }
}
