//! Facts and pieces of drafts as the columns that a statement adds.

use std::sync::Arc;

use holdpoint_common::{Event, Fact, SessionFact, SessionId};

use super::StoreError;
use super::places::Places;
use crate::store::last_seq_of;
use crate::store::stored_facts::{check_sum, signed};

/// Facts or pieces of a draft, as columns.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) seqs: Vec<i64>,
    pub(super) afters: Vec<i64>,
    pub(super) events: Vec<String>,
    pub(super) check_sums: Vec<i64>,
    /// The number of the last fact.
    pub(super) last: i64,
}

impl Rows {
    /// Facts that follow the fact with the number `after`.
    pub(super) fn new<'a>(
        session: &SessionId,
        after: u64,
        facts: impl IntoIterator<Item = &'a Arc<Event>>,
    ) -> Result<Self, StoreError> {
        let (mut rows, mut last) = (Self::default(), after);
        for fact in facts {
            rows.add(session, fact, last)?;
            last = last_seq_of(fact);
        }
        rows.last = signed(last);
        Ok(rows)
    }

    pub(super) fn new_draft(
        session: &SessionId,
        pieces: &[Arc<Event>],
    ) -> Result<Self, StoreError> {
        let mut rows = Self::default();
        pieces.iter().try_for_each(|piece| rows.add(session, piece, 0))?;
        Ok(rows)
    }

    fn add(&mut self, session: &SessionId, event: &Event, after: u64) -> Result<(), StoreError> {
        let text = serde_json::to_string(event)?;
        self.check_sums.push(check_sum(session, event.seq, after, &text));
        self.seqs.push(signed(event.seq));
        self.afters.push(signed(after));
        self.events.push(text);
        Ok(())
    }
}

/// The home that the session moves to with these facts. Another machine knows its places itself, and
/// uses them when it owns the session.
pub(super) fn new_home(facts: &[Arc<Event>], places: &Places) -> Option<String> {
    facts.iter().rev().find_map(|fact| match fact.fact() {
        Some(Fact::Session(SessionFact::Moved { machine: Some(machine), workspace, .. })) => {
            let is_here = **machine == *places.machine;
            Some(if is_here { places.home_of(workspace) } else { machine.clone() })
        }
        _ => None,
    })
}
