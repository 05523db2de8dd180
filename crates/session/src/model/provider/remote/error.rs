//! What rig and HTTP report, in our words.

use std::error::Error;
use std::time::{Duration, SystemTime};

use reqwest::StatusCode;
use reqwest::header::{self, DATE, HeaderMap, RETRY_AFTER};
use rig_core::ProviderResponseError;
use rig_core::error::ProviderError;
use rig_core::http_client;
use serde_json::Value;

use crate::model::ModelError;

/// Bytes of a provider's words that are kept where they are no message in JSON.
const BODY_SHOWN: usize = 500;

/// `error`, with `key` nowhere in it.
pub(super) fn model_error(error: &ProviderError, key: &str) -> ModelError {
    let hide = |message: String| hidden(message, key);
    match error {
        ProviderError::Truncated => ModelError::Connection { message: "it ended before the answer did".into() },
        ProviderError::Http(error) => http_error(error, hide),
        ProviderError::ProviderResponse(response) | ProviderError::InvalidAuthentication(response) => {
            refusal(response, hide)
        }
        ProviderError::Provider(message) => ModelError::Failed { message: hide(message.clone()) },
        ProviderError::Response(message) => ModelError::Malformed { message: hide(message.clone()) },
        ProviderError::Request(_) | ProviderError::Url(_) | ProviderError::UnsupportedOption(_) => ModelError::Setup {
            message: hide(format!("the request can't be made: {}", chain(error))),
            hint: "look at the model's name and base URL".into(),
        },
        other => match other.provider_response() {
            Some(response) => refusal(response, hide),
            None => ModelError::Malformed { message: hide(chain(other)) },
        },
    }
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

fn http_error(error: &http_client::Error, hide: impl Fn(String) -> String) -> ModelError {
    match error {
        http_client::Error::InvalidContentType(kind) => ModelError::Malformed {
            message: hide(format!("it is no event stream but `{}`", kind.to_str().unwrap_or("?"))),
        },
        http_client::Error::Instance(cause) => {
            let cause: &(dyn Error + 'static) = &**cause;
            let sent = cause.downcast_ref::<reqwest::Error>();
            // The address that reqwest puts first is known, and hides the cause. Where nobody answers, it is the cause.
            let message = chain(sent.and_then(Error::source).unwrap_or(cause));
            let place = sent.filter(|error| error.is_connect()).and_then(reqwest::Error::url);
            let place = place.map(|url| format!(" ({})", url.origin().ascii_serialization())).unwrap_or_default();
            ModelError::Connection { message: hide(format!("{message}{place}")) }
        }
        other => ModelError::Connection { message: hide(chain(other)) },
    }
}

fn refusal(response: &ProviderResponseError, hide: impl Fn(String) -> String) -> ModelError {
    let message = words(&response.body, hide);
    match response.status {
        Some(status) if !status.is_success() => ModelError::Refused {
            status: status.as_u16(),
            message: if message.is_empty() { status.canonical_reason().unwrap_or_default().into() } else { message },
            retry_after: response.headers.as_ref().and_then(retry_after),
        },
        // In the middle of a stream there is no status; what a provider says of itself counts.
        _ if is_passing(response) => ModelError::Unavailable { message },
        _ => ModelError::Failed { message },
    }
}

/// Whether a provider says that it can't go on now, and could later.
fn is_passing(response: &ProviderResponseError) -> bool {
    let code = response.machine_code().unwrap_or_default().to_ascii_lowercase();
    let passing =
        ["overloaded", "rate_limit", "resource_exhausted", "unavailable", "server_error", "api_error", "timeout"];
    passing.iter().any(|word| code.contains(word))
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

/// What a provider says in a body, hidden: the message in it, or its beginning.
fn words(body: &str, hide: impl Fn(String) -> String) -> String {
    let parsed: Option<Value> = serde_json::from_str(body).ok();
    let message = parsed.as_ref().and_then(told);
    // Hidden before it is cut, for half a key is no key that could be found.
    let mut message = hide(message.unwrap_or(body).trim().to_owned());
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

/// What an answer without a byte is.
pub(super) fn empty(status: StatusCode) -> ProviderError {
    ProviderError::Response(format!("it is empty (HTTP {})", status.as_u16()))
}

/// What went wrong on the way.
pub(super) fn transport(error: reqwest::Error) -> ProviderError {
    ProviderError::from_transport_error(http_client::Error::instance(error))
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
