//! A rule that can't be kept.

use thiserror::Error;

/// A rule that can't be kept.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the rule `{rule}` can't be kept: {why}")]
#[non_exhaustive]
pub struct PolicyError {
    /// The rule, as it is written.
    pub rule: String,
    /// What is wrong with it, and what to write instead.
    pub why: String,
}
