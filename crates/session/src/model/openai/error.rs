//! What rig and HTTP report, in our words.

use std::error::Error;
use std::time::Duration;

use rig_core::ProviderResponseError;
use rig_core::error::ProviderError;
use rig_core::http_client;
use rig_reqwest::reqwest;
use serde_json::Value;

use crate::model::ModelError;

/// Bytes of a provider's words that are kept where they are no message in JSON.
const BODY_SHOWN: usize = 500;

/// `error`, with `key` nowhere in it.
pub(super) fn model_error(error: &ProviderError, key: &str) -> ModelError {
    let hide = |message: String| if key.is_empty() { message } else { message.replace(key, "***") };
    match error {
        ProviderError::Truncated => ModelError::Connection { message: "it ended before the answer did".into() },
        ProviderError::Http(error) => http_error(error, hide),
        ProviderError::ProviderResponse(response) | ProviderError::InvalidAuthentication(response) => {
            refusal(response, hide)
        }
        ProviderError::Provider(message) => ModelError::Failed { message: hide(message.clone()) },
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

fn http_error(error: &http_client::Error, hide: impl Fn(String) -> String) -> ModelError {
    match error {
        http_client::Error::InvalidContentType(kind) => ModelError::Malformed {
            message: hide(format!("it is no event stream but `{}`", kind.to_str().unwrap_or("?"))),
        },
        http_client::Error::Instance(cause) => {
            let cause: &(dyn Error + 'static) = &**cause;
            // The address reqwest puts first is known and only hides the cause.
            let cause = match cause.downcast_ref::<reqwest::Error>().and_then(Error::source) {
                Some(source) => source,
                None => cause,
            };
            ModelError::Connection { message: hide(chain(cause)) }
        }
        other => ModelError::Connection { message: hide(chain(other)) },
    }
}

fn refusal(response: &ProviderResponseError, hide: impl Fn(String) -> String) -> ModelError {
    let message = hide(words(&response.body));
    match response.status {
        Some(status) if !status.is_success() => ModelError::Refused {
            status: status.as_u16(),
            message: if message.is_empty() { status.canonical_reason().unwrap_or_default().into() } else { message },
            retry_after: retry_after(response),
        },
        _ => ModelError::Failed { message },
    }
}

/// When to come back: `retry-after-ms`, or `retry-after` in seconds. A date counts as none.
fn retry_after(response: &ProviderResponseError) -> Option<Duration> {
    let header =
        |name: &str| -> Option<f64> { response.headers.as_ref()?.get(name)?.to_str().ok()?.trim().parse().ok() };
    let seconds = header("retry-after-ms").map(|ms| ms / 1000.0).or_else(|| header("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// What a provider says in a body: the message in it, or its beginning.
fn words(body: &str) -> String {
    let parsed: Option<Value> = serde_json::from_str(body).ok();
    let message = parsed.as_ref().and_then(|value| {
        let error = &value["error"];
        [&error["message"], error, &value["message"], &value["detail"]].into_iter().find_map(Value::as_str)
    });
    let message = message.unwrap_or(body).trim();
    message[..message.floor_char_boundary(BODY_SHOWN)].to_owned()
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
