//! Faults that a provider reports inside a stream. A fault is `{"error": …}` alone, beside a choice
//! or in it, an event named `error`, or a bare message with a code; each of these may be in a list.
//! The provider's message is kept, and its code says whether the fault is temporary.

use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{error, error_message};
use crate::model::ModelError;

/// The data of an event named `error`, in a form that [`read`] recognises as a fault.
pub(super) fn from_error_event(data: String) -> String {
    match serde_json::from_str(&data).map(error_message::unwrap_list) {
        Ok(value) if fault_part(&value).is_some() => value.to_string(),
        Ok(value) => json!({ "error": value }).to_string(),
        Err(_) => json!({ "error": data }).to_string(),
    }
}

/// The fields that may report a fault, not yet parsed.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    choices: Option<&'a RawValue>,
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
}

impl Envelope<'_> {
    /// Whether the frame may report a fault, and has to be parsed as a whole.
    fn may_report(&self) -> bool {
        self.error.is_some()
            || self.message.is_some_and(|message| message.get().starts_with('"'))
            || self.choices.is_some_and(|choices| choices.get().contains(ERROR))
            || self.r#type.is_some_and(|kind| kind.get() == ERROR)
    }
}

const ERROR: &str = "\"error\"";
const MESSAGE: &str = "\"message\"";

/// The fault that a frame reports, without the secrets; `None` if the frame reports none.
pub(super) fn read(frame: &str, secrets: &[&str]) -> Option<ModelError> {
    // Most frames contain neither, and need no parsing.
    if !frame.contains(ERROR) && !frame.contains(MESSAGE) {
        return None;
    }
    let frame = match frame.trim_start().starts_with('[') {
        true => serde_json::from_str::<Vec<&RawValue>>(frame).ok()?.first()?.get(),
        false => frame,
    };
    serde_json::from_str::<Envelope<'_>>(frame).ok().filter(Envelope::may_report)?;
    let frame: Value = serde_json::from_str(frame).ok()?;
    let fault = fault_part(&frame)?;
    let body = json!({ "error": fault }).to_string();
    Some(match status(fault) {
        Some(status) => error::refused(status, &HeaderMap::new(), &body, secrets),
        None => error::failed(&body, secrets),
    })
}

/// The keys of frames with other content than a fault.
const CONTENT_KEYS: [&str; 4] = ["choices", "candidates", "message", "done"];

/// The part of a frame that reports a fault. In every protocol, a frame with a text as its
/// `message` reports one.
fn fault_part(frame: &Value) -> Option<&Value> {
    let has_details = |part: &&Value| match part {
        Value::Object(fields) => fields.values().any(|value| !value.is_null()),
        part => part.as_str().is_some_and(|words| !words.is_empty()),
    };
    let parts = [frame.get("error"), frame.pointer("/choices/0/error")];
    let bare_message = || frame["message"].is_string().then_some(frame);
    // An error without details counts only if the frame has no other content.
    let is_error =
        frame["type"] == "error" || frame.get("error").is_some_and(|error| !error.is_null());
    let bare_error =
        || (is_error && CONTENT_KEYS.iter().all(|key| frame[key].is_null())).then_some(frame);
    parts.into_iter().flatten().find(has_details).or_else(bare_message).or_else(bare_error)
}

/// The HTTP status that a fault has as its code, as a number or as text.
fn status(fault: &Value) -> Option<StatusCode> {
    let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
    let code = ["code", "status", "status_code"].into_iter().find_map(|key| number(&fault[key]))?;
    let status = StatusCode::from_u16(u16::try_from(code).ok()?).ok()?;
    (status.is_client_error() || status.is_server_error()).then_some(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_l2_an_error_without_a_word_is_a_fault_unless_the_frame_says_something_else() {
        let faults = [
            r#"{"error":{}}"#,
            r#"{"error":false}"#,
            r#"{"error":{"message":null}}"#,
            r#"{"type":"error"}"#,
        ];
        for fault in faults {
            assert!(matches!(read(fault, &[]), Some(ModelError::Failed { .. })), "{fault}");
        }
        for none in [
            r#"{"error":null}"#,
            r#"{"error":{},"choices":[{"delta":{"content":"a"}}]}"#,
            r#"{"error":{"code":null},"message":{"content":"a"}}"#,
            r#"{"type":"message_start","message":{"content":[]}}"#,
            r#"{"delta":{"text":"\"error\""}}"#,
        ] {
            assert_eq!(read(none, &[]), None, "{none}");
        }
    }
}
