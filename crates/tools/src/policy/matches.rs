//! Whether a rule speaks of something.

/// Whether a rule speaks of something. The later outweighs the earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    /// It does not.
    No,
    /// It may: not all is known.
    Maybe,
    /// It does.
    Yes,
}
