//! The conversion of errors of providers and HTTP into [`ModelError`]s.

use std::error::Error;
use std::time::{Duration, SystemTime};

use super::client::Route;
use super::error_message::ProviderErrorBody;
use super::refusal_cause;
use super::surrogates::unmarked;
use crate::model::{ModelError, is_overflow};
use reqwest::StatusCode;
use reqwest::header::{self, DATE, HeaderMap, RETRY_AFTER};
use rustls::CertificateError;

/// The message for a fault without one.
const NO_REASON: &str = "no reason given";

/// Codes by which a provider says that it can't continue now, but may later.
const TEMPORARY_CODES: [&str; 7] = [
    "overloaded",
    "rate_limit",
    "resource_exhausted",
    "unavailable",
    "server_error",
    "api_error",
    "timeout",
];

/// Removes the secrets and the marks of half characters from the message of `error`.
pub(super) fn without_secrets(mut error: ModelError, secrets: &[&str]) -> ModelError {
    match &mut error {
        ModelError::Setup { message, .. }
        | ModelError::Refused { message, .. }
        | ModelError::Barred { message, .. }
        | ModelError::Misconfigured { message, .. }
        | ModelError::Connection { message }
        | ModelError::Malformed { message }
        | ModelError::Unavailable { message }
        | ModelError::Agent { message }
        | ModelError::Failed { message } => {
            *message = mask_secrets(unmarked(message).into_owned(), secrets)
        }
    }
    error
}

/// Replaces the secrets in a message, such as the key. Empty ones are ignored.
pub(super) fn mask_secrets(mut message: String, secrets: &[&str]) -> String {
    // One secret may be part of another, so the longest goes first.
    let mut secrets = secrets.to_vec();
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    for secret in secrets {
        if !secret.is_empty() && message.contains(secret) {
            message = message.replace(secret, "***");
        }
    }
    message
}

/// The beginning of a text that may be cut anywhere, without the secrets and without a beginning of
/// one at its end.
pub(super) fn masked_beginning(text: String, secrets: &[&str]) -> String {
    let mut text = mask_secrets(text, secrets);
    let head = |secret: &&str| {
        let ends = secret.char_indices().map(|(at, _)| at).filter(|at| *at > 0);
        ends.rev().find(|at| text.ends_with(&secret[..*at]))
    };
    if let Some(bytes) = secrets.iter().filter_map(head).max() {
        text.truncate(text.len() - bytes);
    }
    text
}

/// Phrases by which a proxy's refusal of the user or the password is reported: first for HTTP, then
/// for SOCKS.
const PROXY_AUTH_PHRASES: [&str; 4] = [
    "proxy authorization required",
    "credentials not accepted",
    "does not support user/pass authentication",
    "implements authentication incorrectly",
];

/// The error for a connection that could not be made, or that broke. It is [`ModelError::Setup`]
/// where a retry would not help: if the certificate is not trusted, the server does not use TLS, or
/// the proxy rejects the user and password, or requires them.
pub(super) fn connection(error: &reqwest::Error, route: &Route) -> ModelError {
    // reqwest puts the known URL first, which hides the cause. If connecting failed, the address is
    // added after the cause.
    let words = chain(error.source().unwrap_or(error));
    let through = route.proxy.as_ref().map(|proxy| format!("through the proxy {proxy}"));
    if let Some(hint) = tls_fault(error, route) {
        let through = through.map(|through| format!(" ({through})")).unwrap_or_default();
        return ModelError::Setup {
            message: format!("no secure connection to the model: {words}{through}"),
            hint,
        };
    }
    if let Some(proxy) = &route.proxy
        && PROXY_AUTH_PHRASES.iter().any(|phrase| words.contains(phrase))
    {
        return proxy_auth_error(proxy);
    }
    let url = Some(error).filter(|error| error.is_connect()).and_then(reqwest::Error::url);
    let server = url.map(|url| url.origin().ascii_serialization());
    let details: Vec<_> = server.into_iter().chain(through).collect();
    let details =
        if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
    ModelError::Connection { message: format!("{words}{details}") }
}

/// The error for a proxy that refuses the user and the password, or requires them.
pub(super) fn proxy_auth_error(proxy: &str) -> ModelError {
    ModelError::Setup {
        message: format!("the proxy {proxy} rejects the user and password, or requires them"),
        hint: "put the user and password into its URL, percent-encoded: http://user:password@proxy:3128".into(),
    }
}

