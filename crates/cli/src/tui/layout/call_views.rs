//! The open tool calls of the transcript, and the chosen one.

use std::collections::HashSet;

use super::super::transcript::Key;

/// The open tool calls, and the chosen one.
#[derive(Debug, Default)]
pub(crate) struct CallViews {
    /// Whether calls are open by default. Those in `exceptions` are the opposite.
    open_by_default: bool,
    exceptions: HashSet<Key>,
    chosen: Option<Key>,
}

/// How a call is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CallView {
    pub(super) open: bool,
    pub(super) chosen: bool,
}

impl CallViews {
    /// Opens or folds the chosen call, or all calls if none is chosen.
    pub(crate) fn toggle(&mut self) {
        match self.chosen {
            Some(key) if !self.exceptions.remove(&key) => _ = self.exceptions.insert(key),
            Some(_) => {}
            None => {
                self.open_by_default = !self.open_by_default;
                self.exceptions.clear();
            }
        }
    }

    pub(crate) fn chosen(&self) -> Option<Key> {
        self.chosen
    }

    pub(crate) fn choose(&mut self, key: Option<Key>) {
        self.chosen = key;
    }

    pub(super) fn view_of(&self, key: Key) -> CallView {
        CallView {
            open: self.open_by_default != self.exceptions.contains(&key),
            chosen: self.chosen == Some(key),
        }
    }
}
