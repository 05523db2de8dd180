//! Folds a session's events into the entries that the screen shows.

mod ended;
mod entry;

use std::collections::HashMap;

use holdpoint_common::{
    AskId, AskRequest, AssistantMessage, BlockKind, Body, CallId, Delta, Event, Fact, Gap, Gaps, Hold, HoldCause,
    ItemId, ItemKind, Kept, Part, PauseKind, PromptId, RestoreCause, Tasks, Timestamp, ToolResult,
};
use holdpoint_tools::shown::{line, prose, prose_line};

pub(crate) use self::entry::{Entry, Key, Kind, Tool, ToolState};
use super::style::Tone;
use crate::summaries::clock::Clock;
use crate::summaries::{about, answered, cut, paused, runs, sent_again, setting, shorten, sum_up};
use crate::ui::Style;

/// The entries of a session, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    entries: Vec<Entry>,
    /// The indices of open items and unfinished calls in `entries`.
    items: HashMap<ItemId, usize>,
    /// Accepted prompts that have not started, with their text and sender.
    prompts: HashMap<PromptId, (String, String)>,
    /// Open asks: the call, the question in one line, and whether it is a Confirm.
    asks: HashMap<AskId, (CallId, String, bool)>,
    tasks: Tasks,
    /// The clock of the open turn, if its start was received.
    clock: Option<Clock>,
    steps: u32,
    /// The index of the open turn's interrupt note, until its receipt is added.
    cut: Option<usize>,
    /// Whether a hold is in force.
    held: bool,
    /// This process, whose prompts and answers are shown without a name.
    own: u32,
}

