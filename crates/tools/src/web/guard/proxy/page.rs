//! The page that says why another one is not there.

use http_body_util::{Either, Full};
use hyper::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

use super::Body;
use crate::web::guard::verdict::Why;

/// A field that answers of ours have and no others: it is taken from those of servers. Says `refused` or
/// `unreachable`.
pub(in crate::web) const GUARD: HeaderName = HeaderName::from_static("holdpoint-guard");

/// The page for a host that is not let through, or does not answer.
pub(super) fn of(host: &str, why: &Why) -> Response<Body> {
    let (status, kind) = match why {
        Why::NotAnAddress { .. } => (StatusCode::BAD_REQUEST, "refused"),
        Why::NoSuchHost | Why::Lookup { .. } | Why::Unreachable { .. } => (StatusCode::BAD_GATEWAY, "unreachable"),
        _ => (StatusCode::FORBIDDEN, "refused"),
    };
    let heading = if kind == "refused" { "Holdpoint does not go there" } else { "No answer" };
    let text = format!(
        "<!doctype html><title>{heading}</title><h1>{heading}</h1><p>{}: {}.</p>\n",
        escaped(host),
        escaped(&why.to_string())
    );
    let mut page = Response::new(Either::Right(Full::new(text.into())));
    *page.status_mut() = status;
    let fields = page.headers_mut();
    fields.insert(GUARD, HeaderValue::from_static(kind));
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    // It is the host's own page to the browser, which must not keep it, and has nothing to do in its name.
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    fields.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    page
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
