//! Shows events step by step: the model's words on standard output, everything else as short lines
//! on standard error.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use holdpoint_common::{
    Answer, AnsweredBy, AskFact, AsksMode, AssistantMessage, Body, CallId, Delta, Event, Fact,
    HeadAndTail, Hold, HoldCause, ItemId, ItemKind, RunLimit, SessionFact, Tasks, ToolCall,
    ToolFact, ToolResult, ToolStatus, TurnFact,
};
use holdpoint_tools::shown::prose;

use super::asked;
use crate::narrator::{AskEnd, Narration, Narrator, Remark, TurnEnd};
use crate::summaries::{call_summary, first_line_summary, result_text};
use crate::tone::Tone;
use crate::ui::Ui;

/// The maximum length in bytes of an unfinished output line that is held back.
const LONG_LINE: usize = 4 * 1024;

/// The step-by-step view of a session.
#[derive(Default)]
pub(crate) struct StepView {
    /// Whether asks are shown elsewhere, by the reader of the keys.
    asks_elsewhere: bool,
    /// The bytes of each open text or thought that have been shown.
    shown: BTreeMap<ItemId, usize>,
    /// The unfinished calls of the step.
    calls: BTreeMap<CallId, Call>,
    /// Whether the step has several calls, which are then numbered.
    has_numbered_calls: bool,
    /// Events up to this number are a replay, because this client fell behind. Deltas of items that
    /// have ended since may be missing from it.
    replay_to: u64,
    /// Items with deltas that may be missing. They are shown whole at their end, not piece by piece.
    skipped: BTreeSet<ItemId>,
    /// Items with a text that was replayed in one piece.
    caught_up: BTreeSet<ItemId>,
    narrator: Narrator,
    /// Whether the work of other clients is shown: their prompts, and the close of the session.
    shows_others: bool,
    /// Whether several asks were open at once: answers then name their asks.
    several_asks: bool,
    /// Whether a setting denied a Confirm in place of a user.
    denied_unseen: bool,
}

struct Call {
    call: ToolCall,
    /// The position among the calls of its answer, from 1.
    number: usize,
    started: bool,
    /// The number of bytes of output received.
    received: u64,
    /// The last line of output, while it is unfinished.
    line: String,
}

impl StepView {
    pub(crate) fn new(asks_elsewhere: bool) -> Self {
        Self { asks_elsewhere, narrator: Narrator::new(std::process::id()), ..Self::default() }
    }

    /// Shows the work of other clients as well.
    pub(crate) fn with_others(self) -> Self {
        Self { shows_others: true, ..self }
    }

    /// Treats the next events, up to `seq`, as a replay after this client fell behind.
    pub(crate) fn resume(&mut self, seq: u64) {
        self.replay_to = seq;
        self.skipped.clear();
        self.caught_up.clear();
    }

    /// Decides whether to show a delta. An item whose deltas may be missing from the replay is
    /// skipped from then on.
    fn admit_delta(&mut self, seq: u64, item: ItemId) -> bool {
        if seq <= self.replay_to && !self.caught_up.contains(&item) {
            self.skipped.insert(item);
        }
        !self.skipped.contains(&item)
    }

    pub(crate) fn show(&mut self, event: &Event, ui: &mut Ui) -> io::Result<()> {
        let narrations = self.narrator.narrate(event);
        if !self.shows_others
            && matches!(event.fact(), Some(Fact::Session(SessionFact::Closed { .. })))
        {
            // The end of this program's own turn already reports a close.
            return Ok(());
        }
        match &event.body {
            Body::Delta(delta) => self.show_delta(event.seq, delta, ui)?,
            Body::Fact(fact) => self.show_fact(fact, ui)?,
        }
        narrations.into_iter().try_for_each(|narration| self.show_narration(narration, ui))?;
        event.fact().map_or(Ok(()), |fact| show_release_hint(fact, ui))
    }

    /// Puts an event into words without showing it. Each event is shown or narrated once.
    pub(super) fn narrate(&mut self, event: &Event) -> Vec<Narration> {
        self.narrator.narrate(event)
    }

    /// The session's tasks.
    pub(super) fn tasks(&self) -> &Tasks {
        self.narrator.tasks()
    }

    /// Shows a piece of an answer or of an output.
    fn show_delta(&mut self, seq: u64, delta: &Delta, ui: &mut Ui) -> io::Result<()> {
        match delta {
            Delta::Text { item, .. } | Delta::Thought { item, .. } | Delta::Output { item, .. }
                if !self.admit_delta(seq, *item) =>
            {
                Ok(())
            }
            Delta::Text { item, text } => {
                *self.shown.entry(*item).or_default() += text.len();
                ui.text(text)
            }
            Delta::Thought { item, text } => {
                *self.shown.entry(*item).or_default() += text.len();
                ui.thought(text)
            }
            Delta::Output { item, text } => self.show_output(*item, text, ui),
            Delta::ItemSoFar { item, kind: ItemKind::Output, so_far } => {
                self.catch_up(*item, so_far, ui)
            }
            Delta::ItemSoFar { item, kind, so_far } => {
                self.caught_up.insert(*item);
                self.show_rest(*item, *kind, &so_far.head, ui)
            }
            _ => Ok(()),
        }
    }

