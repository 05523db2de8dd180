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
    open: BTreeMap<ItemId, Torso>,
    /// Items whose finishing fact is here, and the last of their deltas that is not. They need no summary, for
    /// the fact carries the whole.
    done: BTreeMap<ItemId, Option<u64>>,
}

/// What an open item had come to with one of its pieces.
#[derive(Clone)]
struct Torso {
    item: ItemId,
    last: Arc<Event>,
    kind: ItemKind,
    text: Kept,
}

impl Torso {
    /// Adds what is a piece of an item to what that had come to before.
    fn add(torso: &mut Option<Self>, event: &Arc<Event>) {
        let Some((item, kind, text)) = piece(event) else { return };
        let torso = torso.get_or_insert_with(|| Self { item, last: Arc::clone(event), kind, text: Kept::default() });
        torso.last = Arc::clone(event);
        match kind {
            ItemKind::Text | ItemKind::Thought => torso.text.head.push_str(text),
            ItemKind::Output => torso.text.push(text),
        }
    }

    /// The event that tells it, in place of all its pieces.
    fn so_far(&self) -> Event {
        let body = Delta::ItemSoFar { item: self.item, kind: self.kind, so_far: self.text.clone() };
        Event { body: Body::Delta(body), ..Event::clone(&self.last) }
    }
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
                Body::Fact(Fact::TurnFinished { .. }) => self.open.clear(),
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

    /// What is here of the events after `from`, for a client that has all up to `after`: what open items had come to
    /// of which it misses a piece, and the events themselves, but for pieces of finished items of which it misses one.
    /// Apart, for facts of the log may belong between them.
    pub(crate) fn after(&self, after: u64, from: u64) -> (Vec<Arc<Event>>, Vec<Arc<Event>>) {
        let missed = self.missed(after, from);
        let mut items: Vec<_> = missed.values().flatten().map(|item| Arc::new(item.so_far())).collect();
        items.sort_by_key(|event| event.seq);
        let start = self.events.partition_point(|event| event.seq <= from);
        let is_torso = |event: &Event| piece(event).is_some_and(|(item, ..)| matches!(missed.get(&item), Some(None)));
        (items, self.events.range(start..).filter(|event| !is_torso(event)).cloned().collect())
    }

    /// The items that have pieces after `after` which are gone or not after `from`: what they had come to by then, or
    /// nothing where the finishing fact is here.
    fn missed(&self, after: u64, from: u64) -> BTreeMap<ItemId, Option<Torso>> {
        let gone = |evicted: &u64| *evicted > after;
        let open = self.open.iter().filter(|(_, torso)| gone(&torso.last.seq)).map(|(item, _)| *item);
        let done = self.done.iter().filter(|(_, evicted)| evicted.as_ref().is_some_and(gone)).map(|(item, _)| *item);
        let until = self.events.partition_point(|event| event.seq <= from);
        let cut = self.events.range(..until).filter(|event| event.seq > after);
        let cut = cut.filter_map(|event| piece(event)).map(|(item, ..)| item);
        let mut missed: BTreeMap<ItemId, Option<Torso>> =
            open.chain(done).chain(cut).map(|item| (item, self.open.get(&item).cloned())).collect();
        for event in self.events.range(..until) {
            if matches!(event.fact(), Some(Fact::TurnFinished { .. })) {
                // Nothing of a turn stays open.
                missed.retain(|_, torso| torso.is_none());
            }
            if let Some(torso) = piece(event).and_then(|(item, ..)| missed.get_mut(&item)) {
                Torso::add(torso, event);
            }
        }
        for (_, torso) in missed.iter_mut().filter(|(item, _)| self.done.contains_key(item)) {
            *torso = None;
        }
        missed
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
        let Some((item, ..)) = piece(event) else { return };
        if let Some(evicted) = self.done.get_mut(&item) {
            *evicted = Some(event.seq);
            return;
        }
        let mut torso = self.open.remove(&item);
        Torso::add(&mut torso, event);
        self.open.extend(torso.map(|torso| (item, torso)));
    }

    fn close_items(&mut self, fact: &Fact) {
        for item in finishes(fact) {
            let evicted = self.open.remove(&item).map(|torso| torso.last.seq);
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
