//! The output buffer: a session's newest events, bounded in number and bytes. The oldest are
//! evicted first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use holdpoint_common::{
    Body, Delta, Event, Fact, HeadAndTail, ItemId, ItemKind, Limits, ToolFact, TurnFact,
};

/// The newest events of one session.
///
/// The evicted text of an open item is kept in parts. A client that has no piece of the item gets
/// the parts as they are, so that its attach copies no text.
pub(crate) struct Ring {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    max_events: usize,
    max_bytes: usize,
    /// The highest number that is not here: evicted, or older than the ring.
    evicted: u64,
    open: BTreeMap<ItemId, Evicted>,
    /// The items that a fact in this ring has finished, with the number of their last evicted
    /// delta. They need no summary, because the item's fact carries it whole.
    done: BTreeMap<ItemId, Option<u64>>,
}

/// The size of one part of an open item, in bytes of text.
const PART_BYTES: usize = 64 * 1024;

/// The evicted pieces of one open item, joined.
struct Evicted {
    item: ItemId,
    kind: ItemKind,
    /// The number of the first evicted piece.
    first: u64,
    /// The full parts. The first is a [`Delta::ItemSoFar`]; the others add text.
    parts: Vec<Arc<Event>>,
    /// The text after the last full part.
    text: HeadAndTail,
    /// The last evicted piece.
    last: Arc<Event>,
}

impl Evicted {
    fn push(&mut self, event: &Arc<Event>, text: &str) {
        self.last = Arc::clone(event);
        if self.kind == ItemKind::Output {
            // `HeadAndTail` has a bound of its own.
            self.text.push(text);
            return;
        }
        self.text.head.push_str(text);
        if self.text.head.len() >= PART_BYTES {
            let part = std::mem::take(&mut self.text);
            let delta = if self.parts.is_empty() {
                self.so_far_delta(part)
            } else {
                self.text_delta(part.head)
            };
            self.parts.push(self.event(delta));
        }
    }

    /// The events that carry the evicted text to a client that has everything up to `after` and
    /// misses a piece.
    ///
    /// A client that has the beginning gets the whole text as one event, under the number of the
    /// last piece, because the client may be past the numbers of the parts.
    fn events(&self, after: u64) -> Vec<Arc<Event>> {
        if self.parts.is_empty() {
            return vec![self.event(self.so_far_delta(self.text.clone()))];
        }
        let parts = self.parts.iter().filter_map(|part| text_of_part(part));
        if self.first <= after {
            let bytes = parts.clone().map(str::len).sum::<usize>() + self.text.head.len();
            let mut head = String::with_capacity(bytes);
            parts.chain([self.text.head.as_str()]).for_each(|text| head.push_str(text));
            return vec![
                self.event(self.so_far_delta(HeadAndTail { head, ..HeadAndTail::default() })),
            ];
        }
        let rest =
            (!self.text.is_empty()).then(|| self.event(self.text_delta(self.text.head.clone())));
        self.parts.iter().cloned().chain(rest).collect()
    }

    fn so_far_delta(&self, so_far: HeadAndTail) -> Delta {
        Delta::ItemSoFar { item: self.item, kind: self.kind, so_far }
    }

    fn text_delta(&self, text: String) -> Delta {
        match self.kind {
            ItemKind::Thought => Delta::Thought { item: self.item, text },
            _ => Delta::Text { item: self.item, text },
        }
    }

    /// Makes an event with the number of the last evicted piece.
    fn event(&self, delta: Delta) -> Arc<Event> {
        let Event { seq, at, turn, step, .. } = *self.last;
        Arc::new(Event { seq, at, turn, step, body: Body::Delta(delta) })
    }
}

impl Ring {
    /// An empty ring that follows the event with this number.
    pub(crate) fn new(limits: &Limits, after: u64) -> Self {
        Self {
            events: VecDeque::new(),
            bytes: 0,
            max_events: limits.buffered_events,
            max_bytes: limits.buffered_bytes,
            evicted: after,
            open: BTreeMap::new(),
            done: BTreeMap::new(),
        }
    }

    /// Adds the newest event, and evicts the oldest ones while the ring is over its bounds.
    pub(crate) fn push(&mut self, event: Arc<Event>) {
        if let Body::Fact(fact) = &event.body {
            self.close_items(fact);
        }
        self.bytes += event.weight();
        self.events.push_back(event);
        while self.events.len() > self.max_events || self.bytes > self.max_bytes {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= oldest.weight();
            self.evicted = oldest.seq;
            match &oldest.body {
                Body::Fact(Fact::Turn(TurnFact::Finished { .. })) => self.open.clear(),
                Body::Fact(fact) => finished_items(fact).for_each(|item| {
                    self.done.remove(&item);
                }),
                Body::Delta(_) => self.keep_item(&oldest),
            }
        }
    }

