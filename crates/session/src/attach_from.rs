//! The start of an attachment, and the bound of its queue.

/// Where an attachment begins, and how much may wait for its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttachFrom {
    /// The number of the last event that the client has. Only later events are sent.
    pub after: u64,
    /// The maximum number of past facts to receive, which are the newest ones. `None` means all.
    pub limit: Option<usize>,
    /// How many bytes of events may wait for the client. With more, its stream ends. `None` means
    /// the bounds of the output buffer, in bytes and in number, so that the client takes no memory
    /// of its own. A daemon ignores this.
    pub room: Option<usize>,
}

impl AttachFrom {
    /// Attaches from the session's first event on.
    #[must_use]
    pub fn start() -> Self {
        Self::default()
    }

    /// Attaches after the event with this number.
    #[must_use]
    pub fn after(after: u64) -> Self {
        Self { after, ..Self::default() }
    }

    /// Attaches for live events only, without the past.
    #[must_use]
    pub fn now() -> Self {
        Self { limit: Some(0), ..Self::default() }
    }

    /// Gives the attachment room of its own.
    #[must_use]
    pub fn with_room(self, bytes: usize) -> Self {
        Self { room: Some(bytes), ..self }
    }
}
