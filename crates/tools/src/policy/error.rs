//! The error for an invalid rule.

use thiserror::Error;

/// A policy rule that is invalid, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid rule `{rule}`: {why}")]
#[non_exhaustive]
pub struct PolicyError {
    /// The rule as the user wrote it.
    pub rule: String,
    /// The mistake in the rule, and a rule to write instead.
    pub why: String,
}
