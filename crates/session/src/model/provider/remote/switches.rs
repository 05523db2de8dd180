//! Settings of a model that only some providers know. None is accepted and ignored.

use holdpoint_common::ModelSettings;
use serde_json::Value;

use super::Provider;
use crate::model::ModelError;

/// Whether the provider can be told what is set for its model.
///
/// # Errors
/// [`ModelError::Setup`] for the first setting that it can't.
pub(super) fn check(provider: Provider, model: &str, settings: &ModelSettings) -> Result<(), ModelError> {
    let ModelSettings { thinking, effort, stream_options, max_tokens_field, .. } = settings;
    let (setting, hint) = match provider {
        Provider::OpenAi if thinking.is_some() => {
            ("thinking", "chat completions have no budget of tokens for it; use `effort`, or `extra_body`")
        }
        Provider::Anthropic | Provider::Gemini | Provider::Ollama if stream_options.is_some() => {
            ("stream_options", "leave it out; only openai/… has it")
        }
        Provider::Anthropic | Provider::Gemini | Provider::Ollama if max_tokens_field.is_some() => {
            ("max_tokens_field", "leave it out; only openai/… has it")
        }
        Provider::Gemini | Provider::Ollama if thinking.is_some() && effort.is_some() => {
            ("both `thinking` and `effort`", "leave one of them out")
        }
        _ => return Ok(()),
    };
    let setting = if setting.contains('`') { setting.to_owned() } else { format!("`{setting}`") };
    Err(ModelError::Setup {
        message: format!("{provider} takes no {setting}, which is set under [models.\"{provider}/{model}\"]"),
        hint: hint.to_owned(),
    })
}

/// Adds the fields of `extra`, and those of the objects in it; what is there already is replaced.
pub(super) fn merge(body: &mut Value, extra: &Value) {
    match (body, extra) {
        (Value::Object(body), Value::Object(extra)) => {
            for (key, value) in extra {
                merge(body.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (body, extra) => *body = extra.clone(),
    }
}
