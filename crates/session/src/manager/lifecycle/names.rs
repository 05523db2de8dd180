//! The names of the sessions that are live or about to be.

use std::collections::HashMap;

use holdpoint_common::SessionId;

use crate::names::name_stem;

/// The names of the sessions that are live or about to be. Each belongs to one session.
#[derive(Default)]
pub(crate) struct Names {
    holders: HashMap<String, SessionId>,
    /// The names of each session: the one that it has, and during a rename also the next one.
    held: HashMap<SessionId, Vec<String>>,
    /// The number that was last appended to a name, while a session has that name.
    numbered: HashMap<String, u32>,
}

impl Names {
    /// The session that has this name.
    pub(crate) fn holder(&self, name: &str) -> Option<&SessionId> {
        self.holders.get(name)
    }

    /// Gives the session this name, too. Returns `false` if another session has it.
    pub(crate) fn reserve(&mut self, id: &SessionId, name: &str) -> bool {
        match self.holders.get(name) {
            Some(holder) => holder == id,
            None => {
                self.holders.insert(name.to_owned(), id.clone());
                self.held.entry(id.clone()).or_default().push(name.to_owned());
                true
            }
        }
    }

    /// Gives the session this name, with a number if another session has it. Returns the name.
    pub(crate) fn reserve_numbered(&mut self, id: &SessionId, name: &str) -> String {
        if self.reserve(id, name) {
            return name.to_owned();
        }
        let stem = name_stem(name);
        loop {
            let last = self.numbered.entry(stem.to_owned()).or_insert(1);
            *last += 1;
            let numbered = format!("{stem}-{last}");
            if self.reserve(id, &numbered) {
                return numbered;
            }
        }
    }

    /// Frees the names of the session, except `kept`.
    pub(crate) fn free_except(&mut self, id: &SessionId, kept: &str) {
        let Some(held) = self.held.get_mut(id) else { return };
        let freed: Vec<_> = held.extract_if(.., |name| name != kept).collect();
        if held.is_empty() {
            self.held.remove(id);
        }
        for name in freed {
            self.holders.remove(&name);
            // The next session with this name needs no number.
            self.numbered.remove(name_stem(&name));
        }
    }

    /// Frees the names of the session.
    pub(crate) fn free_all(&mut self, id: &SessionId) {
        // No session has an empty name.
        self.free_except(id, "");
    }
}
