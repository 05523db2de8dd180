//! Which calls are open, and which one is chosen.

use std::collections::HashSet;

use super::super::transcript::Key;

/// Which calls are open, and which one is chosen.
#[derive(Debug, Default)]
pub(crate) struct Folds {
    /// All are open, but for the others.
    all: bool,
    others: HashSet<Key>,
    chosen: Option<Key>,
}

/// How one of them is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Fold {
    pub(super) open: bool,
    pub(super) chosen: bool,
}

impl Folds {
    /// Opens or folds the one that is chosen; all of them, if none is.
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

    pub(super) fn of(&self, key: Key) -> Fold {
        Fold { open: self.all != self.others.contains(&key), chosen: self.chosen == Some(key) }
    }
}
