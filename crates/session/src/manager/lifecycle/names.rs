//! The names of the sessions that are live or about to be.

use std::collections::HashMap;

use holdpoint_common::SessionId;

use crate::names::name_stem;

/// The names of the sessions that are live or about to be, and those of pending renames. Each
/// belongs to one session.
#[derive(Default)]
pub(crate) struct Names {
    holders: HashMap<String, SessionId>,
    held: HashMap<SessionId, Held>,
    /// The number that was last appended to a name, while a session has that name.
    numbered: HashMap<String, u32>,
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
            let before = held.present.replace(name.to_owned());
            self.free(id, before);
        }
        claimed
    }

    /// Makes this the name of the session, with a number if another session has it. Returns the
    /// name.
    pub(crate) fn claim_numbered(&mut self, id: &SessionId, name: &str) -> String {
        if self.claim(id, name) {
            return name.to_owned();
        }
        let stem = name_stem(name);
        loop {
            let last = self.numbered.entry(stem.to_owned()).or_insert(1);
            *last += 1;
            let numbered = format!("{stem}-{last}");
            if self.claim(id, &numbered) {
                return numbered;
            }
        }
    }

    /// Frees the present name of the session.
    pub(crate) fn release(&mut self, id: &SessionId) {
        let before = self.held.get_mut(id).and_then(|held| held.present.take());
        self.free(id, before);
    }

    /// Reserves the name of a rename, until that is finished. Returns `false` if another session
    /// has it.
    pub(crate) fn begin_rename(&mut self, id: &SessionId, name: &str) -> bool {
        let held = self.hold(id, name);
        if held {
            self.held.entry(id.clone()).or_default().pending.push(name.to_owned());
        }
        held
    }

    /// The rename to this name is finished, done or refused.
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

    /// Frees a name that the session had, unless it has it for another reason, too.
    fn free(&mut self, id: &SessionId, name: Option<String>) {
        let (Some(name), Some(held)) = (name, self.held.get(id)) else { return };
        if held.present.as_ref() == Some(&name) || held.pending.contains(&name) {
            return;
        }
        if held.present.is_none() && held.pending.is_empty() {
            self.held.remove(id);
        }
        self.holders.remove(&name);
        // The next session with this name needs no number.
        self.numbered.remove(name_stem(&name));
    }
}
