//! The output buffer: a session's newest events, bounded by number and bytes, oldest out first.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use holdpoint_common::{Body, Delta, Event, Fact, ItemId, ItemKind, Kept, Limits};

/// The newest events of one session.
///
/// Of an item that is still open, what has been evicted is kept as text, so that whoever comes later can be
/// told what it had come to.
pub(crate) struct Ring {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    most_events: usize,
    most_bytes: usize,
    /// Everything up to this number has been evicted, or never was here.
    evicted: u64,
    open: BTreeMap<ItemId, Evicted>,
    /// Items whose finishing fact is here, and the last of their deltas that is not. They need no summary, for
    /// the fact carries the whole.
    done: BTreeMap<ItemId, Option<u64>>,
}

/// What an open item had come to when its last evicted delta went.
struct Evicted {
    event: Arc<Event>,
    kind: ItemKind,
    text: Kept,
}

impl Ring {
    /// An empty ring that follows the event of this number.
    pub(crate) fn new(limits: &Limits, after: u64) -> Self {
        Self {
            events: VecDeque::new(),
            bytes: 0,
            most_events: limits.buffered_events,
            most_bytes: limits.buffered_bytes,
            evicted: after,
            open: BTreeMap::new(),
            done: BTreeMap::new(),
        }
    }

    /// Takes the newest event in.
    pub(crate) fn push(&mut self, event: Arc<Event>) {
        if let Body::Fact(fact) = &event.body {
            self.close_items(fact);
        }
        self.bytes += event.weight();
        self.events.push_back(event);
        while self.events.len() > self.most_events || self.bytes > self.most_bytes {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= oldest.weight();
            self.evicted = oldest.seq;
            match &oldest.body {
                Body::Fact(fact) => finishes(fact).for_each(|item| {
                    self.done.remove(&item);
                }),
                Body::Delta(_) => self.keep_item(&oldest),
            }
        }
    }

    /// Everything up to this number is not here.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// What is here of the events after `after`: what open items had come to whose beginning is gone, and the events
    /// themselves, but for pieces of finished items whose beginning is gone. Apart, for facts of the log may belong
    /// between them.
    pub(crate) fn after(&self, after: u64) -> (Vec<Arc<Event>>, Vec<Arc<Event>>) {
        let mut items: Vec<_> = self
            .open
            .iter()
            .filter(|(_, evicted)| evicted.event.seq > after)
            .map(|(item, evicted)| {
                let body = Delta::ItemSoFar { item: *item, kind: evicted.kind, so_far: evicted.text.clone() };
                Arc::new(Event { body: Body::Delta(body), ..Event::clone(&evicted.event) })
            })
            .collect();
        items.sort_by_key(|event| event.seq);
        let from = self.events.partition_point(|event| event.seq <= after);
        let here = self.events.range(from..).filter(|event| !self.is_torso(event, after)).cloned();
        (items, here.collect())
    }

    /// Whether this is a piece of a finished item of which an earlier piece, after `after`, is gone.
    fn is_torso(&self, event: &Event, after: u64) -> bool {
        let evicted = piece(event).and_then(|(item, ..)| self.done.get(&item).copied().flatten());
        evicted.is_some_and(|evicted| evicted > after)
    }

    /// The number before the `newest`-th last fact that is here; `None` if there are fewer.
    pub(crate) fn before_newest(&self, newest: usize) -> Option<u64> {
        if newest == 0 {
            return Some(self.events.back().map_or(self.evicted, |event| event.seq));
        }
        let mut facts = self.events.iter().rev().filter(|event| event.fact().is_some());
        facts.nth(newest - 1).map(|event| event.seq - 1)
    }

    /// How many facts after `after` are here.
    pub(crate) fn facts_after(&self, after: u64) -> usize {
        self.events.iter().filter(|event| event.seq > after && event.fact().is_some()).count()
    }

    fn keep_item(&mut self, event: &Arc<Event>) {
        let Some((item, kind, text)) = piece(event) else { return };
        if let Some(evicted) = self.done.get_mut(&item) {
            *evicted = Some(event.seq);
            return;
        }
        let entry =
            self.open.entry(item).or_insert_with(|| Evicted { event: Arc::clone(event), kind, text: Kept::default() });
        entry.event = Arc::clone(event);
        match kind {
            ItemKind::Text | ItemKind::Thought => entry.text.head.push_str(text),
            ItemKind::Output => entry.text.push(text),
        }
    }

    fn close_items(&mut self, fact: &Fact) {
        for item in finishes(fact) {
            let evicted = self.open.remove(&item).map(|evicted| evicted.event.seq);
            self.done.insert(item, evicted);
        }
        if matches!(fact, Fact::TurnFinished { .. }) {
            self.open.clear();
        }
    }
}

/// The items that a fact carries the whole of.
fn finishes(fact: &Fact) -> impl Iterator<Item = ItemId> {
    let (blocks, call) = match fact {
        Fact::AssistantMessage(message) => (message.blocks.as_slice(), None),
        Fact::ToolFinished(result) => (&[][..], Some(result.call.item())),
        _ => (&[][..], None),
    };
    blocks.iter().map(|block| block.item).chain(call)
}

/// The item a delta adds to, and what it adds.
fn piece(event: &Event) -> Option<(ItemId, ItemKind, &str)> {
    match event.delta()? {
        Delta::Text { item, text } => Some((*item, ItemKind::Text, text)),
        Delta::Thought { item, text } => Some((*item, ItemKind::Thought, text)),
        Delta::Output { item, text } => Some((*item, ItemKind::Output, text)),
        _ => None,
    }
}
