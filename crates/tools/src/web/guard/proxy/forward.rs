//! Plain-HTTP requests, forwarded to the host in their URI.

use std::net::SocketAddr;

use http_body_util::Either;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{
    CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION,
    TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::uri::PathAndQuery;
use hyper::{Request, Response, Uri, Version};
use hyper_util::rt::TokioIo;

use super::Body;
use super::dial::dial;
use super::page::GUARD_HEADER;
use crate::web::guard::verdict::RefusalReason;

/// Header fields that apply to one connection only and are not forwarded (RFC 9110, 7.6.1).
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Sends a request to its host and returns the answer. Each request opens a connection of its own:
/// plain-HTTP hosts are mostly nearby.
pub(super) async fn forward(
    mut request: Request<Incoming>,
    addresses: &[SocketAddr],
) -> Result<Response<Body>, RefusalReason> {
    let stream = dial(addresses).await?;
    strip(request.headers_mut());
    // `Host` is rebuilt from the URI, because the judgement was about the URI's host.
    let host = request.uri().authority().and_then(|authority| {
        let port = authority.port().map(|port| format!(":{port}")).unwrap_or_default();
        HeaderValue::try_from(format!("{}{port}", authority.host())).ok()
    });
    request.headers_mut().insert(HOST, host.unwrap_or_else(|| HeaderValue::from_static("")));
    request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    let path =
        request.uri().path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::from(path);
    *request.version_mut() = Version::HTTP_11;

    let unreachable = |error: hyper::Error| RefusalReason::Unreachable { error: error.to_string() };
    let mut client = http1::Builder::new();
    let (mut sender, connection) = client
        .max_headers(super::MAX_FIELDS)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(unreachable)?;
    // Ends with the answer, or when the answer is no longer read.
    tokio::spawn(connection);
    let mut response = sender.send_request(request).await.map_err(unreachable)?;
    strip(response.headers_mut());
    // Only the proxy's own pages may have this field: a server must not pass for the guard.
    response.headers_mut().remove(GUARD_HEADER);
    Ok(response.map(Either::Left))
}

/// Removes the hop-by-hop fields and the fields that `Connection` names.
fn strip(fields: &mut HeaderMap) {
    let named: Vec<HeaderName> = fields
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP_BY_HOP.into_iter().chain(named) {
        fields.remove(name);
    }
}