/// The hint for a fault of TLS while connecting; `None` for any other fault.
fn tls_fault(error: &reqwest::Error, route: &Route) -> Option<String> {
    if !error.is_connect() {
        return None;
    }
    let mut causes = std::iter::successors(error.source(), |cause| cause_of(*cause));
    let hint = match causes.find_map(|cause| cause.downcast_ref::<rustls::Error>())? {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)
            if !route.authorities.is_empty() =>
        {
            let named = &route.authorities;
            let hint = "add the server's certificate authority to";
            return Some(format!("{hint} {named}, which replaces the system's authorities"));
        }
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "add the server's certificate authority to the system's, or name it in SSL_CERT_FILE"
        }
        rustls::Error::InvalidCertificate(_) => {
            "check the base URL, the server's certificate and the clock"
        }
        rustls::Error::InvalidMessage(_) => {
            "if the server speaks plain HTTP, begin its base URL with http://"
        }
        rustls::Error::AlertReceived(_) | rustls::Error::PeerIncompatible(_) => {
            "check which versions of TLS the server supports"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// The cause of an error. For an I/O error, the error that it wraps, which its `source` skips.
fn cause_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

/// The error for a request that the provider refused with this status and body.
pub(super) fn refused(
    status: StatusCode,
    headers: &HeaderMap,
    body: &str,
    secrets: &[&str],
) -> ModelError {
    let error_body = ProviderErrorBody::parse(body);
    let mut message = error_body.message(secrets);
    if message.is_empty() {
        message = status.canonical_reason().unwrap_or(NO_REASON).to_owned();
    }
    if status == StatusCode::PAYMENT_REQUIRED || refusal_cause::is_account(&error_body, &message) {
        return ModelError::Barred { status: Some(status.as_u16()), message };
    }
    let (status, retry_after) = (status.as_u16(), retry_after(headers));
    if matches!(status, 400 | 422)
        && !is_overflow(&message)
        && refusal_cause::is_settings(&error_body, &message)
    {
        return ModelError::Misconfigured { status, message };
    }
    ModelError::Refused { status, message, retry_after }
}

/// The error for a fault without a status that the provider reported in this body. The code says
/// whether it is temporary.
pub(super) fn failed(body: &str, secrets: &[&str]) -> ModelError {
    let error_body = ProviderErrorBody::parse(body);
    let mut message = error_body.message(secrets);
    if message.is_empty() {
        message = NO_REASON.to_owned();
    }
    if refusal_cause::is_account(&error_body, &message) {
        return ModelError::Barred { status: None, message };
    }
    let code = error_body.codes().into_iter().next().unwrap_or_default();
    if TEMPORARY_CODES.iter().any(|word| code.contains(word)) {
        ModelError::Unavailable { message }
    } else {
        ModelError::Failed { message }
    }
}

/// How long to wait before a retry: `retry-after-ms`, or `retry-after` in seconds or as a date by
/// the provider's own clock. Any other value is ignored.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |value: &header::HeaderValue| value.to_str().ok().map(|text| text.trim().to_owned());
    let retry_after = headers.get(RETRY_AFTER).and_then(text);
    let number = |text: &str| text.parse::<f64>().ok();
    let seconds = headers
        .get("retry-after-ms")
        .and_then(text)
        .and_then(|text| number(&text))
        .map(|ms| ms / 1000.0);
    if let Some(seconds) = seconds.or_else(|| number(retry_after.as_deref()?)) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = |text: &str| httpdate::parse_http_date(text).ok();
    let retry_at = date(&retry_after?)?;
    let now = headers
        .get(DATE)
        .and_then(text)
        .and_then(|text| date(&text))
        .unwrap_or_else(SystemTime::now);
    Some(retry_at.duration_since(now).unwrap_or_default())
}

/// An error and its causes, without repetitions.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// The error for an answer without a byte.
pub(super) fn empty(status: StatusCode) -> ModelError {
    ModelError::Malformed { message: format!("it is empty (HTTP {})", status.as_u16()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_h1_a_key_that_a_cut_goes_through_leaves_no_head() {
        for (text, left) in [
            ("a sk-sk-1", "a ***"),
            ("a sk-sk-", "a "),
            ("a sk-", "a "),
            ("a sk-sk", "a "),
            ("a", "a"),
        ] {
            assert_eq!(masked_beginning(text.into(), &["sk-sk-1", ""]), left);
            assert_eq!(masked_beginning(text.into(), &["pass", "sk-sk-1"]), left);
        }
        assert_eq!(masked_beginning("a".into(), &[""]), "a");
    }

    #[test]
    fn a_secret_inside_another_one_leaves_no_part_of_it() {
        for secrets in [["abc", "xabcx"], ["xabcx", "abc"]] {
            assert_eq!(mask_secrets("xabcx, abc".into(), &secrets), "***, ***");
        }
    }
}
