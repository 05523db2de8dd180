//! The saved form of a conversation: the numbers of its facts, which are read from the log later.

use std::sync::Arc;

use holdpoint_common::{Event, Fact, RunFact};
use serde::{Deserialize, Serialize};

use super::{Conversation, NewestTaskFacts};

/// Facts of a conversation that were not read yet.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Unread {
    /// Their numbers, in the order of the conversation. A prompt comes when it is delivered.
    pub(super) seqs: Arc<Vec<u64>>,
    /// Whether an iteration has begun since, so that only tasks and notes are needed.
    pub(super) only_tasks: bool,
}

/// The newest of the unread facts: at most all of them.
#[derive(Debug, Clone)]
pub struct UnreadPart {
    /// The numbers of all unread facts.
    seqs: Arc<Vec<u64>>,
    /// Where the part begins in `seqs`.
    from: usize,
}

impl UnreadPart {
    /// The numbers of the facts, in no particular order.
    #[must_use]
    pub fn seqs(&self) -> &[u64] {
        &self.seqs[self.from..]
    }
}

/// The saved form of a conversation.
#[derive(Serialize, Deserialize)]
pub(super) struct Stored {
    /// The number of the first fact, and the difference of each other one to the one before it.
    seqs: Vec<i64>,
    weight: usize,
    messages: u64,
    weight_kept: usize,
    forgotten: u64,
}

impl From<Conversation> for Stored {
    fn from(conversation: Conversation) -> Self {
        let Conversation { unread, events, weight, messages, weight_kept, forgotten } =
            conversation;
        let unread = unread.unwrap_or_default().seqs;
        let mut last = 0;
        let seqs = unread.iter().copied().chain(events.iter().map(|event| event.seq));
        let seqs = seqs.map(|seq| seq.wrapping_sub(std::mem::replace(&mut last, seq)));
        let seqs = seqs.map(u64::cast_signed).collect();
        Self { seqs, weight, messages, weight_kept, forgotten }
    }
}

impl From<Stored> for Conversation {
    fn from(Stored { seqs, weight, messages, weight_kept, forgotten }: Stored) -> Self {
        let mut last = 0_u64;
        let seqs = seqs.into_iter().map(|difference| {
            last = last.wrapping_add(difference.cast_unsigned());
            last
        });
        let seqs: Vec<_> = seqs.collect();
        let unread = Unread { seqs: Arc::new(seqs), only_tasks: false };
        let unread = (!unread.seqs.is_empty()).then_some(unread);
        Self { unread, events: Arc::default(), weight, messages, weight_kept, forgotten }
    }
}

impl Conversation {
    /// The newest of the facts that were not read yet: a little more than this many bytes, because a
    /// request begins with the prompt before these, but at least as many facts as are known already, so
    /// that reading one part after another takes linear time. `None` if all were read.
    pub(in crate::state) fn unread(&self, bytes: u64) -> Option<UnreadPart> {
        let Unread { seqs, only_tasks } = self.unread.as_ref()?;
        let facts = seqs.len() + self.events.len();
        let average = (self.weight / facts).max(1) as u64;
        let wanted = usize::try_from(bytes / average).unwrap_or(usize::MAX);
        let wanted = wanted.saturating_add(wanted / 8 + 8);
        let count = if *only_tasks { usize::MAX } else { wanted.max(self.events.len()) };
        let from = seqs.len().saturating_sub(count.max(1));
        Some(UnreadPart { seqs: Arc::clone(seqs), from })
    }

    /// Whether the numbers of all its facts are known.
    pub(in crate::state) fn can_be_saved(&self) -> bool {
        self.unread.as_ref().is_none_or(|unread| !unread.only_tasks)
    }

    /// Adds the facts of a part, which are among `facts`. Those that are missing there are lost.
    /// Nothing happens if it was read in the meantime, or if the facts before it can no longer be left
    /// unread.
    pub(in crate::state) fn read(&mut self, part: &UnreadPart, facts: &[Arc<Event>]) {
        let is_current = |unread: &mut Unread| {
            Arc::ptr_eq(&unread.seqs, &part.seqs) && !(unread.only_tasks && part.from > 0)
        };
        let Some(Unread { only_tasks, .. }) = self.unread.take_if(is_current) else { return };
        let find = |seq: &u64| {
            let at = facts.binary_search_by_key(seq, |event| event.seq).ok()?;
            facts[at].fact().map(|_| Arc::clone(&facts[at]))
        };
        let mut events: Vec<_> = part.seqs().iter().filter_map(find).collect();
        if only_tasks {
            events = self.tasks_before_iteration(&events);
            self.weight_kept += events.iter().map(|event| event.weight()).sum::<usize>();
        }
        events.extend(self.events.iter().cloned());
        if part.from > 0 {
            let seqs = Arc::new(part.seqs[..part.from].to_vec());
            self.unread = Some(Unread { seqs, only_tasks: false });
            self.events = Arc::new(events);
            return;
        }
        self.set_all(events);
        self.forget_if_too_large();
    }

    /// Drops the facts that were not read yet.
    pub(in crate::state) fn drop_unread(&mut self) {
        if let Some(Unread { seqs, .. }) = self.unread.take() {
            self.forgotten += seqs.len() as u64;
            self.set_all(self.events.to_vec());
            self.forget_if_too_large();
        }
    }

    /// Those of these earlier facts that [`begin_iteration`](Self::begin_iteration) would have kept
    /// at the last iteration.
    fn tasks_before_iteration(&self, earlier: &[Arc<Event>]) -> Vec<Arc<Event>> {
        let begins = |event: &Arc<Event>| {
            let fact = event.fact();
            matches!(fact, Some(Fact::Run(RunFact::IterationStarted { resumed: false, .. })))
        };
        let began = self.events.iter().rposition(begins).unwrap_or(0);
        let mut newest = NewestTaskFacts::default();
        let mut is_needed = |event: &&Arc<Event>| match event.fact() {
            Some(Fact::Task(fact)) => newest.needs(fact),
            _ => false,
        };
        self.events[..began].iter().rev().filter(&mut is_needed).for_each(drop);
        let mut kept: Vec<_> = earlier.iter().rev().filter(is_needed).cloned().collect();
        kept.reverse();
        kept
    }
}
