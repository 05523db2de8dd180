//! Refusals whose cause is neither the conversation nor a passing fault, but the account or the model's settings.

use super::words::Parsed;

/// Codes with which a provider says that it takes no request from this account, with any status.
/// `failed_precondition`: Gemini, of a country or a plan.
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

/// The same in words, where the code says nothing of it.
const ACCOUNT_WORDS: [&str; 12] = [
    "credit balance is too low",
    "api key not valid",
    "api key expired",
    "incorrect api key",
    "key limit exceeded",
    "insufficient balance",
    "insufficient account balance",
    "account balance is insufficient",
    "spending limit",
    "organization must be verified",
    "organization has been disabled",
    "user location is not supported",
];

/// Codes for a model that does not exist, or a field that it does not take.
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

/// The same in words.
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
    // Of the server: vLLM, llama.cpp.
    "tool choice requires",
    "tools param requires",
    "model not exist",
    "model not found",
    "unknown model",
    "invalid model",
    "not a valid model",
    "no models loaded",
];

/// The first words of a field's path that is a part of the conversation.
const CONVERSATION: [&str; 4] = ["message", "input", "content", "prompt"];

/// Fields with which Anthropic begins a message about them.
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
    parsed.codes().iter().any(|code| ACCOUNT.contains(&code.as_str())) || has(message, &ACCOUNT_WORDS)
}

/// Whether the model's name or a setting is refused, and not the conversation. Fields that are named decide it.
pub(super) fn is_settings(parsed: &Parsed<'_>, message: &str) -> bool {
    let mut fields = parsed.fields();
    fields.extend(path(message));
    if !fields.is_empty() {
        return !fields.iter().any(|field| CONVERSATION.iter().any(|of| field.starts_with(of)));
    }
    let model = message.starts_with("The model ") && message.contains("does not exist");
    let code = parsed.codes().iter().any(|code| SETTINGS.contains(&code.as_str()));
    // A field of a message is the conversation's.
    (model || code || has(message, &SETTINGS_WORDS)) && !message.contains("messages")
}

/// The field that a message of Anthropic's begins with, as in `thinking.budget_tokens: too small`.
fn path(message: &str) -> Option<&str> {
    let (path, _) = message.split_once(": ")?;
    let first = path.split('.').next()?;
    FIELDS.contains(&first).then_some(path)
}

fn has(message: &str, words: &[&str]) -> bool {
    let message = message.to_ascii_lowercase();
    words.iter().any(|words| message.contains(words))
}
