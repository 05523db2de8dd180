//! What providers and HTTP report, in our words.

use std::error::Error;
use std::time::{Duration, SystemTime};

use super::blame;
use super::client::Route;
use super::surrogates::unmarked;
use super::words::Parsed;
use crate::model::{ModelError, is_overflow};
use reqwest::StatusCode;
use reqwest::header::{self, DATE, HeaderMap, RETRY_AFTER};
use rustls::CertificateError;

/// The message of a fault that has none.
const NO_REASON: &str = "no reason given";

/// Codes with which a provider says that it can't go on now, and could later.
const PASSING: [&str; 7] =
    ["overloaded", "rate_limit", "resource_exhausted", "unavailable", "server_error", "api_error", "timeout"];

/// `error`, with `key` nowhere in it, and no marks of halves of characters.
pub(super) fn without_key(mut error: ModelError, key: &str) -> ModelError {
    match &mut error {
        ModelError::Setup { message, .. }
        | ModelError::Refused { message, .. }
        | ModelError::Barred { message, .. }
        | ModelError::Misconfigured { message, .. }
        | ModelError::Connection { message }
        | ModelError::Malformed { message }
        | ModelError::Unavailable { message }
        | ModelError::Failed { message } => *message = hidden(unmarked(message).into_owned(), key),
    }
    error
}

/// A message with the key nowhere in it.
pub(super) fn hidden(message: String, key: &str) -> String {
    if key.is_empty() || !message.contains(key) { message } else { message.replace(key, "***") }
}

/// The beginning of a text that may be cut anywhere, with neither the key nor the head of one at its end.
pub(super) fn hidden_beginning(text: String, key: &str) -> String {
    let mut text = hidden(text, key);
    let heads = key.char_indices().map(|(at, _)| &key[..at]).filter(|head| !head.is_empty());
    if let Some(head) = heads.rev().find(|head| text.ends_with(head)) {
        text.truncate(text.len() - head.len());
    }
    text
}

/// Words with which a proxy's refusal of a user or a password is reported: of HTTP, then of SOCKS.
const LOCKED: [&str; 4] = [
    "proxy authorization required",
    "credentials not accepted",
    "does not support user/pass authentication",
    "implements authentication incorrectly",
];

/// The connection could not be made, or broke. A certificate that is not trusted, a server that does not speak TLS, or a
/// proxy that wants another user, is an error of the set-up: it does not pass.
pub(super) fn connection(error: &reqwest::Error, route: &Route) -> ModelError {
    // The address that reqwest puts first is known, and hides the cause. Where nobody answers, it is the cause.
    let words = chain(error.source().unwrap_or(error));
    let through = route.proxy.as_ref().map(|proxy| format!("through the proxy {proxy}"));
    if let Some(hint) = tls_fault(error, route) {
        let through = through.map(|through| format!(" ({through})")).unwrap_or_default();
        return ModelError::Setup { message: format!("no secure connection to the model: {words}{through}"), hint };
    }
    if let Some(proxy) = &route.proxy
        && LOCKED.iter().any(|locked| words.contains(locked))
    {
        return locked(proxy);
    }
    let place = Some(error).filter(|error| error.is_connect()).and_then(reqwest::Error::url);
    let place = place.map(|url| url.origin().ascii_serialization());
    let way: Vec<_> = place.into_iter().chain(through).collect();
    let way = if way.is_empty() { String::new() } else { format!(" ({})", way.join(", ")) };
    ModelError::Connection { message: format!("{words}{way}") }
}

/// A proxy refuses the user and the password, or wants them.
pub(super) fn locked(proxy: &str) -> ModelError {
    ModelError::Setup {
        message: format!("the proxy {proxy} does not accept the user and the password, or their absence"),
        hint: "put them into its address, percent-encoded: http://user:password@proxy:3128".into(),
    }
}

