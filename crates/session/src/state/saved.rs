//! The saved form of a state, from which a session opens without most of its facts.

use std::sync::Arc;

use holdpoint_common::{Delta, Event, Gap};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{State, UnreadPart};

/// The version of a form: that of the program, and a number that is raised with each change after
/// which the same facts lead to another state, or a state to another form. Forms of other versions
/// are not read: the facts are folded again.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " fold 5");

#[derive(Serialize)]
struct Form<'a> {
    version: &'a str,
    state: &'a State,
}

#[derive(Deserialize)]
struct RawForm<'a> {
    version: String,
    #[serde(borrow)]
    state: &'a RawValue,
}

impl State {
    /// The state as text, with the numbers of the conversation's facts in place of the facts. `None`
    /// while the conversation has to be read first.
    ///
    /// The text has at most 21 bytes for each fact of the conversation, and everything else that
    /// the state holds: mainly the paths of the files that were read and written, and the asks.
    #[must_use]
    pub fn to_saved(&self) -> Option<String> {
        if !self.history.can_be_saved() {
            return None;
        }
        // These values can always be written.
        serde_json::to_string(&Form { version: VERSION, state: self }).ok()
    }

    /// Reads a state that this version of the program wrote; `None` if the text is not one. Its
    /// conversation is not read yet.
    #[must_use]
    pub fn from_saved(text: &str) -> Option<Self> {
        let RawForm { version, state } = serde_json::from_str(text).ok()?;
        (version == VERSION).then(|| serde_json::from_str(state.get()).ok())?
    }

    /// The newest of the conversation's facts that were not read yet: about this many bytes, or all of
    /// them with [`u64::MAX`]. `None` if all were read.
    #[must_use]
    pub fn unread(&self, bytes: u64) -> Option<UnreadPart> {
        self.history.unread(bytes)
    }

    /// Whether the conversation exceeds its bound, and can only be cut once all of it was read.
    pub(crate) fn is_too_large_to_stay_unread(&self) -> bool {
        self.history.has_unread() && self.history.is_too_large()
    }

    /// Whether the next decisions may depend on the conversation, so that it has to be read first.
    /// Otherwise it is only needed for a request.
    #[must_use]
    pub fn needs_conversation(&self) -> bool {
        self.run.is_some() || self.turn().is_some()
    }

    /// Drops the unread facts of a conversation that exceeds its bound, because they can't be read.
    pub(crate) fn drop_unread(&mut self) {
        self.history.drop_unread();
    }

    /// Adds a part of the unread facts. `facts` are those facts, in the order of their numbers, and
    /// the gaps among them.
    pub fn read(&mut self, part: &UnreadPart, facts: &[Arc<Event>]) {
        for event in facts {
            if let Some(Delta::Gap { from, to }) = event.delta() {
                self.gaps.add(Gap { from: *from, to: *to });
            }
        }
        self.history.read(part, facts);
    }
}
