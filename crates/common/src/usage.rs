//! The tokens that model requests use, and the limits of their context.

use std::fmt;
use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::output::is_zero;

/// The tokens and the cost of model requests, as counted by the provider unless `estimated` is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Number of request tokens, including cached ones.
    pub input: u64,
    /// Number of request tokens that were read from the provider's cache.
    #[serde(default)]
    pub cached: u64,
    /// Number of request tokens that were written to the provider's cache; 0 if the provider does
    /// not count them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_written: u64,
    /// Number of answer tokens, including thoughts.
    pub output: u64,
    /// Cost in millionths of the currency of the model's configured price; absent without a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// Whether some numbers are estimates, because the provider sent none.
    #[serde(default)]
    pub estimated: bool,
}

/// The fill level of the context of a session's model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextFill {
    /// Number of tokens of the last request and its answer.
    pub tokens: u64,
    /// Maximum number of tokens of a request. Beyond it, the oldest messages are left out.
    pub limit: u64,
}

/// The parts that were left out of a model request, and the size of the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryCut {
    /// Number of messages that were left out.
    pub messages: u64,
    /// Number of tool results that were shortened.
    pub results: u64,
    /// Number of tokens that were sent, by Holdpoint's estimate.
    pub tokens: u64,
    /// Maximum number of tokens of a request.
    pub limit: u64,
    /// Number of lines that were sent.
    pub lines: u64,
    /// Maximum number of lines of a request.
    pub line_limit: u64,
    /// Limit that was reached.
    pub reached: HistoryLimit,
}

/// A limit of the conversation that is sent to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HistoryLimit {
    /// The limit `limits.max_history_lines` of the configuration.
    Lines,
    /// The limit `limits.max_history_tokens` of the configuration.
    #[default]
    Tokens,
    /// The context window of the model.
    Window,
}

impl fmt::Display for HistoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lines => "limits.max_history_lines",
            Self::Tokens => "limits.max_history_tokens",
            Self::Window => "the model's window",
        })
    }
}

impl Usage {
    /// Estimates the tokens of texts from their sizes in bytes: one token per 2.5 bytes. The lowest
    /// measured ratio is 2.54 bytes per token.
    #[must_use]
    pub fn estimate(input_bytes: u64, output_bytes: u64) -> Self {
        let tokens = |bytes: u64| bytes.saturating_mul(2).div_ceil(5);
        Self {
            input: tokens(input_bytes),
            output: tokens(output_bytes),
            estimated: true,
            ..Self::default()
        }
    }

    /// Returns the request and answer tokens together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        // Providers and imported logs may claim any number, so the sums saturate.
        let both = self.cost.zip(other.cost).map(|(left, right)| left.saturating_add(right));
        *self = Self {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            cache_written: self.cache_written.saturating_add(other.cache_written),
            output: self.output.saturating_add(other.output),
            cost: both.or(self.cost).or(other.cost),
            estimated: self.estimated || other.estimated,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{ItemId, TurnId};
    use crate::turn::EndedProcesses;

    #[test]
    fn counts_saturate() {
        let maximum =
            Usage { input: u64::MAX, output: 1, cost: Some(u64::MAX), ..Usage::default() };
        let mut sum = maximum;
        sum += maximum;
        assert_eq!(
            (sum.input, sum.output, sum.cost, sum.total()),
            (u64::MAX, 2, Some(u64::MAX), u64::MAX)
        );
        assert_eq!((TurnId(u64::MAX).next(), ItemId(7).next()), (TurnId(u64::MAX), ItemId(8)));
        let mut ended = EndedProcesses { terminated: u32::MAX, killed: 1, not_ended: Vec::new() };
        assert_eq!(ended.total(), u32::MAX);
        ended.add(ended.clone());
        assert_eq!((ended.terminated, ended.killed), (u32::MAX, 2));
    }
}
