//! The items that are streaming: which part of each the editor has.

use std::collections::BTreeMap;

use holdpoint_common::{HeadAndTail, ItemId};

/// The streaming items of the open step.
#[derive(Debug, Default)]
pub(super) struct Items(BTreeMap<ItemId, Progress>);

/// Positions in the text of an item, in bytes.
#[derive(Debug, Default, Clone, Copy)]
struct Progress {
    /// The position at which the next piece begins.
    at: u64,
    /// The end of the part that the editor has.
    sent: u64,
}

impl Items {
    /// Adds a piece of an item. Returns the part of it that the editor lacks.
    pub(super) fn piece<'a>(&mut self, item: ItemId, piece: &'a str) -> &'a str {
        let progress = self.0.entry(item).or_default();
        let known = progress.sent.saturating_sub(progress.at);
        progress.at = progress.at.saturating_add(piece.len() as u64);
        progress.sent = progress.sent.max(progress.at);
        usize::try_from(known).ok().and_then(|known| piece.get(known..)).unwrap_or_default()
    }

    /// Replaces the pieces of an item by its text so far. Returns the part that the editor lacks.
    pub(super) fn so_far(&mut self, item: ItemId, text: &HeadAndTail) -> String {
        let progress = self.0.entry(item).or_default();
        let rest = rest(text, progress.sent);
        progress.at = length(text);
        progress.sent = progress.sent.max(progress.at);
        rest
    }

    /// Ends an item with its whole text. Returns the part that the editor lacks.
    pub(super) fn finish(&mut self, item: ItemId, text: &HeadAndTail) -> String {
        let sent = self.0.remove(&item).unwrap_or_default().sent;
        rest(text, sent)
    }

    /// Forgets all items, because their step is over.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

fn length(text: &HeadAndTail) -> u64 {
    (text.head.len() + text.tail.len()) as u64 + text.dropped
}

/// The text from the position `sent` on. Bytes that were left out are counted in a line of their
/// own.
fn rest(text: &HeadAndTail, sent: u64) -> String {
    let from = |text: &str, begin: u64, sent: u64| {
        let known = usize::try_from(sent.saturating_sub(begin)).unwrap_or(usize::MAX);
        text.get(known..).unwrap_or_default().to_owned()
    };
    let tail_begin = text.head.len() as u64 + text.dropped;
    let mut rest = from(&text.head, 0, sent);
    if text.dropped > 0 && sent < tail_begin {
        let left_out = tail_begin - sent.max(text.head.len() as u64);
        rest.push_str(&format!("\n[... {left_out} bytes left out ...]\n"));
    }
    rest + &from(&text.tail, tail_begin, sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(head: &str) -> HeadAndTail {
        HeadAndTail { head: head.to_owned(), ..HeadAndTail::default() }
    }

    #[test]
    fn m_h1_an_editor_gets_every_part_of_an_item_once() {
        let (mut items, item) = (Items::default(), ItemId(1));
        assert_eq!(items.piece(item, "one "), "one ");
        // The stream broke, and begins again with the text so far.
        assert_eq!(items.so_far(item, &text("one two ")), "two ");
        assert_eq!(items.piece(item, "three"), "three");
        // It broke again, and the text so far is shorter than the part that was sent.
        assert_eq!(items.so_far(item, &text("one ")), "");
        assert_eq!(items.piece(item, "two three, f"), ", f");
        assert_eq!(items.finish(item, &text("one two three, four")), "our");
        assert_eq!(items.finish(ItemId(2), &text("at once")), "at once");
    }

    #[test]
    fn m_h1_output_that_was_left_out_is_counted() {
        let cut = HeadAndTail { head: "head".to_owned(), dropped: 10, tail: "tail".to_owned() };
        let rest_after = |sent: usize| {
            let (mut items, item) = (Items::default(), ItemId(1));
            let pieces = "x".repeat(sent);
            items.piece(item, &pieces);
            items.finish(item, &cut)
        };
        assert_eq!(rest_after(0), "head\n[... 10 bytes left out ...]\ntail");
        assert_eq!(rest_after(6), "\n[... 8 bytes left out ...]\ntail");
        assert_eq!(rest_after(16), "il");
        assert_eq!(rest_after(18), "");
    }
}
