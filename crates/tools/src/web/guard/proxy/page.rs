//! The page that the proxy sends in place of one it could not deliver.

use http_body_util::{Either, Full};
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue,
};
use hyper::{Response, StatusCode};

use super::Body;
use crate::web::guard::verdict::RefusalReason;

/// The header field that marks the proxy's own answers, with the value `refused` or `unreachable`.
/// The proxy removes it from the answers of servers.
pub(in crate::web) const GUARD_HEADER: HeaderName = HeaderName::from_static("holdpoint-guard");

/// The page for a host that was refused or did not answer.
pub(super) fn refusal_page(host: &str, why: &RefusalReason) -> Response<Body> {
    let (status, kind) = match why {
        RefusalReason::NotAnAddress { .. } => (StatusCode::BAD_REQUEST, "refused"),
        RefusalReason::NoSuchHost
        | RefusalReason::Lookup { .. }
        | RefusalReason::Unreachable { .. } => (StatusCode::BAD_GATEWAY, "unreachable"),
        _ => (StatusCode::FORBIDDEN, "refused"),
    };
    let heading = if kind == "refused" { "Blocked by Holdpoint" } else { "No answer" };
    let text = format!(
        "<!doctype html><title>{heading}</title><h1>{heading}</h1><p>{}: {}.</p>\n",
        escaped(host),
        escaped(&why.to_string())
    );
    let mut page = Response::new(Either::Right(Full::new(text.into())));
    *page.status_mut() = status;
    let fields = page.headers_mut();
    fields.insert(GUARD_HEADER, HeaderValue::from_static(kind));
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    // The browser attributes this page to the host, so it must not be cached or run anything.
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    fields.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    page
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
