//! The names of the sessions that are live or about to be.

use std::collections::{HashMap, HashSet};

use holdpoint_common::SessionId;

use crate::names::name_stem;

/// The names of the sessions that are live or about to be, and those of pending renames. Each
/// belongs to one session.
#[derive(Default)]
pub(crate) struct Names {
    holders: HashMap<String, SessionId>,
    held: HashMap<SessionId, Held>,
    /// The last number that was appended to a taken name, by the name's stem.
    last_numbers: HashMap<String, u32>,
}

/// The names of one session.
#[derive(Default)]
struct Held {
    present: Option<String>,
    /// The names of renames that are not finished.
    pending: Vec<String>,
}

impl Names {
    /// The session that has this name.
    pub(crate) fn holder(&self, name: &str) -> Option<&SessionId> {
        self.holders.get(name)
    }

    /// Makes this the name of the session. Returns `false` if another session has it.
    pub(crate) fn claim(&mut self, id: &SessionId, name: &str) -> bool {
        let claimed = self.hold(id, name);
        if claimed {
            let held = self.held.entry(id.clone()).or_default();
            let previous = held.present.replace(name.to_owned());
            self.free(id, previous);
        }
        claimed
    }

    /// Makes this the name of the session, with a number if another session has it, or if it is one of
    /// `taken`. Returns the name.
    pub(crate) fn claim_numbered(
        &mut self,
        id: &SessionId,
        name: &str,
        taken: &HashSet<String>,
    ) -> String {
        if !taken.contains(name) && self.claim(id, name) {
            return name.to_owned();
        }
        let stem = name_stem(name);
        loop {
            let last = self.last_numbers.entry(stem.to_owned()).or_insert(1);
            *last += 1;
            let numbered = format!("{stem}-{last}");
            if !taken.contains(&numbered) && self.claim(id, &numbered) {
                return numbered;
            }
        }
    }

    /// The names of the session.
    pub(crate) fn of(&self, id: &SessionId) -> Vec<String> {
        let held = self.held.get(id);
        held.map(|held| held.present.iter().chain(&held.pending).cloned().collect())
            .unwrap_or_default()
    }

    /// Frees the present name of the session.
    pub(crate) fn release(&mut self, id: &SessionId) {
        let present = self.held.get_mut(id).and_then(|held| held.present.take());
        self.free(id, present);
    }

    /// Reserves the name of a rename, until the rename is finished. Returns `false` if another
    /// session has the name.
    pub(crate) fn begin_rename(&mut self, id: &SessionId, name: &str) -> bool {
        let reserved = self.hold(id, name);
        if reserved {
            self.held.entry(id.clone()).or_default().pending.push(name.to_owned());
        }
        reserved
    }

    /// The rename to this name is finished, whether it was done or refused.
    pub(crate) fn end_rename(&mut self, id: &SessionId, name: &str) {
        let Some(held) = self.held.get_mut(id) else { return };
        let ended = held
            .pending
            .iter()
            .position(|pending| pending == name)
            .map(|at| held.pending.remove(at));
        self.free(id, ended);
    }

    fn hold(&mut self, id: &SessionId, name: &str) -> bool {
        self.holders.entry(name.to_owned()).or_insert_with(|| id.clone()) == id
    }

    /// Frees a name of the session, unless the session still has it as its present name or for a
    /// pending rename.
    fn free(&mut self, id: &SessionId, name: Option<String>) {
        let (Some(name), Some(held)) = (name, self.held.get(id)) else { return };
        if held.present.as_ref() == Some(&name) || held.pending.contains(&name) {
            return;
        }
        if held.present.is_none() && held.pending.is_empty() {
            self.held.remove(id);
        }
        self.holders.remove(&name);
        // The next session gets the name without a number, and numbers start over.
        self.last_numbers.remove(name_stem(&name));
    }
}
