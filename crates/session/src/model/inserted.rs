//! Texts that this program inserts into a conversation, as user messages or inside them.

/// The text for the model after an answer that broke off, so that it continues.
pub const CONTINUE: &str =
    "[Your answer was cut off here: the connection was lost. Continue exactly where it ended.]";

/// The text between a prompt without an answer, because its turn was cut or failed, and the next
/// prompt.
pub const UNANSWERED: &str = "[The turn ended here, before you answered.]";

/// The text in place of a prompt that a provider refused.
pub const PROMPT_LEFT_OUT: &str = "[A message from the user is left out here: the provider refused the request that contained it.]";

/// The beginning of a message with results of calls that are sent as text.
pub const RESULTS: &str = "[Results of the tool calls above]";

/// Whether a user message is a prompt, and not results of calls or the text after a broken answer.
pub(crate) fn is_prompt(text: &str) -> bool {
    text != CONTINUE && !is_results(text)
}

/// Whether a user message contains results of calls instead of a prompt.
pub(crate) fn is_results(text: &str) -> bool {
    text.starts_with(RESULTS)
}