/// The hint for a fault of TLS while connecting; `None` for any other fault.
fn tls_fault(error: &reqwest::Error, route: &Route) -> Option<String> {
    if !error.is_connect() {
        return None;
    }
    let mut causes = std::iter::successors(error.source(), |cause| cause_of(*cause));
    let hint = match causes.find_map(|cause| cause.downcast_ref::<rustls::Error>())? {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) if !route.authorities.is_empty() => {
            let named = &route.authorities;
            let hint = "add the server's certificate authority to";
            return Some(format!("{hint} {named}: with it, the system's authorities are not trusted"));
        }
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "add the server's certificate authority to the system's, or name it in SSL_CERT_FILE"
        }
        rustls::Error::InvalidCertificate(_) => "look at the base URL, the server's certificate and the clock",
        rustls::Error::InvalidMessage(_) => "if the server speaks plain HTTP, begin its base URL with http://",
        rustls::Error::AlertReceived(_) | rustls::Error::PeerIncompatible(_) => {
            "look at the versions of TLS that the server speaks"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// The cause of an error. An I/O error names the cause of the one it wraps, and not that one.
fn cause_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

/// The provider refused the request with this status and body.
pub(super) fn refused(status: StatusCode, headers: &HeaderMap, body: &str, key: &str) -> ModelError {
    let parsed = Parsed::of(body);
    let mut message = parsed.words(key);
    if message.is_empty() {
        message = status.canonical_reason().unwrap_or(NO_REASON).to_owned();
    }
    if status == StatusCode::PAYMENT_REQUIRED || blame::is_account(&parsed, &message) {
        return ModelError::Barred { status: Some(status.as_u16()), message };
    }
    let (status, retry_after) = (status.as_u16(), retry_after(headers));
    if matches!(status, 400 | 422) && !is_overflow(&message) && blame::is_settings(&parsed, &message) {
        return ModelError::Misconfigured { status, message };
    }
    ModelError::Refused { status, message, retry_after }
}

/// The provider reported a fault without a status, in this body: its code says whether it may pass.
pub(super) fn failed(body: &str, key: &str) -> ModelError {
    let parsed = Parsed::of(body);
    let mut message = parsed.words(key);
    if message.is_empty() {
        message = NO_REASON.to_owned();
    }
    if blame::is_account(&parsed, &message) {
        return ModelError::Barred { status: None, message };
    }
    let code = parsed.codes().into_iter().next().unwrap_or_default();
    if PASSING.iter().any(|word| code.contains(word)) {
        ModelError::Unavailable { message }
    } else {
        ModelError::Failed { message }
    }
}

/// When to come back: `retry-after-ms`, or `retry-after` in seconds or as a date by the provider's own clock. What
/// is neither counts as nothing said.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |value: &header::HeaderValue| value.to_str().ok().map(|text| text.trim().to_owned());
    let retry_after = headers.get(RETRY_AFTER).and_then(text);
    let number = |text: &str| text.parse::<f64>().ok();
    let ms = headers.get("retry-after-ms").and_then(text).and_then(|text| number(&text)).map(|ms| ms / 1000.0);
    if let Some(seconds) = ms.or_else(|| number(retry_after.as_deref()?)) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = |text: &str| httpdate::parse_http_date(text).ok();
    let then = date(&retry_after?)?;
    let now = headers.get(DATE).and_then(text).and_then(|text| date(&text)).unwrap_or_else(SystemTime::now);
    Some(then.duration_since(now).unwrap_or_default())
}

/// An error and its causes, each said once.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !said.contains(&more) {
            said.push_str(": ");
            said.push_str(&more);
        }
        cause = error.source();
    }
    said
}

/// An answer without a byte.
pub(super) fn empty(status: StatusCode) -> ModelError {
    ModelError::Malformed { message: format!("it is empty (HTTP {})", status.as_u16()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_h1_a_key_that_a_cut_goes_through_leaves_no_head() {
        for (text, left) in [("a sk-sk-1", "a ***"), ("a sk-sk-", "a "), ("a sk-", "a "), ("a sk-sk", "a "), ("a", "a")]
        {
            assert_eq!(hidden_beginning(text.into(), "sk-sk-1"), left);
        }
        assert_eq!(hidden_beginning("a".into(), ""), "a");
    }
}
