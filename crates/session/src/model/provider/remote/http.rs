//! One request over HTTP: sent as it is, and whatever is no stream told as what it is instead.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use reqwest::{Client, Request, Response, header};
use rig_core::driver::{Exchange, Opened, Opening, Transport};
use rig_core::error::ProviderError;
use rig_core::http_client::Error as HttpError;
use rig_core::wire::{Framing, WireFrame};

use super::frames::Frames;
use super::plain::Plain;
use super::reader::Reader;
use super::{Protocol, error};

/// Bytes of a refusal that are read.
const MOST_REFUSAL: usize = 64 * 1024;

/// How long the body of a refusal is read.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(3);

/// One request and the client that sends it.
#[derive(Clone)]
pub(super) struct Http {
    pub(super) client: Client,
    pub(super) request: Arc<Request>,
    pub(super) plain: Plain,
    pub(super) key: Arc<str>,
}

impl<P: Protocol> Transport<Reader<P>> for Http {
    fn send(&self, (): (), _: Exchange) -> Opening<WireFrame> {
        // Its body is bytes, which are shared.
        let request = self.request.try_clone();
        let Self { client, plain, key, .. } = self.clone();
        Opening::new(async move {
            let request = request.ok_or_else(|| ProviderError::request("its body is a stream"))?;
            let response = client.execute(request).await.map_err(error::transport)?;
            let (status, headers) = (response.status(), response.headers().clone());
            if !status.is_success() {
                let body = beginning(response, &key).await;
                return Err(ProviderError::from_http_response(status, body).with_response_headers(Some(headers)));
            }
            if let Some(encoding) = encoding(&response) {
                return Err(ProviderError::Response(format!("it is encoded as `{encoding}`, which was not asked for")));
            }
            match not_a_stream(&response, P::FRAMING) {
                Some(kind) if kind.as_bytes().starts_with(b"application/json") => {
                    let body = beginning(response, &key).await;
                    Err(if body.trim().is_empty() {
                        error::empty(status)
                    } else if error::is_answer(&body) {
                        ProviderError::from_transport_error(HttpError::InvalidContentType(kind))
                    } else {
                        ProviderError::from_provider_body(body)
                    })
                }
                Some(kind) => Err(ProviderError::from_transport_error(HttpError::InvalidContentType(kind))),
                None => Ok(Opened::new(Frames::<P>::of(response, plain, key))),
            }
        })
    }
}

/// How a body is encoded, where it is: no request asks for it.
fn encoding(response: &Response) -> Option<String> {
    let encoding = String::from_utf8_lossy(response.headers().get(header::CONTENT_ENCODING)?.as_bytes()).into_owned();
    (!encoding.trim().is_empty() && !encoding.trim().eq_ignore_ascii_case("identity")).then_some(encoding)
}

/// What a response is instead of the stream that was asked for. Some servers stream without naming a type.
fn not_a_stream(response: &Response, framing: Framing) -> Option<header::HeaderValue> {
    let kind = response.headers().get(header::CONTENT_TYPE)?;
    let is_stream = match framing {
        Framing::Sse => kind.as_bytes().to_ascii_lowercase().starts_with(b"text/event-stream"),
        Framing::Ndjson | Framing::Whole => !kind.as_bytes().starts_with(b"text/html"),
    };
    (!is_stream).then(|| kind.clone())
}

/// The beginning of a body, as far as it comes soon, with `key` nowhere in it.
async fn beginning(response: Response, key: &str) -> String {
    if let Some(encoding) = encoding(&response) {
        return format!("its words are encoded as `{encoding}`, which was not asked for");
    }
    let mut bytes = Vec::new();
    let mut body = response.bytes_stream();
    let read = async {
        while let Some(Ok(chunk)) = body.next().await {
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
