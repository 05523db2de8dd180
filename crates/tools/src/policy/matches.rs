//! How surely a rule matches an act.

/// Whether a rule matches an act. A later variant outweighs an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    /// The rule does not match.
    No,
    /// The rule may match: a part of the act is unknown.
    Maybe,
    /// The rule matches.
    Yes,
}
