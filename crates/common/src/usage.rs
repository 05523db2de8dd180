//! What a model was given and gave, in tokens.

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

impl Usage {
    /// Our estimate for texts of these sizes in bytes: 2.5 bytes a token, the worst seen being 2.54.
    #[must_use]
    pub fn estimate(input_bytes: u64, output_bytes: u64) -> Self {
        let tokens = |bytes: u64| (bytes * 2).div_ceil(5);
        Self { input: tokens(input_bytes), output: tokens(output_bytes), estimated: true, ..Self::default() }
    }

    /// Input and output together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input + self.output
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.cached += other.cached;
        self.cache_written += other.cache_written;
        self.output += other.output;
        self.cost = self.cost.zip(other.cost).map(|(left, right)| left + right).or(self.cost).or(other.cost);
        self.estimated |= other.estimated;
    }
}