    /// Shows the parts of a fact that the narrator leaves to the view.
    fn show_fact(&mut self, fact: &Fact, ui: &mut Ui) -> io::Result<()> {
        match fact {
            fact if fact.started_turn().is_some() => self.denied_unseen = false,
            Fact::Turn(TurnFact::StepStarted) => self.calls.clear(),
            Fact::Turn(TurnFact::AssistantMessage(message)) => self.show_message(message, ui)?,
            Fact::Tool(ToolFact::Started { call }) => {
                if let Some(call) = self.calls.get_mut(call) {
                    call.started = true;
                    ui.line(
                        Tone::Strong,
                        &format!(
                            "● {}{}",
                            call.number_prefix(self.has_numbered_calls),
                            call_summary(&call.call)
                        ),
                    )?;
                }
            }
            Fact::Tool(ToolFact::Finished(result)) => self.show_result(result, ui)?,
            Fact::Ask(AskFact::Raised { ask }) => {
                self.several_asks |= self.narrator.open_asks() > 1;
                if !self.asks_elsewhere {
                    asked::show_alone(ask, ui)?;
                }
            }
            // Under `approve`, the advice of `show_turn_end` to use `--asks approve` would be
            // wrong: that setting denies only a Confirm whose call a deny rule might match.
            Fact::Ask(AskFact::Answered {
                answer: Answer::Deny { .. },
                by: AnsweredBy::Setting { asks: AsksMode::Deny },
                ..
            }) => {
                self.denied_unseen = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn show_narration(&mut self, narration: Narration, ui: &mut Ui) -> io::Result<()> {
        match narration {
            Narration::Remark(remark)
            | Narration::State(remark)
            | Narration::Hold(remark)
            | Narration::TextCut(_, remark) => show_remark(&remark, ui),
            Narration::Prompt { text, by } if self.shows_others => {
                let by = by.map(|by| format!("({by}) ")).unwrap_or_default();
                text.trim_end().lines().enumerate().try_for_each(|(at, line)| {
                    ui.line(Tone::User, &format!("> {}{line}", if at == 0 { &*by } else { "" }))
                })
            }
            Narration::Returned { prompt, text } => {
                ui.line(Tone::Warning, &format!("handed back, prompt {prompt}: {text}"))
            }
            // A cut is shown with its receipt.
            Narration::Prompt { .. } | Narration::Cut(_) => Ok(()),
            Narration::AskEnd(end) => self.show_ask_end(&end, ui),
            Narration::TurnEnd(end) => self.show_turn_end(&end, ui),
        }
    }

    /// Shows the parts of an answer that deltas have not shown, and ends its line.
    fn show_message(&mut self, message: &AssistantMessage, ui: &mut Ui) -> io::Result<()> {
        for block in &message.blocks {
            self.show_rest(block.item, block.kind.into(), &block.text, ui)?;
            self.shown.remove(&block.item);
        }
        ui.end_line()?;
        self.has_numbered_calls = message.calls.len() > 1;
        for (index, call) in message.calls.iter().enumerate() {
            let call = call.clone();
            let number = index + 1;
            self.calls.insert(
                call.id,
                Call { call, number, started: false, received: 0, line: String::new() },
            );
        }
        Ok(())
    }

    /// Shows the rest of a text or thought.
    fn show_rest(
        &mut self,
        item: ItemId,
        kind: ItemKind,
        whole: &str,
        ui: &mut Ui,
    ) -> io::Result<()> {
        let shown = self.shown.entry(item).or_default();
        let rest = whole.get(*shown..).unwrap_or_default();
        *shown = whole.len().max(*shown);
        match kind {
            ItemKind::Thought => ui.thought(rest),
            ItemKind::Text | ItemKind::Output => ui.text(rest),
        }
    }

    /// Shows the output that was missed when this client fell behind.
    fn catch_up(&mut self, item: ItemId, so_far: &HeadAndTail, ui: &mut Ui) -> io::Result<()> {
        self.caught_up.insert(item);
        let Some(call) = self.calls.get_mut(&CallId(item.0)) else { return Ok(()) };
        let whole = (so_far.head.len() + so_far.tail.len()) as u64 + so_far.dropped;
        let received = usize::try_from(call.received).unwrap_or(usize::MAX);
        // Up to here, the text was received or is in the head.
        let covered = call.received.max(so_far.head.len() as u64);
        let missed = whole.saturating_sub(covered);
        let tail = so_far.tail.len() as u64;
        let mut text = so_far.head.get(received..).unwrap_or_default().to_owned();
        if missed <= tail {
            let from = so_far.tail.len() - usize::try_from(missed).unwrap_or_default();
            text.push_str(so_far.tail.get(from..).unwrap_or_default());
        } else {
            let left_out = missed - tail;
            text.push_str(&format!("\n[... {left_out} bytes not shown ...]\n{}", so_far.tail));
        }
        self.show_output(item, &text, ui)?;
        if let Some(call) = self.calls.get_mut(&CallId(item.0)) {
            call.received = whole;
        }
        Ok(())
    }

    /// Shows the complete lines of a tool's output.
    fn show_output(&mut self, item: ItemId, text: &str, ui: &mut Ui) -> io::Result<()> {
        let is_numbered = self.has_numbered_calls;
        let Some(call) = self.calls.get_mut(&CallId(item.0)) else { return Ok(()) };
        call.received += text.len() as u64;
        let mut lines = text.split('\n');
        call.line.push_str(lines.next().unwrap_or_default());
        for line in lines {
            call.put_line(is_numbered, ui)?;
            call.line.push_str(line);
        }
        if call.line.len() > LONG_LINE {
            call.put_line(is_numbered, ui)?;
        }
        Ok(())
    }

    fn show_result(&mut self, result: &ToolResult, ui: &mut Ui) -> io::Result<()> {
        // After a restart, or if deltas were skipped, only the result has the output.
        self.skipped.remove(&result.call.item());
        self.catch_up(result.call.item(), &result.output, ui)?;
        let is_numbered = self.has_numbered_calls;
        let Some(mut call) = self.calls.remove(&result.call) else { return Ok(()) };
        if !call.line.is_empty() {
            call.put_line(is_numbered, ui)?;
        }
        let prefix = if call.started {
            call.number_prefix(is_numbered)
        } else {
            format!("{}{}: ", call.number_prefix(is_numbered), call_summary(&call.call))
        };
        let text = result_text(result.status, &first_line_summary(&result.result));
        if text.is_empty() {
            return Ok(());
        }
        let tone = match result.status {
            ToolStatus::Ok => Tone::Dim,
            ToolStatus::Error | ToolStatus::Denied | ToolStatus::Interrupted => Tone::Warning,
            ToolStatus::Panicked => Tone::Fault,
        };
        ui.line(tone, &format!("  └ {prefix}{text}"))
    }

    /// Shows the end of an ask, with its subject if several were open at once.
    fn show_ask_end(&mut self, end: &AskEnd, ui: &mut Ui) -> io::Result<()> {
        let subject = if self.several_asks { end.subject() } else { "" };
        self.several_asks &= self.narrator.open_asks() > 0;
        ui.line(end.tone, &format!("  {subject}→ {}", end.text))
    }

    fn show_turn_end(&mut self, end: &TurnEnd, ui: &mut Ui) -> io::Result<()> {
        ui.end_line()?;
        end.cause.iter().chain([&end.summary]).try_for_each(|remark| show_remark(remark, ui))?;
        if self.denied_unseen {
            ui.line(
                Tone::Warning,
                "A Confirm was denied because no user was there to answer: use a terminal, or --asks approve.",
            )?;
        }
        Ok(())
    }
}

/// Shows a remark, with its details below.
pub(super) fn show_remark(remark: &Remark, ui: &mut Ui) -> io::Result<()> {
    ui.line(remark.tone, &remark.text)?;
    remark.details.iter().try_for_each(|details| ui.line(Tone::Dim, &format!("  {details}")))
}

/// Shows the command that releases a hold in force. Users who hold a session know it.
fn show_release_hint(fact: &Fact, ui: &mut Ui) -> io::Result<()> {
    let Fact::Session(SessionFact::HoldChanged { hold: Hold::Standing { cause, .. } }) = fact
    else {
        return Ok(());
    };
    let hint = match cause {
        HoldCause::User { .. } | HoldCause::Move { .. } => return Ok(()),
        HoldCause::Limit { reached: RunLimit::Failures { .. } } => "resets the count",
        HoldCause::Limit { .. } => "grants the same amount again",
        HoldCause::Restored => "releases it",
    };
    ui.line(Tone::Dim, &format!("  `holdpoint release` {hint}"))
}

impl Call {
    fn put_line(&mut self, is_numbered: bool, ui: &mut Ui) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        ui.line(Tone::Dim, &format!("  │ {}{}", self.number_prefix(is_numbered), prose(&line)))
    }

    /// The number of the call, if its step has several.
    fn number_prefix(&self, is_numbered: bool) -> String {
        if is_numbered { format!("[{}] ", self.number) } else { String::new() }
    }
}
