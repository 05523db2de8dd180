//! What providers and HTTP report, in our words.

use std::error::Error;
use std::time::{Duration, SystemTime};

use reqwest::StatusCode;
use reqwest::header::{self, DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;

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

/// The connection could not be made, or broke.
pub(super) fn connection(error: &reqwest::Error) -> ModelError {
    // The address that reqwest puts first is known, and hides the cause. Where nobody answers, it is the cause.
    let message = chain(error.source().unwrap_or(error));
    let place = Some(error).filter(|error| error.is_connect()).and_then(reqwest::Error::url);
    let place = place.map(|url| format!(" ({})", url.origin().ascii_serialization())).unwrap_or_default();
    ModelError::Connection { message: format!("{message}{place}") }
}

/// The provider refused the request with this status and body.
pub(super) fn refused(status: StatusCode, headers: &HeaderMap, body: &str, key: &str) -> ModelError {
    let message = words(body, key);
    ModelError::Refused {
        status: status.as_u16(),
        message: if message.is_empty() { status.canonical_reason().unwrap_or_default().into() } else { message },
        retry_after: retry_after(headers),
    }
}

/// The provider reported a fault without a status, in this body: its code says whether it may pass.
pub(super) fn failed(body: &str, key: &str) -> ModelError {
    let message = words(body, key);
    let code = code(body).unwrap_or_default().to_ascii_lowercase();
    if PASSING.iter().any(|word| code.contains(word)) {
        ModelError::Unavailable { message }
    } else {
        ModelError::Failed { message }
    }
}

/// The machine's code of a fault.
fn code(body: &str) -> Option<String> {
    let body: Value = serde_json::from_str(body).ok()?;
    let texts = ["code", "status", "type"].into_iter().filter_map(|field| body["error"][field].as_str());
    texts.map(str::to_owned).find(|code| !code.is_empty())
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

/// What a provider says in a body, without the key: the message in it, or its beginning.
fn words(body: &str, key: &str) -> String {
    let parsed: Option<Value> = serde_json::from_str(body).ok();
    let message = parsed.as_ref().and_then(told);
    // Hidden before it is cut, for half a key is no key that could be found.
    let mut message = hidden(message.unwrap_or(body).trim().to_owned(), key);
    message.truncate(message.floor_char_boundary(BODY_SHOWN));
    message
}

/// What is said to be wrong.
fn told(body: &Value) -> Option<&str> {
    let error = &body["error"];
    [&error["message"], error, &error["detail"], &body["message"], &body["detail"]].into_iter().find_map(Value::as_str)
}

/// Whether a body is an answer: from a server that does not know of streams.
pub(super) fn is_answer(body: &str) -> bool {
    let parsed: Option<Value> = serde_json::from_str(body).ok();
    parsed.is_some_and(|body| body.is_object() && body["error"].is_null() && told(&body).is_none())
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
