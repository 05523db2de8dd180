//! What a model was given and gave, in tokens.

use std::fmt;
use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::output::is_zero;

/// Tokens used, by the provider's own count unless `estimated`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens of the request, cached ones included.
    pub input: u64,
    /// Those of the request that came from the provider's cache.
    #[serde(default)]
    pub cached: u64,
    /// Those of the request that the provider has put into its cache, where it counts them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_written: u64,
    /// Tokens of the answer, thoughts included.
    pub output: u64,
    /// What it cost, in millionths of the currency of the price that is configured for the model; nothing without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// Some of it is our own estimate, because the provider sent no count.
    #[serde(default)]
    pub estimated: bool,
}

/// How full the context of a session's model is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextFill {
    /// Tokens of the last request and its answer.
    pub tokens: u64,
    /// Tokens that a request may have; beyond, its oldest messages are left out.
    pub limit: u64,
}

/// What was left out of a request to a model, and how much was left in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryCut {
    /// Messages that were left out.
    pub messages: u64,
    /// Results of tools that were cut.
    pub results: u64,
    /// Tokens of what was left in, by our own count.
    pub tokens: u64,
    /// Tokens that a request may have.
    pub limit: u64,
    /// Lines of what was left in.
    pub lines: u64,
    /// Lines that a request may have.
    pub line_limit: u64,
    /// The limit that was reached.
    pub reached: HistoryLimit,
}

/// A limit of the conversation that a model is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HistoryLimit {
    /// `limits.max_history_lines`.
    Lines,
    /// `limits.max_history_tokens`.
    #[default]
    Tokens,
    /// The window of the model.
    Window,
}

impl fmt::Display for HistoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lines => "limits.max_history_lines",
            Self::Tokens => "limits.max_history_tokens",
            Self::Window => "the window of the model",
        })
    }
}

impl Usage {
    /// Our estimate for texts of these sizes in bytes: 2.5 bytes a token, the worst seen being 2.54.
    #[must_use]
    pub fn estimate(input_bytes: u64, output_bytes: u64) -> Self {
        let tokens = |bytes: u64| bytes.saturating_mul(2).div_ceil(5);
        Self { input: tokens(input_bytes), output: tokens(output_bytes), estimated: true, ..Self::default() }
    }

    /// Input and output together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        // Providers claim these, and imported logs.
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

    /// What a provider claims, and what a log says that was taken in, may be anything.
    #[test]
    fn counts_stop_where_they_end() {
        let most = Usage { input: u64::MAX, output: 1, cost: Some(u64::MAX), ..Usage::default() };
        let mut sum = most;
        sum += most;
        assert_eq!((sum.input, sum.output, sum.cost, sum.total()), (u64::MAX, 2, Some(u64::MAX), u64::MAX));
        assert_eq!((TurnId(u64::MAX).next(), ItemId(7).next()), (TurnId(u64::MAX), ItemId(8)));
        let mut ended = EndedProcesses { terminated: u32::MAX, killed: 1, left: Vec::new() };
        assert_eq!(ended.total(), u32::MAX);
        ended.add(ended.clone());
        assert_eq!((ended.terminated, ended.killed), (u32::MAX, 2));
    }
}
