//! The order of an answer's calls: they are judged side by side, and come to their gates one after the other. Those of
//! tools that say so also run one after the other.

use tokio::sync::oneshot;

/// A call's place in the order. Dropped, it lets the next one come.
pub(super) struct Order {
    before: Option<oneshot::Receiver<()>>,
    _after: oneshot::Sender<()>,
}

impl Order {
    /// Places, the first one first, without an end.
    pub(super) fn places() -> impl Iterator<Item = Self> {
        let mut before = None;
        std::iter::repeat_with(move || {
            let (after, next) = oneshot::channel();
            Self { before: before.replace(next), _after: after }
        })
    }

    /// Waits until the place before is given up: that call has come to its gate, or is over, or will not come.
    pub(super) async fn comes(&mut self) {
        if let Some(before) = self.before.take() {
            // It is dropped, never sent.
            let _ = before.await;
        }
    }
}
