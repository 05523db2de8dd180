//! Checks of a model's settings: each alone and in combination. A setting is never silently
//! ignored.

use holdpoint_common::ModelSettings;

use super::Provider;
use crate::model::ModelError;
use crate::model::provider::gemini::request::generation;

/// Checks that the provider supports all settings of its model.
///
/// # Errors
/// [`ModelError::Setup`] for the first setting, or combination of settings, that can't be used.
pub(super) fn check(
    provider: Provider,
    model: &str,
    settings: &ModelSettings,
) -> Result<(), ModelError> {
    let ModelSettings { thinking, effort, stream_options, max_tokens_field, max_output, .. } =
        settings;
    let generation = (provider == Provider::Gemini).then(|| generation(model)).flatten();
    let is_before = |version: (u32, u32)| generation.is_some_and(|generation| generation < version);
    let (wrong, hint) = match provider {
        Provider::OpenAi if thinking.is_some() => (
            "chat completions do not support `thinking`",
            "use `effort`, or set the server's own field in `extra_body`",
        ),
        Provider::OpenAi if max_tokens_field.is_some() && max_output.is_none() => (
            "`max_tokens_field` has no effect without `max_output`",
            "set `max_output`, or remove `max_tokens_field`",
        ),
        Provider::Anthropic
            if thinking
                .zip(*max_output)
                .is_some_and(|(thinking, max_output)| thinking >= max_output) =>
        {
            (
                "`thinking` leaves nothing of `max_output` for the answer: thoughts count towards it",
                "raise `max_output`, or lower `thinking`",
            )
        }
        Provider::Anthropic | Provider::Gemini | Provider::Ollama if stream_options.is_some() => {
            ("only openai/… supports `stream_options`", "remove it")
        }
        Provider::Anthropic | Provider::Gemini | Provider::Ollama if max_tokens_field.is_some() => {
            ("only openai/… supports `max_tokens_field`", "remove it")
        }
        Provider::Gemini | Provider::Ollama if thinking.is_some() && effort.is_some() => {
            ("`thinking` and `effort` exclude each other", "remove one of them")
        }
        Provider::Gemini if thinking.is_some() && is_before((2, 5)) => {
            ("models before 2.5 do not support `thinking`", "remove `thinking`")
        }
        Provider::Gemini if effort.is_some() && is_before((3, 0)) => {
            ("models before 3 do not support `effort`", "use `thinking`, a number of tokens")
        }
        _ => return Ok(()),
    };
    let message = format!("[models.\"{provider}/{model}\"] can't be used: {wrong}");
    Err(ModelError::Setup { message, hint: hint.to_owned() })
}
