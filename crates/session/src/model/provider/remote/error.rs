//! What providers and HTTP report, in our words.

use std::error::Error;
use std::time::{Duration, SystemTime};

use reqwest::StatusCode;
use reqwest::header::{self, DATE, HeaderMap, RETRY_AFTER};
use rustls::CertificateError;
use serde_json::Value;

use super::client::Route;
use crate::model::ModelError;

/// Bytes of a provider's words that are kept where they are no message in JSON.
const BODY_SHOWN: usize = 500;

/// Codes with which a provider says that it can't go on now, and could later.
const PASSING: [&str; 7] =
    ["overloaded", "rate_limit", "resource_exhausted", "unavailable", "server_error", "api_error", "timeout"];

/// `error`, with `key` nowhere in it.
pub(super) fn without_key(mut error: ModelError, key: &str) -> ModelError {
    match &mut error {
        ModelError::Setup { message, .. }
        | ModelError::Refused { message, .. }
        | ModelError::Barred { message, .. }
        | ModelError::Connection { message }
        | ModelError::Malformed { message }
        | ModelError::Unavailable { message }
        | ModelError::Failed { message } => *message = hidden(std::mem::take(message), key),
    }
    error
}

/// A message with the key nowhere in it.
fn hidden(message: String, key: &str) -> String {
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

/// Codes with which a provider says that it takes no request from this account, whatever its status is.
const BARRED: [&str; 9] = [
    "insufficient_quota",
    "exceeded_current_quota_error",
    "insufficient_balance",
    "billing_hard_limit_reached",
    "billing_not_active",
    "account_deactivated",
    "arrearage",
    "invalid_api_key",
    "api_key_invalid",
];

/// The same in words, where the code says nothing of it: Anthropic and Gemini.
const BARRED_WORDS: [&str; 4] =
    ["credit balance is too low", "api key not valid", "api key expired", "insufficient balance"];

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
        message = status.canonical_reason().unwrap_or("no reason given").to_owned();
    }
    let words = message.to_ascii_lowercase();
    let barred = parsed.codes().any(|code| BARRED.contains(&&*code))
        || BARRED_WORDS.iter().any(|barred| words.contains(barred))
        || status == StatusCode::PAYMENT_REQUIRED;
    let (status, retry_after) = (status.as_u16(), retry_after(headers));
    if barred { ModelError::Barred { status, message } } else { ModelError::Refused { status, message, retry_after } }
}

/// The provider reported a fault without a status, in this body: its code says whether it may pass.
pub(super) fn failed(body: &str, key: &str) -> ModelError {
    let parsed = Parsed::of(body);
    let message = parsed.words(key);
    let code = parsed.codes().next().unwrap_or_default();
    if PASSING.iter().any(|word| code.contains(word)) {
        ModelError::Unavailable { message }
    } else {
        ModelError::Failed { message }
    }
}

/// The body of a refusal: JSON, or whatever else a server or a proxy before it writes.
struct Parsed<'a> {
    body: &'a str,
    json: Option<Value>,
}

impl<'a> Parsed<'a> {
    fn of(body: &'a str) -> Self {
        let json = serde_json::from_str(body).ok().map(|json| match json {
            // Gemini puts its error into a list where a stream was asked for.
            Value::Array(mut errors) if !errors.is_empty() => errors.swap_remove(0),
            json => json,
        });
        Self { body, json }
    }

    /// The machine's codes of the fault, in lower case.
    fn codes(&self) -> impl Iterator<Item = String> {
        let error = self.json.as_ref().map(|json| if json["error"].is_object() { &json["error"] } else { json });
        let texts = ["code", "status", "type"].into_iter().filter_map(move |field| error?[field].as_str());
        texts.filter(|code| !code.is_empty()).map(str::to_ascii_lowercase)
    }

    /// The message in one line and without the key: the provider's, the title of a page, or the beginning of the body.
    fn words(&self, key: &str) -> String {
        let message = self.json.as_ref().and_then(|json| {
            let message = told(json)?;
            // A router quotes its provider.
            let raw = json["error"]["metadata"]["raw"].as_str().map(|raw| Parsed::of(raw).words(key));
            Some(raw.map_or_else(|| message.to_owned(), |raw| format!("{message}: {raw}")))
        });
        let page = || self.body.trim_start().starts_with('<').then(|| page(self.body));
        let message = message.or_else(page).unwrap_or_else(|| self.body.to_owned());
        // Hidden before it is cut, for half a key is no key that could be found.
        let message = hidden(message, key);
        let mut line = message.split_whitespace().collect::<Vec<_>>().join(" ");
        line.truncate(line.floor_char_boundary(BODY_SHOWN));
        line
    }
}

/// The words of a page in HTML: its title, or all that is no tag.
fn page(html: &str) -> String {
    let lower = html.to_ascii_lowercase();
    let title = lower.find("<title").and_then(|at| {
        let begin = at + lower[at..].find('>')? + 1;
        let end = begin + lower[begin..].find('<')?;
        Some(html[begin..end].trim()).filter(|title| !title.is_empty())
    });
    title.map(str::to_owned).unwrap_or_else(|| {
        let texts = html.split('<').map(|tag| tag.split_once('>').map_or(tag, |(_, text)| text));
        texts.collect::<Vec<_>>().join(" ")
    })
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

/// What is said to be wrong.
fn told(body: &Value) -> Option<&str> {
    let error = &body["error"];
    let places =
        [&error["message"], error, &error["detail"], &body["message"], &body["detail"], &body["detail"][0]["msg"]];
    places.into_iter().find_map(Value::as_str)
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