impl Transcript {
    /// An empty transcript of the process `own`.
    pub(crate) fn new(own: u32) -> Self {
        Self { own, ..Self::default() }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Removes all entries but the open items.
    pub(crate) fn clear(&mut self) {
        let open: std::collections::HashSet<usize> = self.items.values().copied().collect();
        let mut kept = HashMap::new();
        let mut entries = Vec::new();
        for (at, entry) in std::mem::take(&mut self.entries).into_iter().enumerate() {
            if open.contains(&at) {
                kept.insert(at, entries.len());
                entries.push(entry);
            }
        }
        self.items.retain(|_, at| {
            kept.get(at).is_some_and(|now| {
                *at = *now;
                true
            })
        });
        (self.entries, self.cut) = (entries, None);
    }

    /// Adds an event. Untrusted text is made safe to print here.
    pub(crate) fn add(&mut self, event: &Event) {
        match &event.body {
            Body::Delta(delta) => self.delta(event.seq, delta),
            Body::Fact(fact) => self.fact(event.seq, event.at, fact),
        }
    }

    fn delta(&mut self, seq: u64, delta: &Delta) {
        match delta {
            Delta::Text { item, text } => self.piece(*item, BlockKind::Text, text),
            Delta::Thought { item, text } => self.piece(*item, BlockKind::Thought, text),
            Delta::Output { item, text } => self.tool(*item, |tool| tool.output.push(text)),
            Delta::ItemSoFar { item, kind: ItemKind::Output, so_far } => {
                self.tool(*item, |tool| tool.output = so_far.clone());
            }
            Delta::ItemSoFar { item, kind, so_far } => {
                let kind = if *kind == ItemKind::Thought { BlockKind::Thought } else { BlockKind::Text };
                self.set_text(*item, kind, &so_far.head, true);
            }
            Delta::Retrying { next, tries, wait_ms, reason } => {
                let wait = wait_ms.div_ceil(1000);
                self.note(seq, Tone::Warning, format!("{}; try {next} of {tries} in {wait} s", prose_line(reason)));
            }
            Delta::Gap { from, to } => {
                let gap = Gaps::from_iter([Gap { from: *from, to: *to }]);
                self.note(seq, Tone::Warning, gap.to_string());
            }
            Delta::NotSaved { reason } => self.note(seq, Tone::Warning, format!("not saved: {}", prose_line(reason))),
            Delta::SavedAgain => self.note(seq, Tone::Dim, "saved again".to_owned()),
            Delta::Status { .. } => {}
        }
    }

    fn fact(&mut self, seq: u64, at: Timestamp, fact: &Fact) {
        self.tasks.apply(fact);
        self.clock.iter_mut().for_each(|clock| clock.tick(at, fact));
        if let Some((style, line)) = runs::line(fact, at, &self.tasks) {
            let tone = match style {
                Style::Bold | Style::Fault => Tone::Strong,
                Style::Warning => Tone::Warning,
                Style::Plain | Style::Dim => Tone::Dim,
            };
            self.note(seq, tone, line);
        }
        match fact {
            // A cut also ends the hold, so its release gets no note.
            Fact::TurnCut { .. } => {
                self.held = false;
                self.note(seq, Tone::Strong, "Agent interrupted".to_owned());
                self.cut = Some(self.entries.len() - 1);
            }
            Fact::PromptAccepted { prompt, text, by } => {
                let by = if by.pid == Some(self.own) {
                    String::new()
                } else {
                    prose_line(&by.origin_without_pid()).into_owned()
                };
                self.prompts.insert(*prompt, (prose(text).into_owned(), by));
            }
            Fact::PromptReturned { prompt, text } => {
                self.prompts.remove(prompt);
                self.note(seq, Tone::Warning, format!("handed back: {}", sum_up(text)));
            }
            Fact::TurnStarted { prompt, .. } => {
                (self.clock, self.steps, self.cut) = (Some(Clock::begun(at)), 0, None);
                self.begin(seq, *prompt);
            }
            Fact::PromptDelivered { prompt, .. } => self.begin(seq, *prompt),
            Fact::IterationStarted { .. } => (self.clock, self.steps, self.cut) = (Some(Clock::begun(at)), 0, None),
            Fact::StepStarted => self.steps += 1,
            Fact::AssistantMessage(message) => self.message(seq, message),
            Fact::StepFinished { omitted: Some(omission), .. } => self.note(seq, Tone::Warning, sent_again(omission)),
            Fact::ProjectCut { reason } => self.note(seq, Tone::Warning, prose_line(reason).into_owned()),
            Fact::HistoryCut(left_out) => self.note(seq, Tone::Warning, cut(left_out)),
            Fact::ToolStarted { call } => self.tool(call.item(), |tool| tool.state = ToolState::Runs),
            Fact::ToolFinished(result) => self.finished(result),
            Fact::JobStarted { job } => {
                let command = shorten(&line(&job.command));
                self.note(seq, Tone::Dim, format!("⚙ job {} in the background: {command}", job.id));
            }
            Fact::JobEnded { job, end } => self.note(seq, Tone::Dim, format!("⚙ job {job}: {end}")),
            Fact::AskRaised { ask } => {
                let is_confirm = matches!(&ask.request, AskRequest::Pause(pause) if pause.kind == PauseKind::Confirm);
                self.asks.insert(ask.id.clone(), (ask.call, about(&ask.request), is_confirm));
            }
            Fact::AskAnswered { ask, answer, by } => self.add_ask_result(seq, ask, &answered(answer, by, self.own)),
            Fact::AskClosed { ask, cause } => self.add_ask_result(seq, ask, &format!("closed: {cause}")),
            Fact::HoldChanged { hold } => self.hold(seq, hold),
            Fact::SessionRenamed { .. }
            | Fact::ModelChanged { .. }
            | Fact::DebugChanged { .. }
            | Fact::AsksChanged { .. } => self.note(seq, Tone::Dim, setting(fact).unwrap_or_default()),
            Fact::TurnFinished { .. } => self.ended(seq, fact),
            Fact::SessionRestored { cause: RestoreCause::Panic } => {
                self.note(seq, Tone::Warning, "the session failed and was rebuilt from its log".to_owned());
            }
            Fact::SessionRestored { cause: RestoreCause::Restart } => {
                self.note(seq, Tone::Dim, "the daemon was restarted".to_owned());
            }
            Fact::SessionClosed { by } => {
                self.note(seq, Tone::Strong, format!("closed {}", prose_line(&by.origin())));
            }
            // Runs and tasks are handled above.
            _ => {}
        }
    }

    /// Notes a change of the hold. An answer to a restored ask turns the hold into a request for
    /// the rest of the turn. The session counts as held meanwhile, so that the same note does not
    /// appear twice in a row.
    fn hold(&mut self, seq: u64, hold: &Hold) {
        let was_held = self.held;
        self.held = match hold {
            Hold::Off => false,
            Hold::Requested { .. } => was_held,
            Hold::Standing { .. } => true,
        };
        let text = match hold {
            Hold::Off if was_held => "▶ released".to_owned(),
            Hold::Off | Hold::Requested { .. } => return,
            Hold::Standing { cause: HoldCause::User { by }, .. } if by.pid == Some(self.own) => "⏸ PAUSED".to_owned(),
            Hold::Standing { cause, .. } => paused(cause),
        };
        let last = self.entries.last().map(|entry| &entry.kind);
        if !matches!(last, Some(Kind::Note { text: last, .. }) if *last == text) {
            self.note(seq, Tone::Dim, text);
        }
    }

    /// Adds the result of an ask to its call, or as a note if the call is older than the received
    /// events.
    fn add_ask_result(&mut self, seq: u64, ask: &AskId, how: &str) {
        let Some((call, question, is_confirm)) = self.asks.remove(ask) else {
            return self.note(seq, Tone::Dim, format!("→ {how}"));
        };
        if self.items.contains_key(&call.item()) {
            let line = if is_confirm { format!("⏸ → {how}") } else { format!("{question}→ {how}") };
            self.tool(call.item(), |tool| tool.asks.push(line));
        } else {
            self.note(seq, Tone::Dim, format!("{question}→ {how}"));
        }
    }

    /// Adds the entry of a prompt that has started.
    fn begin(&mut self, seq: u64, prompt: PromptId) {
        if let Some((text, by)) = self.prompts.remove(&prompt) {
            self.push(Key::Event(seq), Kind::Prompt { text, by });
        }
    }

    /// Appends a piece of text or thought.
    fn piece(&mut self, item: ItemId, kind: BlockKind, piece: &str) {
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
    fn message(&mut self, seq: u64, message: &AssistantMessage) {
        let before = self.entries.len();
        for part in message.parts() {
            match part {
                Part::Block(block) if block.text.is_empty() => {}
                Part::Block(block) => {
                    self.set_text(block.item, block.kind, &block.text, false);
                    self.items.remove(&block.item);
                }
                Part::Call(call) => {
                    let (asks, output, state) = (Vec::new(), Kept::default(), ToolState::Waits);
                    let tool = Tool { call: call.clone(), asks, output, state };
                    self.push_item(call.id.item(), Kind::Tool(Box::new(tool)));
                }
            }
        }
        // In a replay there are no deltas, so the answer's entries follow the note of the cut. The
        // note moves behind them.
        if let Some(at) = self.cut.filter(|_| self.entries.len() > before) {
            self.entries[at..].rotate_left(1);
            self.items.values_mut().filter(|place| **place > at).for_each(|place| *place -= 1);
            self.cut = Some(self.entries.len() - 1);
        }
        let last = message.blocks.iter().rfind(|block| !block.text.is_empty());
        if let Some(last) = last.filter(|block| message.partial && block.kind == BlockKind::Text) {
            self.insert_note_after(Key::Item(last.item), seq, Tone::Dim, "(cut here)".to_owned());
        }
    }

    /// Inserts a note right after the entry `key`.
    fn insert_note_after(&mut self, key: Key, seq: u64, tone: Tone, text: String) {
        self.note(seq, tone, text);
        let last = self.entries.len() - 1;
        let Some(at) = self.entries.iter().rposition(|entry| entry.key == key).map(|at| at + 1) else { return };
        // The entries after it move by one, and so do their indices.
        self.entries[at..].rotate_right(1);
        let moved = self.items.values_mut().chain(&mut self.cut).filter(|place| (at..last).contains(&**place));
        moved.for_each(|place| *place += 1);
    }

    fn finished(&mut self, result: &ToolResult) {
        self.tool(result.call.item(), |tool| {
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

    fn tool(&mut self, item: ItemId, change: impl FnOnce(&mut Tool)) {
        let Some(entry) = self.items.get(&item).and_then(|at| self.entries.get_mut(*at)) else { return };
        if let Kind::Tool(tool) = &mut entry.kind {
            entry.version += 1;
            change(tool);
        }
    }

    fn note(&mut self, seq: u64, tone: Tone, text: String) {
        self.push(Key::Event(seq), Kind::Note { tone, text });
    }

    fn push_item(&mut self, item: ItemId, kind: Kind) {
        self.items.insert(item, self.entries.len());
        self.push(Key::Item(item), kind);
    }

    fn push(&mut self, key: Key, kind: Kind) {
        self.entries.push(Entry { key, version: 0, kind });
    }
}
