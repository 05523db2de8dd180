//! Settings of single models: window, limits, provider switches and prices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::usage::Usage;

/// The settings of one model. Every key is optional.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelSettings {
    /// Maximum number of tokens of a request and its answer together. Requests stay within it.
    /// Ollama receives it as `num_ctx`. Default: none, so that only `limits.max_history_tokens`
    /// bounds requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Maximum number of tokens of one answer. Default: the provider's own maximum; for Anthropic,
    /// which requires a value, 32,000 but at most half of the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// Number of tokens that the model may use for thinking. Anthropic, Gemini from 2.5 on and
    /// Ollama support it; for Ollama, only 0 or more than 0 makes a difference. Default: the model
    /// decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<u64>,
    /// Amount of thinking, as a word of the provider such as `low`, `medium` or `high`. OpenAI
    /// receives it as `reasoning_effort`, Anthropic as `output_config.effort`, Gemini as
    /// `thinkingLevel` and Ollama as `think`. Gemini and Ollama accept it only without `thinking`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Fields that are added to the body of every request. A field with the same name is replaced;
    /// objects are merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_body: Option<Map<String, Value>>,
    /// Ids of tool calls in requests: `provider` or `own`. Default: `provider`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_ids: Option<ToolIds>,
    /// Whether requests have `stream_options`, with which the server counts tokens. Only for OpenAI
    /// and compatible servers. Default: `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_options: Option<bool>,
    /// Name of the field for `max_output`, which must be set as well. Only for OpenAI and
    /// compatible servers. Default: `max_completion_tokens` for OpenAI itself, `max_tokens` for
    /// other servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens_field: Option<MaxTokensField>,
    /// Whether the model takes images, which results of tools can have. Default: `true` for
    /// Anthropic, Gemini and OpenAI itself, `false` for Ollama and for servers that are compatible
    /// with OpenAI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// Prices of the model. Default: none, so that no cost is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// The ids of tool calls in requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolIds {
    /// The ids that the model gave. A call without an id gets one of nine letters and digits.
    Provider,
    /// Ids of nine letters and digits for all calls.
    Own,
}

/// The name of the request field with the maximum number of tokens of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    /// The request field `max_tokens`.
    MaxTokens,
    /// The request field `max_completion_tokens`.
    MaxCompletionTokens,
}

/// The prices of a model for one million tokens, in any currency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Price {
    /// Price of request tokens.
    #[schemars(range(min = 0.0))]
    pub input: f64,
    /// Price of request tokens that were read from the provider's cache. Default: `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub cached: Option<f64>,
    /// Price of request tokens that were written to the provider's cache. Default: 1.25 times
    /// `input`, as at Anthropic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub cache_written: Option<f64>,
    /// Price of answer tokens, including thoughts.
    #[schemars(range(min = 0.0))]
    pub output: f64,
}

impl ModelSettings {
    /// Checks that the settings do not contradict each other, and that prices are finite and not negative.
    ///
    /// # Errors
    /// A description of the first fault.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let fills_window = |tokens: Option<u64>| {
            self.window.zip(tokens).is_some_and(|(window, tokens)| tokens >= window)
        };
        if fills_window(self.max_output) {
            return Err("`max_output` must be less than `window`");
        }
        if fills_window(self.thinking) {
            return Err("`thinking` must be less than `window`");
        }
        let prices_of = |price: &Price| {
            [Some(price.input), price.cached, price.cache_written, Some(price.output)]
        };
        let mut prices = self.price.iter().flat_map(prices_of).flatten();
        if !prices.all(|price| price.is_finite() && price >= 0.0) {
            return Err("a price must be a number of at least 0");
        }
        Ok(())
    }
}

/// Default price of a token that is written to a cache, as a multiple of `input`.
const CACHE_WRITTEN_FACTOR: f64 = 1.25;

impl Price {
    /// Returns the cost of `usage`, in millionths of the currency.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> u64 {
        let cached = usage.cached.min(usage.input);
        let written = usage.cache_written.min(usage.input - cached);
        let cost = |tokens: u64, price: f64| tokens as f64 * price;
        let millionths = cost(usage.input - cached - written, self.input)
            + cost(cached, self.cached.unwrap_or(self.input))
            + cost(written, self.cache_written.unwrap_or(self.input * CACHE_WRITTEN_FACTOR))
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
        assert_eq!(price.cost(&usage), 1_800_000 + 120_000 + 150_000);
        let price = Price { cached: None, ..price };
        assert_eq!(price.cost(&usage), 3_000_000 + 150_000);
        let usage =
            Usage { input: 1_000_000, cached: 400_000, cache_written: 100_000, ..Usage::default() };
        let price = Price { cached: Some(0.3), ..price };
        assert_eq!(price.cost(&usage), 1_500_000 + 120_000 + 375_000);
        assert_eq!(
            Price { cache_written: Some(6.0), ..price }.cost(&usage),
            1_500_000 + 120_000 + 600_000
        );
    }
}
