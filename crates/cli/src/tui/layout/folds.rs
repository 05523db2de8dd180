//! The open and selected tool calls of the transcript.

use std::collections::HashSet;

use super::super::transcript::Key;

/// The open and selected tool calls.
#[derive(Debug, Default)]
pub(crate) struct Folds {
    /// Whether calls are open by default; `others` are the exceptions.
    all: bool,
    others: HashSet<Key>,
    chosen: Option<Key>,
}

/// How a call is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Fold {
    pub(super) open: bool,
    pub(super) chosen: bool,
}

impl Folds {
    /// Opens or folds the selected call, or all calls if none is selected.
    pub(crate) fn turn(&mut self) {
        match self.chosen {
            Some(key) if !self.others.remove(&key) => _ = self.others.insert(key),
            Some(_) => {}
            None => {
                self.all = !self.all;
                self.others.clear();
            }
        }
    }

    pub(crate) fn chosen(&self) -> Option<Key> {
        self.chosen
    }

    pub(crate) fn choose(&mut self, key: Option<Key>) {
        self.chosen = key;
    }

    pub(super) fn fold_of(&self, key: Key) -> Fold {
        Fold { open: self.all != self.others.contains(&key), chosen: self.chosen == Some(key) }
    }
}
