//! Completes items for a client that attaches again in the middle of them.
//!
//! Such a client has folded the events up to its number. If an item has finished since, and pieces
//! in between have left the output buffer, the finishing fact alone would not match the client's
//! part of the item. So the client gets the text of the item just before that fact, under the
//! number of a missing piece, which none of its other events has.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use holdpoint_common::{
    Body, Delta, Event, Fact, HeadAndTail, ItemId, ItemKind, ToolFact, TurnFact,
};

/// The items that were open where a client left. Fed with the client's events, in the order of
/// their numbers.
pub(crate) struct OpenItems {
    /// The last number that was fed.
    last: u64,
    /// Whether the step in which the client left is over, so that no such item is open.
    over: bool,
}

impl OpenItems {
    /// For a client that has everything up to `after`.
    pub(crate) fn after(after: u64) -> Self {
        Self { last: after, over: after == 0 }
    }

    /// Adds the text of every finished item that has no piece in `events`. The events must be
    /// complete up to the last one.
    pub(crate) fn complete_items(&mut self, events: &mut Vec<Arc<Event>>) {
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
            // Blocks stream one after the other, so the missing pieces belong to the last ones.
            for (item, kind, so_far) in
                finished(fact).rev().filter(|(item, ..)| !pieces.contains(item))
            {
                // Without a free number, no piece of the item is missing.
                let Some(range) = free.last_mut() else { continue };
                range.end -= 1;
                let body = Body::Delta(Delta::ItemSoFar { item, kind, so_far });
                let Event { at, turn, step, .. } = **event;
                whole.push(Arc::new(Event { seq: range.end, at, turn, step, body }));
                free.pop_if(|range| range.is_empty());
            }
            self.over = fact.started_turn().is_some()
                || matches!(
                    fact,
                    Fact::Turn(TurnFact::StepFinished { .. } | TurnFact::Finished { .. })
                );
            if self.over {
                break;
            }
        }
        events.append(&mut whole);
        events.sort_by_key(|event| event.seq);
    }
}

/// The item that a delta belongs to.
fn piece_of(event: &Event) -> Option<ItemId> {
    match event.delta()? {
        Delta::Text { item, .. } | Delta::Thought { item, .. } | Delta::Output { item, .. } => {
            Some(*item)
        }
        Delta::ItemSoFar { item, .. } => Some(*item),
        Delta::Status { .. }
        | Delta::Retrying { .. }
        | Delta::Gap { .. }
        | Delta::NotSaved { .. }
        | Delta::SavedAgain => None,
    }
}

/// The items that a fact carries in full, with their text.
fn finished(fact: &Fact) -> impl DoubleEndedIterator<Item = (ItemId, ItemKind, HeadAndTail)> {
    let (blocks, result) = match fact {
        Fact::Turn(TurnFact::AssistantMessage(message)) => (message.blocks.as_slice(), None),
        Fact::Tool(ToolFact::Finished(result)) => (&[][..], Some(result)),
        _ => (&[][..], None),
    };
    let text = |text: &String| HeadAndTail { head: text.clone(), ..HeadAndTail::default() };
    let blocks = blocks.iter().map(move |block| (block.item, block.kind.into(), text(&block.text)));
    blocks.chain(result.map(|result| (result.call.item(), ItemKind::Output, result.output.clone())))
}

#[cfg(test)]
mod tests {
    use holdpoint_common::{AssistantMessage, Block, BlockKind, Timestamp};

    use super::*;

    /// Each missing piece leaves one free number, and the missing pieces belong to the last blocks.
    #[test]
    fn missing_pieces_belong_to_the_last_block() {
        let block = |item, text: &str| Block {
            item: ItemId(item),
            kind: BlockKind::Text,
            text: text.to_owned(),
            signature: None,
            calls_before: 0,
        };
        let blocks = vec![block(3, "known"), block(4, "cut")];
        let body = Body::Fact(Fact::Turn(TurnFact::AssistantMessage(
            AssistantMessage { blocks, ..AssistantMessage::default() }.into(),
        )));
        let mut events =
            vec![Arc::new(Event { seq: 12, at: Timestamp(0), turn: None, step: None, body })];
        OpenItems::after(10).complete_items(&mut events);
        let so_far = HeadAndTail { head: "cut".to_owned(), ..HeadAndTail::default() };
        let whole = Delta::ItemSoFar { item: ItemId(4), kind: ItemKind::Text, so_far };
        assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [11, 12]);
        assert_eq!(events[0].delta(), Some(&whole));
    }
}
