//! Settings of a model: sent in the provider's form, or refused if the provider has none.

use holdpoint_common::Config;
use holdpoint_session::model::{Catalog, ModelError};
use holdpoint_tests::model_answer::{ask, hello};
use holdpoint_tests::model_server::{ModelServer, Reply, Wire};
use serde_json::{Value, json};

/// The model with this name and these settings, at the server `url`.
fn model_with_settings(
    wire: Wire,
    name: &str,
    settings: &str,
    url: &str,
) -> Result<std::sync::Arc<dyn holdpoint_session::model::Model>, ModelError> {
    let provider = wire.provider();
    let config = format!(
        "[models.'{provider}/{name}']\n{settings}\n[providers.{provider}]\napi_key = 'k'\nbase_url = '{url}'"
    );
    Catalog::new(&Config::parse(&config).unwrap(), |_| None).get(&format!("{provider}/{name}"))
}

/// The body of a request with these settings.
async fn body(wire: Wire, settings: &str) -> Value {
    let server = ModelServer::start();
    server.reply(Reply::text(["ok"]));
    ask(&*model_with_settings(wire, "scripted", settings, &server.url(wire)).unwrap(), hello())
        .await;
    server.assert_no_violations();
    server.request(0).body
}

#[tokio::test]
async fn m_e6_settings_of_a_model_are_sent() {
    let thinking = "window = 8192\nmax_output = 4000\nthinking = 2000";
    let extra =
        "extra_body = { top_p = 0.5, options = { seed = 7 }, generationConfig = { topK = 3 } }";
    for (wire, settings, path, value) in [
        (Wire::OpenAi, "max_output = 4000", "/max_tokens", json!(4000)),
        (
            Wire::OpenAi,
            "max_output = 4000\nmax_tokens_field = 'max_completion_tokens'",
            "/max_tokens",
            json!(null),
        ),
        (
            Wire::OpenAi,
            "max_output = 4000\nmax_tokens_field = 'max_completion_tokens'",
            "/max_completion_tokens",
            json!(4000),
        ),
        (Wire::OpenAi, "", "/stream_options", json!({"include_usage": true})),
        (Wire::OpenAi, "stream_options = false", "/stream_options", json!(null)),
        (Wire::OpenAi, "", "/reasoning_effort", json!(null)),
        (Wire::OpenAi, "effort = 'high'", "/reasoning_effort", json!("high")),
        (Wire::OpenAi, extra, "/top_p", json!(0.5)),
        (
            Wire::OpenAi,
            "extra_body = { stream_options = { x = 1 } }",
            "/stream_options",
            json!({"include_usage": true, "x": 1}),
        ),
        (Wire::Anthropic, thinking, "/max_tokens", json!(4000)),
        (Wire::Anthropic, thinking, "/thinking", json!({"type": "enabled", "budget_tokens": 2000})),
        (Wire::Anthropic, "thinking = 0", "/thinking", json!({"type": "disabled"})),
        // Sent as set, however few tokens are left beside the thoughts.
        (Wire::Anthropic, "max_output = 2001\nthinking = 2000", "/max_tokens", json!(2001)),
        (Wire::Anthropic, "effort = 'low'", "/output_config", json!({"effort": "low"})),
        (Wire::Anthropic, extra, "/top_p", json!(0.5)),
        (Wire::Gemini, thinking, "/generationConfig/maxOutputTokens", json!(4000)),
        (
            Wire::Gemini,
            thinking,
            "/generationConfig/thinkingConfig",
            json!({"includeThoughts": true, "thinkingBudget": 2000}),
        ),
        (
            Wire::Gemini,
            "effort = 'low'",
            "/generationConfig/thinkingConfig",
            json!({"includeThoughts": true, "thinkingLevel": "low"}),
        ),
        (
            Wire::Gemini,
            "thinking = 0",
            "/generationConfig/thinkingConfig",
            json!({"includeThoughts": false, "thinkingBudget": 0}),
        ),
        (Wire::Gemini, extra, "/generationConfig/topK", json!(3)),
        (Wire::Ollama, thinking, "/options", json!({"num_ctx": 8192, "num_predict": 4000})),
        (Wire::Ollama, thinking, "/think", json!(true)),
        (Wire::Ollama, "thinking = 0", "/think", json!(false)),
        (Wire::Ollama, "effort = 'medium'", "/think", json!("medium")),
        (Wire::Ollama, extra, "/options/seed", json!(7)),
    ] {
        let body = body(wire, settings).await;
        assert_eq!(
            body.pointer(path).unwrap_or(&Value::Null),
            &value,
            "{wire:?} {settings} {path}: {body}"
        );
    }
}

#[test]
fn m_e6_a_setting_that_the_provider_lacks_is_a_setup_error() {
    for (wire, settings, words) in [
        (Wire::OpenAi, "thinking = 2000", "chat completions do not support `thinking`"),
        (Wire::OpenAi, "max_tokens_field = 'max_tokens'", "no effect without `max_output`"),
        (
            Wire::Anthropic,
            "thinking = 9000\nmax_output = 4000",
            "`thinking` leaves nothing of `max_output`",
        ),
        (
            Wire::Anthropic,
            "thinking = 4000\nmax_output = 4000",
            "`thinking` leaves nothing of `max_output`",
        ),
        (Wire::Anthropic, "stream_options = false", "only openai/… supports `stream_options`"),
        (
            Wire::Gemini,
            "max_tokens_field = 'max_tokens'",
            "only openai/… supports `max_tokens_field`",
        ),
        (
            Wire::Ollama,
            "max_tokens_field = 'max_tokens'",
            "only openai/… supports `max_tokens_field`",
        ),
        (
            Wire::Gemini,
            "thinking = 1\neffort = 'low'",
            "`thinking` and `effort` exclude each other",
        ),
        (
            Wire::Ollama,
            "thinking = 1\neffort = 'low'",
            "`thinking` and `effort` exclude each other",
        ),
    ] {
        refused(wire, "scripted", settings, words);
    }
    refused(
        Wire::Gemini,
        "gemini-2.0-flash",
        "thinking = 1",
        "models before 2.5 do not support `thinking`",
    );
    refused(
        Wire::Gemini,
        "gemini-2.5-pro",
        "effort = 'low'",
        "models before 3 do not support `effort`",
    );
}

#[track_caller]
fn refused(wire: Wire, name: &str, settings: &str, words: &str) {
    {
        let Err(ModelError::Setup { message, hint }) =
            model_with_settings(wire, name, settings, "http://127.0.0.1:9")
        else {
            panic!("{wire:?} {settings} is accepted");
        };
        assert!(
            message.contains(words) && message.contains("[models.") && !hint.is_empty(),
            "{message} ({hint})"
        );
    }
}

#[test]
fn m_e6_an_unknown_setting_is_a_configuration_error() {
    for settings in
        ["max_tokens_field = 'tokens'", "tool_ids = 'mine'", "extra_body = 5", "effort = 5"]
    {
        let config = format!("[models.'openai/x']\n{settings}");
        assert!(Config::parse(&config).is_err(), "{settings}");
    }
}
