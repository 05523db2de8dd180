//! Recognises refusals that are caused by the account or the model's settings, and not by the
//! conversation or a temporary fault.

use super::error_message::ProviderErrorBody;

/// Codes by which a provider refuses every request of an account, with any status.
/// `failed_precondition` is Gemini's, for a country or a plan.
const ACCOUNT_CODES: [&str; 14] = [
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
const ACCOUNT_PHRASES: [&str; 14] = [
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
const SETTINGS_CODES: [&str; 10] = [
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
const SETTINGS_PHRASES: [&str; 22] = [
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

/// The prefixes of the paths of fields that belong to the conversation.
const CONVERSATION_PREFIXES: [&str; 4] = ["message", "input", "content", "prompt"];

/// Fields that may begin one of Anthropic's error messages.
const ANTHROPIC_FIELDS: [&str; 11] = [
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
pub(super) fn is_account(body: &ProviderErrorBody<'_>, message: &str) -> bool {
    body.codes().iter().any(|code| ACCOUNT_CODES.contains(&code.as_str()))
        || contains_any(message, &ACCOUNT_PHRASES)
}

/// Whether the provider refuses the model's name or a setting, and not the conversation. If the
/// error names fields, they decide.
pub(super) fn is_settings(body: &ProviderErrorBody<'_>, message: &str) -> bool {
    let mut fields = body.fields();
    fields.extend(leading_field(message));
    if !fields.is_empty() {
        return !fields
            .iter()
            .any(|field| CONVERSATION_PREFIXES.iter().any(|prefix| field.starts_with(prefix)));
    }
    let is_unknown_model = message.starts_with("The model ") && message.contains("does not exist");
    let has_code = body.codes().iter().any(|code| SETTINGS_CODES.contains(&code.as_str()));
    // A field of a message belongs to the conversation.
    (is_unknown_model || has_code || contains_any(message, &SETTINGS_PHRASES))
        && !message.contains("messages")
}

/// The field that begins one of Anthropic's error messages, as in
/// `thinking.budget_tokens: too small`.
fn leading_field(message: &str) -> Option<&str> {
    let (path, _) = message.split_once(": ")?;
    let first = path.split('.').next()?;
    ANTHROPIC_FIELDS.contains(&first).then_some(path)
}

fn contains_any(message: &str, phrases: &[&str]) -> bool {
    let message = message.to_ascii_lowercase();
    phrases.iter().any(|phrase| message.contains(phrase))
}
