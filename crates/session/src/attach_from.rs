//! Where an attachment begins, and what may wait for it.

/// Where an attachment begins, and what may wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttachFrom {
    /// Only what comes after this number: the last one the client has.
    pub after: u64,
    /// Of the past, at most this many facts: the newest.
    pub limit: Option<usize>,
    /// Bytes of events that may wait for this client. `None`: as many, in bytes and in number, as the output buffer keeps,
    /// so that a client takes no memory of its own. More than may wait ends its stream. A daemon gives no room of its own.
    pub room: Option<usize>,
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
        Self { after, ..Self::default() }
    }

    /// Nothing of the past.
    #[must_use]
    pub fn now() -> Self {
        Self { limit: Some(0), ..Self::default() }
    }

    /// The same, with room of its own.
    #[must_use]
    pub fn with_room(self, bytes: usize) -> Self {
        Self { room: Some(bytes), ..self }
    }
}
