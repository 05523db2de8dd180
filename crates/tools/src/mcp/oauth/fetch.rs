//! The requests of a login: to the MCP server, and to the authorization server that it names.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::Url;
use reqwest::header::CONTENT_TYPE;
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};

use crate::mcp::http_error::{self, HttpError};
use crate::mcp::stdio::Fault;
use crate::shown::prose_line;
use crate::source::HttpClients;

/// How long one request may take, with its answer.
const LIMIT: Duration = Duration::from_secs(30);

/// The most bytes of an answer.
const MAX_BODY: usize = 256 * 1024;

/// Makes the requests of one login.
///
/// Its clients follow redirects within the origin of a request only, and never change a request, so
/// that codes and tokens reach no other server.
pub(super) struct Fetch {
    clients: HttpClients,
    /// Whether the MCP server is on this machine. Only then may others be reached without TLS.
    is_local: bool,
    /// The reason why the last request failed. `rmcp` does not keep it in all its errors.
    fault: Fault,
    /// The address of the last metadata of an authorization server.
    metadata_at: Mutex<Option<Url>>,
}

/// An answer with its whole body.
pub(super) type Answer = http::Response<Vec<u8>>;

impl Fetch {
    /// # Errors
    /// The address of the server can't be used for a login.
    pub(super) fn new(server: &str, clients: HttpClients) -> Result<Self, String> {
        let url = Url::parse(server).map_err(|error| format!("its address: {error}"))?;
        let is_local = is_loopback(&url);
        let (fault, metadata_at) = (Fault::default(), Mutex::default());
        let fetch = Self { clients, is_local, fault, metadata_at };
        fetch.check(server)?;
        Ok(fetch)
    }

    /// Parses an address that tokens, or the user's browser, may go to.
    ///
    /// # Errors
    /// It is not an address of the web, or is not protected by TLS and not on this machine.
    pub(super) fn check(&self, url: &str) -> Result<Url, String> {
        let shown = prose_line(url);
        let parsed = Url::parse(url).map_err(|error| format!("the address {shown}: {error}"))?;
        match parsed.scheme() {
            "https" => Ok(parsed),
            "http" if self.is_local && is_loopback(&parsed) => Ok(parsed),
            _ => Err(format!(
                "the address {shown} is not https, which a login needs except on this machine"
            )),
        }
    }

    /// The reason why the last request failed, if it did.
    pub(super) fn fault(&self) -> Option<String> {
        self.fault.take()
    }

    /// Checks that the metadata of an authorization server were found where this issuer keeps them.
    /// `rmcp` takes them from anywhere if a server names their address in place of the issuer.
    ///
    /// # Errors
    /// They were not.
    pub(super) fn check_source(&self, issuer: Option<&str>) -> Result<(), String> {
        let metadata_at = self.metadata_at.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (Some(at), Some(issuer)) = (metadata_at, issuer) else { return Ok(()) };
        let shown = prose_line(issuer).into_owned();
        let parsed = Url::parse(issuer).map_err(|error| format!("the issuer {shown}: {error}"))?;
        let path = parsed.path().trim_end_matches('/');
        let names = ["oauth-authorization-server", "openid-configuration"];
        let mut places = names.iter().flat_map(|name| {
            [format!("/.well-known/{name}{path}"), format!("{path}/.well-known/{name}")]
        });
        match parsed.origin() == at.origin() && places.any(|place| place == at.path()) {
            true => Ok(()),
            false => Err(format!(
                "its authorization server claims to be {shown}, but has its metadata elsewhere"
            )),
        }
    }

    /// A client for an address.
    ///
    /// # Errors
    /// The address can't be used.
    pub(super) fn client(&self, url: &str) -> Result<reqwest::Client, String> {
        self.check(url)?;
        (self.clients)(url)
    }

