//! Where an attachment begins.

/// Where an attachment begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttachFrom {
    /// Only what comes after this number: the last one the client has.
    pub after: u64,
    /// Of the past, at most this many facts: the newest.
    pub limit: Option<usize>,
}

impl AttachFrom {
    /// Everything there is.
    #[must_use]
    pub fn start() -> Self {
        Self::default()
    }

    /// What comes after this number.
    #[must_use]
    pub fn after(after: u64) -> Self {
        Self { after, limit: None }
    }

    /// Nothing of the past.
    #[must_use]
    pub fn now() -> Self {
        Self { after: 0, limit: Some(0) }
    }
}
