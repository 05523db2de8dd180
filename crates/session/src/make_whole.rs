//! Items made whole for a client that comes back in the middle of them.
//!
//! The client has folded what came up to its number. If the item has finished since, and pieces between are gone from
//! the output buffer, the finishing fact alone would follow on a part of it. So the client gets the text of the item so far,
//! just before, under a number that none of its other events has: that of a piece that is gone.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use holdpoint_common::{Body, Delta, Event, Fact, ItemId, ItemKind, Kept};

/// The items that one client left in the middle of. Fed with what it is given, in the order of the numbers.
pub(crate) struct OpenItems {
    /// The last number that was fed.
    last: u64,
    /// The step in which the client left is over: no item of it is open.
    over: bool,
}

impl OpenItems {
    /// For a client that has everything up to `after`.
    pub(crate) fn after(after: u64) -> Self {
        Self { last: after, over: after == 0 }
    }

    /// Adds to `events`, which are all there are up to the last of them, what finished items had come to of which no
    /// piece is among them.
    pub(crate) fn make_whole(&mut self, events: &mut Vec<Arc<Event>>) {
        if self.over {
            return;
        }
        let pieces: BTreeSet<ItemId> = events.iter().filter_map(|event| piece_of(event)).collect();
        let mut free: Vec<Range<u64>> = Vec::new();
        let mut whole = Vec::new();
        for event in events.iter() {
            if self.last.saturating_add(1) < event.seq {
                free.push(self.last + 1..event.seq);
            }
            self.last = event.seq;
            let Some(fact) = event.fact() else { continue };
            // Blocks come one after the other, so what is missing is missing of the last ones.
            for (item, kind, so_far) in finished(fact).rev().filter(|(item, ..)| !pieces.contains(item)) {
                // Without a number to spare, no piece of the item is missing.
                let Some(gap) = free.last_mut() else { continue };
                gap.end -= 1;
                let body = Body::Delta(Delta::ItemSoFar { item, kind, so_far });
                let Event { at, turn, step, .. } = **event;
                whole.push(Arc::new(Event { seq: gap.end, at, turn, step, body }));
                free.pop_if(|gap| gap.is_empty());
            }
            self.over = matches!(
                fact,
                Fact::StepFinished { .. }
                    | Fact::TurnFinished { .. }
                    | Fact::TurnStarted { .. }
                    | Fact::IterationStarted { .. }
            );
            if self.over {
                break;
            }
        }
        events.append(&mut whole);
        events.sort_by_key(|event| event.seq);
    }
}

/// The item that a delta tells of.
fn piece_of(event: &Event) -> Option<ItemId> {
    match event.delta()? {
        Delta::Text { item, .. } | Delta::Thought { item, .. } | Delta::Output { item, .. } => Some(*item),
        Delta::ItemSoFar { item, .. } => Some(*item),
        Delta::Status { .. }
        | Delta::Retrying { .. }
        | Delta::Gap { .. }
        | Delta::NotSaved { .. }
        | Delta::SavedAgain => None,
    }
}

/// The items that a fact carries the whole of, with the whole.
fn finished(fact: &Fact) -> impl DoubleEndedIterator<Item = (ItemId, ItemKind, Kept)> {
    let (blocks, result) = match fact {
        Fact::AssistantMessage(message) => (message.blocks.as_slice(), None),
        Fact::ToolFinished(result) => (&[][..], Some(result)),
        _ => (&[][..], None),
    };
    let text = |text: &String| Kept { head: text.clone(), ..Kept::default() };
    let blocks = blocks.iter().map(move |block| (block.item, block.kind.into(), text(&block.text)));
    blocks.chain(result.map(|result| (result.call.item(), ItemKind::Output, result.output.clone())))
}

#[cfg(test)]
mod tests {
    use holdpoint_common::{AssistantMessage, Block, BlockKind, Timestamp};

    use super::*;

    /// A number is spare for each piece that is gone, and those are of the last blocks.
    #[test]
    fn what_is_missing_is_missing_of_the_last_block() {
        let block = |item, text: &str| Block {
            item: ItemId(item),
            kind: BlockKind::Text,
            text: text.to_owned(),
            signature: None,
            calls_before: 0,
        };
        let blocks = vec![block(3, "known"), block(4, "cut")];
        let body = Body::Fact(Fact::AssistantMessage(AssistantMessage { blocks, ..AssistantMessage::default() }));
        let mut events = vec![Arc::new(Event { seq: 12, at: Timestamp(0), turn: None, step: None, body })];
        OpenItems::after(10).make_whole(&mut events);
        let so_far = Kept { head: "cut".to_owned(), ..Kept::default() };
        let whole = Delta::ItemSoFar { item: ItemId(4), kind: ItemKind::Text, so_far };
        assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [11, 12]);
        assert_eq!(events[0].delta(), Some(&whole));
    }
}
