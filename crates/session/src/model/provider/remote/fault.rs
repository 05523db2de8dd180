//! Faults that a provider tells of inside a stream, in all their forms: `{"error": …}` alone, beside a choice or in it,
//! an event named `error`, or a message and a code with nothing around them. Its own words are kept, and its code says
//! whether it may pass.

use reqwest::StatusCode;
use rig_core::error::ProviderError;
use serde_json::{Value, json};

/// The name of an event that tells of a fault, whatever its data are.
pub(super) const EVENT: &str = "error";

/// The data of such an event, so that [`read`] knows them for a fault.
pub(super) fn named(data: String) -> String {
    match serde_json::from_str::<Value>(&data) {
        Ok(value) if told(&value).is_some() => data,
        Ok(value) => json!({ "error": value }).to_string(),
        Err(_) => json!({ "error": data }).to_string(),
    }
}

/// The fault that a frame tells of, with `key` nowhere in it; nothing if it is another.
pub(super) fn read(frame: &str, key: &str) -> Option<ProviderError> {
    // Most frames tell of none, and need not be read for it.
    if !["\"error\"", "\"message\""].iter().any(|key| frame.contains(key)) {
        return None;
    }
    let frame: Value = serde_json::from_str(frame).ok()?;
    let told = told(&frame)?;
    let body = super::error::hidden(json!({ "error": told }).to_string(), key);
    Some(match status(told) {
        Some(status) => ProviderError::from_http_response(status, body),
        None => ProviderError::from_provider_body(body),
    })
}

/// What a frame says of a fault. No wire has a text as the `message` of a frame that tells of none.
fn told(frame: &Value) -> Option<&Value> {
    let says = |told: &&Value| match told {
        Value::Object(fields) => fields.values().any(|value| !value.is_null()),
        told => told.as_str().is_some_and(|words| !words.is_empty()),
    };
    let places = [frame.get("error"), frame.pointer("/choices/0/error")];
    places.into_iter().flatten().find(says).or_else(|| frame["message"].is_string().then_some(frame))
}

/// The HTTP status that a fault has as its code: a number, or one in a text.
fn status(told: &Value) -> Option<StatusCode> {
    let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
    let code = ["code", "status", "status_code"].into_iter().find_map(|key| number(&told[key]))?;
    let status = StatusCode::from_u16(u16::try_from(code).ok()?).ok()?;
    (status.is_client_error() || status.is_server_error()).then_some(status)
}