    /// Sends a request, and reads the whole answer.
    pub(super) async fn send(
        &self,
        client: &reqwest::Client,
        request: reqwest::Request,
    ) -> Result<Answer, String> {
        let origin = request.url().origin().ascii_serialization();
        let sending = async {
            let answer = client.execute(request).await.map_err(|error| {
                let why = http_error::connection(&error);
                why.strip_prefix("it ").unwrap_or(&why).to_owned()
            })?;
            whole(answer).await
        };
        let answer = tokio::time::timeout(LIMIT, sending).await;
        let answer =
            answer.unwrap_or_else(|_| Err(format!("did not answer within {} s", LIMIT.as_secs())));
        answer.map_err(|why| format!("{origin} {why}"))
    }
}

impl OAuthHttpClient for Fetch {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let sent = async {
                let address = request.request.uri().to_string();
                let client = self.client(&address)?;
                let request = reqwest::Request::try_from(request.request)
                    .map_err(|_| "the request can't be made".to_owned())?;
                let answer = self.send(&client, request).await?;
                // Only the metadata of an authorization server have this field.
                let field = b"\"token_endpoint\"";
                if answer.body().windows(field.len()).any(|part| part == field) {
                    let mut metadata_at =
                        self.metadata_at.lock().unwrap_or_else(PoisonError::into_inner);
                    *metadata_at = Url::parse(&address).ok();
                }
                Ok(answer)
            };
            let answer = sent.await;
            self.fault.replace(answer.as_ref().err().cloned());
            answer.map_err(|why| Box::new(HttpError::new(why)).into())
        })
    }
}

/// Reads an answer to its end.
async fn whole(mut answer: reqwest::Response) -> Result<Answer, String> {
    let (status, headers) = (answer.status(), answer.headers().clone());
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    // A server that needs no login answers with a stream, which need not end.
    let is_stream = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
    let mut body = Vec::new();
    while !is_stream
        && let Some(chunk) = answer.chunk().await.map_err(|_| "broke off its answer")?
    {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_BODY {
            return Err(format!("sent an answer of more than {MAX_BODY} bytes"));
        }
    }
    let mut whole = Answer::new(body);
    (*whole.status_mut(), *whole.headers_mut()) = (status, headers);
    Ok(whole)
}

/// Whether an address is on this machine.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn fetch(server: &str) -> Result<Fetch, String> {
        Fetch::new(server, Arc::new(|_| Err("no client".to_owned())))
    }

    #[test]
    fn m_h2_t_h3_a_login_uses_tls_except_on_this_machine() {
        let remote = fetch("https://example.com/mcp").unwrap();
        for good in ["https://example.com/mcp", "https://login.example.org"] {
            remote.check(good).unwrap();
        }
        for bad in [
            "http://example.com",
            "http://127.0.0.1:80/token",
            "javascript:alert(1)",
            "file:///etc/passwd",
        ] {
            assert!(remote.check(bad).unwrap_err().contains("is not https"), "{bad}");
        }
        assert!(fetch("http://example.com/mcp").is_err_and(|why| why.contains("is not https")));
        for local in ["http://127.0.0.1:9/mcp", "http://localhost/mcp", "http://[::1]:7/mcp"] {
            let local = fetch(local).unwrap();
            local.check("http://127.0.0.2:8/token").unwrap();
            local.check("https://example.com/token").unwrap();
            for bad in ["http://example.com/token", "http://localhost.example.com"] {
                assert!(local.check(bad).is_err(), "{bad}");
            }
        }
    }

    #[test]
    fn m_h2_t_h3_metadata_are_where_their_issuer_keeps_them() {
        let fetch = fetch("https://example.com/mcp").unwrap();
        let check = |at: &str| {
            *fetch.metadata_at.lock().unwrap() = Some(Url::parse(at).unwrap());
            fetch.check_source(Some("https://login.example.org/a"))
        };
        for good in [
            "https://login.example.org/.well-known/oauth-authorization-server/a",
            "https://login.example.org/.well-known/openid-configuration/a",
            "https://login.example.org/a/.well-known/openid-configuration",
        ] {
            check(good).unwrap();
        }
        for bad in [
            "https://example.com/.well-known/oauth-authorization-server/a",
            "https://example.com/evil/.well-known/x",
            "https://login.example.org/a",
            "https://login.example.org/.well-known/oauth-authorization-server/b",
        ] {
            assert!(check(bad).unwrap_err().contains("has its metadata elsewhere"), "{bad}");
        }
    }
}
