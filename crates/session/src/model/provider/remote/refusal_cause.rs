//! Refusals that are due to the account or the model's settings, and neither to the conversation
//! nor to a temporary fault.

use super::error_message::Parsed;

/// Codes by which a provider refuses every request of an account, with any status.
/// `failed_precondition` is Gemini's, for a country or a plan.
const ACCOUNT: [&str; 14] = [
    "insufficient_quota",
    "insufficient_user_quota",
    "exceeded_current_quota_error",
    "accountquotaexceeded",
    "accountoverdueerror",
    "insufficient_balance",
    "credits_exhausted",
    "billing_hard_limit_reached",
    "billing_not_active",
    "account_deactivated",
    "arrearage",
    "invalid_api_key",
    "api_key_invalid",
    "failed_precondition",
];

/// Phrases with the same meaning, for errors without such a code.
const ACCOUNT_WORDS: [&str; 14] = [
    "credit balance is too low",
    "api key not valid",
    "api key expired",
    "incorrect api key",
    "key limit exceeded",
    "insufficient balance",
    "insufficient account balance",
    "account balance is insufficient",
    "spending limit",
    // "insufficient balance" and "in arrears", from providers in China.
    "余额不足",
    "欠费",
    "organization must be verified",
    "organization has been disabled",
    "user location is not supported",
];

/// Codes for a model that does not exist, or a field that it does not accept.
const SETTINGS: [&str; 10] = [
    "model_not_found",
    "model_not_exist",
    "model_not_available",
    "model_not_supported",
    "unsupported_model",
    "unknown_model",
    "invalid_model",
    "unsupported_parameter",
    "unsupported_value",
    "unknown_parameter",
];

/// Phrases with the same meaning.
const SETTINGS_WORDS: [&str; 22] = [
    "unsupported parameter",
    "unsupported_parameter",
    "unsupported value",
    "unrecognized request argument",
    "unknown parameter",
    "unknown name",
    "extra inputs are not permitted",
    "does not support tools",
    "does not support thinking",
    "does not support function",
    "calling is not supported",
    "reasoning_effort",
    "thinking budget",
    "budget 0 is invalid",
    // Errors of servers: vLLM, llama.cpp.
    "tool choice requires",
    "tools param requires",
    "model not exist",
    "model not found",
    "unknown model",
    "invalid model",
    "not a valid model",
    "no models loaded",
];

/// The first words in the path of a field that belongs to the conversation.
const CONVERSATION: [&str; 4] = ["message", "input", "content", "prompt"];

/// Fields that may begin one of Anthropic's messages.
const FIELDS: [&str; 11] = [
    "max_tokens",
    "model",
    "output_config",
    "stop_sequences",
    "stream",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];

/// Whether the provider refuses every request of this account.
pub(super) fn is_account(parsed: &Parsed<'_>, message: &str) -> bool {
    parsed.codes().iter().any(|code| ACCOUNT.contains(&code.as_str()))
        || has(message, &ACCOUNT_WORDS)
}

/// Whether the provider refuses the model's name or a setting, and not the conversation. If the
/// error names fields, they decide.
pub(super) fn is_settings(parsed: &Parsed<'_>, message: &str) -> bool {
    let mut fields = parsed.fields();
    fields.extend(path(message));
    if !fields.is_empty() {
        return !fields.iter().any(|field| CONVERSATION.iter().any(|of| field.starts_with(of)));
    }
    let model = message.starts_with("The model ") && message.contains("does not exist");
    let code = parsed.codes().iter().any(|code| SETTINGS.contains(&code.as_str()));
    // A field of a message belongs to the conversation.
    (model || code || has(message, &SETTINGS_WORDS)) && !message.contains("messages")
}

/// The field that begins one of Anthropic's messages, as in `thinking.budget_tokens: too small`.
fn path(message: &str) -> Option<&str> {
    let (path, _) = message.split_once(": ")?;
    let first = path.split('.').next()?;
    FIELDS.contains(&first).then_some(path)
}

fn has(message: &str, words: &[&str]) -> bool {
    let message = message.to_ascii_lowercase();
    words.iter().any(|words| message.contains(words))
}
