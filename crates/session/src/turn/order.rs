//! The order of an answer's calls. They are judged in parallel, and reach their gates in sequence.
//! Calls of tools that require it also run in sequence.

use tokio::sync::oneshot;

/// A call's place in the order. Dropping it lets the next call proceed.
pub(super) struct Order {
    before: Option<oneshot::Receiver<()>>,
    _after: oneshot::Sender<()>,
}

impl Order {
    /// An endless sequence of places, the first one first.
    pub(super) fn places() -> impl Iterator<Item = Self> {
        let mut before = None;
        std::iter::repeat_with(move || {
            let (after, next) = oneshot::channel();
            Self { before: before.replace(next), _after: after }
        })
    }

    /// Waits until the place before this one is dropped: its call has reached its gate, or has
    /// ended.
    pub(super) async fn wait_for_earlier(&mut self) {
        if let Some(before) = self.before.take() {
            // The sender is dropped, and never sends.
            let _ = before.await;
        }
    }
}
