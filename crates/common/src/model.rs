//! What is known of a model: its window, its bounds, its price.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::usage::Usage;

/// What the user says of a model. Every key may be left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelSettings {
    /// Tokens that a request and its answer may have together. Requests stay within it; Ollama is told it as `num_ctx`.
    /// Without it, `limits.max_history_tokens` alone holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The most tokens of one answer. Without it, the provider's own bound; for Anthropic, who wants one, 32,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// Tokens that the model may think for: Anthropic and Gemini before 3; for Ollama, only whether it is above 0 counts.
    /// Without it, the model decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<u64>,
    /// How much the model is to think, in its provider's words: `low`, `medium`, `high`, … Sent as `reasoning_effort` to
    /// OpenAI, `output_config.effort` to Anthropic, `thinkingLevel` to Gemini and `think` to Ollama.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Fields that are added to the body of every request; those of the same name are replaced, objects are merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_body: Option<Map<String, Value>>,
    /// The names of tool calls in requests. Without it, `provider`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_ids: Option<ToolIds>,
    /// Whether requests have `stream_options`, by which the server counts tokens: OpenAI alone. Without it, they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_options: Option<bool>,
    /// The field that `max_output` is sent in: OpenAI alone. Without it, `max_completion_tokens` at OpenAI itself and
    /// `max_tokens` at servers that are compatible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens_field: Option<MaxTokensField>,
    /// What it costs. Without it, no cost is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// The names of tool calls in requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolIds {
    /// As the model has named them; a call that it has not named gets a name of nine letters and digits.
    Provider,
    /// All by names of nine letters and digits.
    Own,
}

/// The field that the most tokens of an answer are sent in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    /// `max_tokens`.
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
}

/// What a model costs, each for a million tokens, in any one currency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Price {
    /// Of the request.
    #[schemars(range(min = 0.0))]
    pub input: f64,
    /// Of the request that came from the provider's cache. Without it, as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub cached: Option<f64>,
    /// Of the request that the provider has put into its cache. Without it, 1.25 times `input`, as Anthropic has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub cache_written: Option<f64>,
    /// Of the answer, thoughts included.
    #[schemars(range(min = 0.0))]
    pub output: f64,
}

impl ModelSettings {
    /// Whether they can all be true.
    ///
    /// # Errors
    /// What can't.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let beyond = |tokens: Option<u64>| self.window.zip(tokens).is_some_and(|(window, tokens)| tokens >= window);
        let prices = |price: &Price| [Some(price.input), price.cached, price.cache_written, Some(price.output)];
        let prices = self.price.iter().flat_map(prices);
        if beyond(self.max_output) {
            return Err("`max_output` leaves nothing of the `window` for a request");
        }
        if beyond(self.thinking) {
            return Err("`thinking` leaves nothing of the `window` for a request");
        }
        if !prices.flatten().all(|price| price.is_finite() && price >= 0.0) {
            return Err("a price is a number, 0 or more");
        }
        Ok(())
    }
}

/// What a token costs that goes into a cache, where no price is set: so many times one that does not.
const CACHE_WRITTEN: f64 = 1.25;

impl Price {
    /// What this usage costs, in millionths of the currency.
    #[must_use]
    pub fn of(&self, usage: &Usage) -> u64 {
        let cached = usage.cached.min(usage.input);
        let written = usage.cache_written.min(usage.input - cached);
        let cost = |tokens: u64, price: f64| tokens as f64 * price;
        let millionths = cost(usage.input - cached - written, self.input)
            + cost(cached, self.cached.unwrap_or(self.input))
            + cost(written, self.cache_written.unwrap_or(self.input * CACHE_WRITTEN))
            + cost(usage.output, self.output);
        millionths.round().max(0.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_e6_a_price_makes_a_cost() {
        let price = Price { input: 3.0, cached: Some(0.3), cache_written: None, output: 15.0 };
        let usage = Usage { input: 1_000_000, cached: 400_000, output: 10_000, ..Usage::default() };
        assert_eq!(price.of(&usage), 1_800_000 + 120_000 + 150_000);
        let price = Price { cached: None, ..price };
        assert_eq!(price.of(&usage), 3_000_000 + 150_000);
        let usage = Usage { input: 1_000_000, cached: 400_000, cache_written: 100_000, ..Usage::default() };
        let price = Price { cached: Some(0.3), ..price };
        assert_eq!(price.of(&usage), 1_500_000 + 120_000 + 375_000);
        assert_eq!(Price { cache_written: Some(6.0), ..price }.of(&usage), 1_500_000 + 120_000 + 600_000);
    }
}