    /// The highest number that is not here.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// The events for a client that has everything up to `after` and wants no facts up to `from`.
    /// The first list carries the evicted text of open items, the second has the events of the
    /// buffer. Facts of the log may have numbers between the two.
    ///
    /// Every piece of an open item after `after` is included. No piece of a finished item is
    /// included if another one is missing, because the item's fact carries it whole.
    pub(crate) fn after(&self, after: u64, from: u64) -> (Vec<Arc<Event>>, Vec<Arc<Event>>) {
        let first = self.events.partition_point(|event| event.seq <= from);
        // The end of a turn leaves no item open.
        let ends_turn = |event: &Arc<Event>| {
            matches!(event.fact(), Some(Fact::Turn(TurnFact::Finished { .. })))
        };
        let turn_end = self.events.range(..first).rposition(ends_turn);
        let missed = |evicted: &u64| *evicted > after;
        let open = self.open.values().filter(|item| turn_end.is_none() && missed(&item.last.seq));
        let mut evicted: Vec<_> = open.flat_map(|item| item.events(after)).collect();
        evicted.sort_by_key(|event| event.seq);

        let earlier = self.events.range(turn_end.map_or(0, |end| end + 1)..first);
        let earlier_pieces = earlier.filter(|event| event.seq > after && piece(event).is_some());
        let done = self
            .done
            .iter()
            .filter(|(_, evicted)| evicted.as_ref().is_some_and(missed))
            .map(|(item, _)| *item);
        let earlier_items =
            earlier_pieces.clone().filter_map(|event| piece(event)).map(|(item, ..)| item);
        let whole: BTreeSet<_> =
            done.chain(earlier_items.filter(|item| self.done.contains_key(item))).collect();
        let is_left_out =
            |event: &Event| piece(event).is_some_and(|(item, ..)| whole.contains(&item));
        let buffered = earlier_pieces.chain(self.events.range(first..));
        (evicted, buffered.filter(|event| !is_left_out(event)).cloned().collect())
    }

    /// The output so far of a call that has no result yet.
    pub(crate) fn output(&self, item: ItemId) -> HeadAndTail {
        let mut output =
            self.open.get(&item).map(|evicted| evicted.text.clone()).unwrap_or_default();
        self.events
            .iter()
            .filter_map(|event| added_text(event, item))
            .for_each(|text| output.push(text));
        output
    }

    /// The number before the `count` newest facts; `None` if fewer facts are here.
    pub(crate) fn before_newest(&self, count: usize) -> Option<u64> {
        if count == 0 {
            return Some(self.events.back().map_or(self.evicted, |event| event.seq));
        }
        let mut facts = self.events.iter().rev().filter(|event| event.fact().is_some());
        facts.nth(count - 1).map(|event| event.seq - 1)
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
        let open = self.open.entry(item).or_insert_with(|| Evicted {
            item,
            kind,
            first: event.seq,
            parts: Vec::new(),
            text: HeadAndTail::default(),
            last: Arc::clone(event),
        });
        open.push(event, text);
    }

    fn close_items(&mut self, fact: &Fact) {
        for item in finished_items(fact) {
            let evicted = self.open.remove(&item).map(|evicted| evicted.last.seq);
            self.done.insert(item, evicted);
        }
        if matches!(fact, Fact::Turn(TurnFact::Finished { .. })) {
            self.open.clear();
        }
    }
}

/// The items that a fact carries in full.
fn finished_items(fact: &Fact) -> impl Iterator<Item = ItemId> {
    let (blocks, call) = match fact {
        Fact::Turn(TurnFact::AssistantMessage(message)) => (message.blocks.as_slice(), None),
        Fact::Tool(ToolFact::Finished(result)) => (&[][..], Some(result.call.item())),
        _ => (&[][..], None),
    };
    blocks.iter().map(|block| block.item).chain(call)
}

fn text_of_part(part: &Event) -> Option<&str> {
    match part.delta()? {
        Delta::ItemSoFar { so_far, .. } => Some(&so_far.head),
        _ => piece(part).map(|(.., text)| text),
    }
}

/// The text that an event adds to this item.
pub(super) fn added_text(event: &Event, item: ItemId) -> Option<&str> {
    piece(event).filter(|(added_to, ..)| *added_to == item).map(|(.., text)| text)
}

/// The item that a delta adds to, its kind, and the added text.
fn piece(event: &Event) -> Option<(ItemId, ItemKind, &str)> {
    match event.delta()? {
        Delta::Text { item, text } => Some((*item, ItemKind::Text, text)),
        Delta::Thought { item, text } => Some((*item, ItemKind::Thought, text)),
        Delta::Output { item, text } => Some((*item, ItemKind::Output, text)),
        _ => None,
    }
}
