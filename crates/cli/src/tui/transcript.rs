//! Folds a session's events into the entries that the screen shows.

mod entry;

use std::collections::HashMap;

use holdpoint_common::{
    AssistantMessage, BlockKind, Body, Delta, Event, Fact, HeadAndTail, ItemId, ItemKind, Part,
    ToolFact, ToolResult, TurnFact,
};
use holdpoint_tools::shown::prose;

pub(crate) use self::entry::{Entry, Key, Kind, Tool, ToolState};
use crate::narrator::{AskEnd, Narration, Narrator, Remark, TurnEnd};
use crate::summaries::first_line_summary;
use crate::tone::Tone;

/// The entries of a session, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    entries: Vec<Entry>,
    /// The indices of open items and unfinished calls in `entries`.
    items: HashMap<ItemId, usize>,
    narrator: Narrator,
    /// The index of the open turn's interrupt note, until its receipt is added.
    cut: Option<usize>,
}

impl Transcript {
    /// An empty transcript. `own_pid` is the id of this process.
    pub(crate) fn new(own_pid: u32) -> Self {
        Self { narrator: Narrator::new(own_pid), ..Self::default() }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Removes all entries but the open items.
    pub(crate) fn clear(&mut self) {
        let open_indices: std::collections::HashSet<usize> = self.items.values().copied().collect();
        let mut new_indices = HashMap::new();
        let mut entries = Vec::new();
        for (at, entry) in std::mem::take(&mut self.entries).into_iter().enumerate() {
            if open_indices.contains(&at) {
                new_indices.insert(at, entries.len());
                entries.push(entry);
            }
        }
        self.items.retain(|_, at| {
            new_indices.get(at).is_some_and(|new| {
                *at = *new;
                true
            })
        });
        (self.entries, self.cut) = (entries, None);
    }

    /// Adds an event. Untrusted text is made safe to print here.
    pub(crate) fn add(&mut self, event: &Event) {
        let narrations = self.narrator.narrate(event);
        match &event.body {
            Body::Delta(delta) => self.add_delta(delta),
            Body::Fact(fact) => self.add_fact(fact),
        }
        for narration in narrations {
            self.show_narration(event.seq, narration);
        }
    }

    /// Adds a piece of an answer or of an output.
    fn add_delta(&mut self, delta: &Delta) {
        match delta {
            Delta::Text { item, text } => self.append_piece(*item, BlockKind::Text, text),
            Delta::Thought { item, text } => self.append_piece(*item, BlockKind::Thought, text),
            Delta::Output { item, text } => self.change_tool(*item, |tool| tool.output.push(text)),
            Delta::ItemSoFar { item, kind: ItemKind::Output, so_far } => {
                self.change_tool(*item, |tool| tool.output = so_far.clone());
            }
            Delta::ItemSoFar { item, kind, so_far } => {
                let kind =
                    if *kind == ItemKind::Thought { BlockKind::Thought } else { BlockKind::Text };
                // Only an output can have a tail.
                self.set_text(*item, kind, &so_far.head, true);
            }
            _ => {}
        }
    }

    /// Adds the parts of a fact that the narrator leaves to the view.
    fn add_fact(&mut self, fact: &Fact) {
        match fact {
            fact if fact.started_turn().is_some() => self.cut = None,
            Fact::Turn(TurnFact::AssistantMessage(message)) => self.add_message(message),
            Fact::Tool(ToolFact::Started { call }) => {
                self.change_tool(call.item(), |tool| tool.state = ToolState::Runs)
            }
            Fact::Tool(ToolFact::Finished(result)) => self.finish_call(result),
            _ => {}
        }
    }

    fn show_narration(&mut self, seq: u64, narration: Narration) {
        match narration {
            Narration::Remark(remark) => self.add_note(seq, remark),
            // The status line and the queue show it.
            Narration::State(_) => {}
            // The same hold may be in force again, with no entry in between.
            Narration::Hold(remark) => {
                let last = self.entries.last().map(|entry| &entry.kind);
                if !matches!(last, Some(Kind::Note(last)) if *last == remark) {
                    self.add_note(seq, remark);
                }
            }
            Narration::Prompt { text, by } => self.push(Key::Event(seq), Kind::Prompt { text, by }),
            // The input line may have the whole text.
            Narration::Returned { text, .. } => {
                self.add_note(
                    seq,
                    Remark::new(
                        Tone::Warning,
                        format!("handed back: {}", first_line_summary(&text)),
                    ),
                );
            }
            Narration::AskEnd(end) => self.add_ask_end(seq, &end),
            Narration::TextCut(item, note) => self.insert_note_after(Key::Item(item), seq, note),
            Narration::Cut(note) => {
                self.add_note(seq, note);
                self.cut = Some(self.entries.len() - 1);
            }
            Narration::TurnEnd(end) => self.add_turn_end(seq, end),
        }
    }

    /// Adds the end of an ask to its call, or as a note if the call is older than the received
    /// events. The title of a call shows the subject of its Confirm.
    fn add_ask_end(&mut self, seq: u64, end: &AskEnd) {
        let AskEnd { ask, text, tone } = end;
        match ask.as_ref().filter(|ask| self.items.contains_key(&ask.call.item())) {
            Some(ask) => {
                let subject = if ask.is_confirm { "⏸ " } else { &*ask.subject };
                self.change_tool(ask.call.item(), |tool| {
                    tool.asks.push(Remark::new(*tone, format!("{subject}→ {text}")))
                });
            }
            None => self.add_note(seq, Remark::new(*tone, format!("{}→ {text}", end.subject()))),
        }
    }

    /// Adds the end of a turn. The receipt replaces the note of the cut.
    fn add_turn_end(&mut self, seq: u64, end: TurnEnd) {
        self.close_items();
        let cut = self.cut.take().and_then(|at| self.entries.get_mut(at));
        match (end.cause, cut) {
            (Some(note), Some(entry)) => {
                entry.version += 1;
                entry.kind = Kind::Note(note);
            }
            (Some(note), None) => self.add_note(seq, note),
            (None, _) => {}
        }
        self.push(Key::End(seq), Kind::Note(end.summary));
    }

    /// Appends a piece of text or thought.
    fn append_piece(&mut self, item: ItemId, kind: BlockKind, piece: &str) {
        let piece = prose(piece);
        match self.items.get(&item).and_then(|at| self.entries.get_mut(*at)) {
            Some(entry) => {
                entry.version += 1;
                if let Kind::Text { text, .. } | Kind::Thought { text, .. } = &mut entry.kind {
                    text.push_str(&piece);
                }
            }
            None => self.set_text(item, kind, &piece, true),
        }
    }

    /// Sets the whole text or thought so far.
    fn set_text(&mut self, item: ItemId, kind: BlockKind, whole: &str, open: bool) {
        let text = prose(whole).into_owned();
        let kind = match kind {
            BlockKind::Text => Kind::Text { text, open },
            BlockKind::Thought => Kind::Thought { text, open },
        };
        match self.items.get(&item).and_then(|at| self.entries.get_mut(*at)) {
            Some(entry) => {
                entry.version += 1;
                entry.kind = kind;
            }
            None => self.push_item(item, kind),
        }
    }

    /// Adds a finished answer: its texts, which replace those from deltas, and its calls.
    fn add_message(&mut self, message: &AssistantMessage) {
        let before = self.entries.len();
        for part in message.parts() {
            match part {
                Part::Block(block) if block.text.is_empty() => {}
                Part::Block(block) => {
                    self.set_text(block.item, block.kind, &block.text, false);
                    self.items.remove(&block.item);
                }
                Part::Call(call) => {
                    let (asks, output, state) =
                        (Vec::new(), HeadAndTail::default(), ToolState::Waits);
                    let tool = Tool { call: call.clone(), asks, output, state };
                    self.push_item(call.id.item(), Kind::Tool(Box::new(tool)));
                }
            }
        }
        // In a replay there are no deltas, so the answer's entries follow the note of the cut. The
        // note moves behind them.
        if let Some(at) = self.cut.filter(|_| self.entries.len() > before) {
            self.entries[at..].rotate_left(1);
            self.items.values_mut().filter(|index| **index > at).for_each(|index| *index -= 1);
            self.cut = Some(self.entries.len() - 1);
        }
    }

    /// Inserts a note right after the entry `key`.
    fn insert_note_after(&mut self, key: Key, seq: u64, note: Remark) {
        self.add_note(seq, note);
        let last = self.entries.len() - 1;
        let Some(at) = self.entries.iter().rposition(|entry| entry.key == key).map(|at| at + 1)
        else {
            return;
        };
        // The entries after the note move by one, and so do their indices.
        self.entries[at..].rotate_right(1);
        let moved = self
            .items
            .values_mut()
            .chain(&mut self.cut)
            .filter(|index| (at..last).contains(&**index));
        moved.for_each(|index| *index += 1);
    }

    fn finish_call(&mut self, result: &ToolResult) {
        self.change_tool(result.call.item(), |tool| {
            tool.output = result.output.clone();
            tool.state = ToolState::Ended { status: result.status, result: result.result.clone() };
        });
        self.items.remove(&result.call.item());
    }

    /// Closes the items that the ended turn left open.
    fn close_items(&mut self) {
        for (_, at) in self.items.drain() {
            let Some(entry) = self.entries.get_mut(at) else { continue };
            entry.version += 1;
            match &mut entry.kind {
                Kind::Text { open, .. } | Kind::Thought { open, .. } => *open = false,
                _ => {}
            }
        }
    }

    fn change_tool(&mut self, item: ItemId, change: impl FnOnce(&mut Tool)) {
        let Some(entry) = self.items.get(&item).and_then(|at| self.entries.get_mut(*at)) else {
            return;
        };
        if let Kind::Tool(tool) = &mut entry.kind {
            entry.version += 1;
            change(tool);
        }
    }

    fn add_note(&mut self, seq: u64, note: Remark) {
        self.push(Key::Event(seq), Kind::Note(note));
    }

    fn push_item(&mut self, item: ItemId, kind: Kind) {
        self.items.insert(item, self.entries.len());
        self.push(Key::Item(item), kind);
    }

    fn push(&mut self, key: Key, kind: Kind) {
        self.entries.push(Entry { key, version: 0, kind });
    }
}
