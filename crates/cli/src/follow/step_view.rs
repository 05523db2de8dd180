//! Shows events step by step: the model's words on standard output, everything else as short lines
//! about them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use holdpoint_common::{
    Answer, AnsweredBy, AskId, AsksMode, AssistantMessage, Body, CallId, CutCause, Delta, Event, Fact, Gap, Gaps, Hold,
    HoldCause, HoldShown, ItemId, ItemKind, Kept, Outcome, PromptId, Receipt, RestoreCause, RunLimit, Tasks, Timestamp,
    ToolCall, ToolResult, ToolStatus,
};
use holdpoint_tools::shown::{line, prose, prose_line};

use super::asked;
use crate::summaries::clock::Clock;
use crate::summaries::{about, answered, cut, paused, pausing, runs, sent_again, setting, shorten, sum_up, title};
use crate::ui::{Style, Ui};

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
    many: bool,
    /// Events up to this number are a replay, because this client fell behind. Deltas of items that
    /// have ended since may be missing from it.
    replay_to: u64,
    /// Items that are not shown piece by piece for that reason, but whole at their end.
    skipped: BTreeSet<ItemId>,
    /// Items with a text that was replayed in one piece.
    caught_up: BTreeSet<ItemId>,
    tasks: Tasks,
    /// Whether prompts are shown.
    prompts: bool,
    /// Prompts that wait for their turn to begin.
    waiting: BTreeMap<PromptId, Arc<str>>,
    /// Whether a turn is open.
    pub(super) is_open: bool,
    /// The clock of the open turn, if its beginning was shown.
    clock: Option<Clock>,
    hold: HoldShown,
    /// The subject of each open ask.
    asks: BTreeMap<AskId, String>,
    /// Whether several asks were open at once, so that answers name their asks.
    together: bool,
    steps: u32,
    /// The id of this process. Its own answers need no origin.
    own: u32,
    /// Whether a setting denied something in place of a user.
    denied_unseen: bool,
}

struct Call {
    call: ToolCall,
    /// The position among the calls of its answer, from 1.
    number: usize,
    started: bool,
    /// The bytes of output received.
    came: u64,
    /// The last line of output, while it is unfinished.
    line: String,
}

impl StepView {
    pub(crate) fn new(asks_elsewhere: bool) -> Self {
        Self { asks_elsewhere, own: std::process::id(), ..Self::default() }
    }

    /// Shows prompts as well, because another client may have sent them.
    pub(crate) fn with_prompts(self) -> Self {
        Self { prompts: true, ..self }
    }

    /// Treats the next events, up to `seq`, as a replay after this client fell behind.
    pub(crate) fn resume(&mut self, seq: u64) {
        self.replay_to = seq;
        self.skipped.clear();
        self.caught_up.clear();
    }

    /// Whether this delta of an item is to be shown.
    fn follows(&mut self, seq: u64, item: ItemId) -> bool {
        if seq <= self.replay_to && !self.caught_up.contains(&item) {
            self.skipped.insert(item);
        }
        !self.skipped.contains(&item)
    }

    pub(crate) fn show(&mut self, event: &Event, ui: &mut Ui) -> io::Result<()> {
        match &event.body {
            Body::Delta(delta) => self.delta(event.seq, delta, ui),
            Body::Fact(fact) => self.fact(event.at, fact, ui),
        }
    }

    fn delta(&mut self, seq: u64, delta: &Delta, ui: &mut Ui) -> io::Result<()> {
        match delta {
            Delta::Text { item, .. } | Delta::Thought { item, .. } | Delta::Output { item, .. }
                if !self.follows(seq, *item) =>
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
            Delta::Output { item, text } => self.output(*item, text, ui),
            Delta::ItemSoFar { item, kind: ItemKind::Output, so_far } => self.catch_up(*item, so_far, ui),
            Delta::ItemSoFar { item, kind, so_far } => {
                self.caught_up.insert(*item);
                self.rest(*item, *kind, &so_far.head, ui)
            }
            Delta::Retrying { next, tries, wait_ms, reason } => {
                let wait = *wait_ms as f64 / 1000.0;
                let what = format!("{}; try {next} of {tries} in {wait:.0} s", prose_line(reason));
                ui.line(Style::Warning, &what)
            }
            Delta::Gap { from, to } => {
                ui.line(Style::Warning, &Gaps::from_iter([Gap { from: *from, to: *to }]).to_string())
            }
            Delta::NotSaved { reason } => ui.line(Style::Warning, &format!("not saved: {}", prose_line(reason))),
            Delta::SavedAgain => ui.line(Style::Dim, "saved again"),
            Delta::Status { .. } => Ok(()),
        }
    }

    fn fact(&mut self, at: Timestamp, fact: &Fact, ui: &mut Ui) -> io::Result<()> {
        self.tasks.apply(fact);
        self.clock.iter_mut().for_each(|clock| clock.tick(at, fact));
        if let Some((style, line)) = runs::line(fact, at, &self.tasks) {
            ui.line(style, &line)?;
        }
        match fact {
            Fact::IterationStarted { .. } => {
                self.turn_begins(at);
                Ok(())
            }
            Fact::PromptDelivered { prompt, .. } => self.begins(*prompt, ui),
            Fact::PromptAccepted { prompt, text, .. } => {
                if self.prompts {
                    self.waiting.insert(*prompt, Arc::clone(text));
                }
                // The prompt may wait for a long time.
                let waits = self.is_open || self.hold == HoldShown::Standing;
                if waits { ui.line(Style::Dim, &format!("queued, prompt {prompt}: {}", sum_up(text))) } else { Ok(()) }
            }
            Fact::PromptReturned { prompt, text } => {
                self.waiting.remove(prompt);
                ui.line(Style::Warning, &format!("handed back, prompt {prompt}: {}", prose(text)))
            }
            Fact::TurnStarted { prompt, .. } => {
                self.turn_begins(at);
                self.begins(*prompt, ui)
            }
            Fact::StepStarted => {
                self.steps += 1;
                self.calls.clear();
                Ok(())
            }
            Fact::AssistantMessage(message) => self.message(message, ui),
            Fact::StepFinished { omitted: Some(omission), .. } => ui.line(Style::Warning, &sent_again(omission)),
            Fact::ToolStarted { call } => match self.calls.get_mut(call) {
                Some(call) => {
                    call.started = true;
                    ui.line(Style::Bold, &format!("● {}{}", call.number(self.many), title(&call.call)))
                }
                None => Ok(()),
            },
            Fact::ProjectCut { reason } => ui.line(Style::Warning, &prose_line(reason)),
            Fact::HistoryCut(left_out) => ui.line(Style::Warning, &cut(left_out)),
            Fact::ToolFinished(result) => self.finished(result, ui),
            Fact::JobStarted { job } => {
                let command = shorten(&line(&job.command));
                ui.line(Style::Bold, &format!("⚙ job {} in the background: {command}", job.id))
            }
            Fact::JobEnded { job, end } => ui.line(Style::Dim, &format!("⚙ job {job}: {end}")),
            Fact::AskRaised { ask } => {
                self.asks.insert(ask.id.clone(), about(&ask.request));
                self.together |= self.asks.len() > 1;
                if self.asks_elsewhere { Ok(()) } else { asked::show(ask, 0, false, ui) }
            }
            Fact::AskAnswered { ask, answer, by, .. } => self.answered(ask, answer, by, ui),
            Fact::AskClosed { ask, cause } => {
                let which = self.which(ask);
                ui.line(Style::Dim, &format!("  {which}→ closed: {cause}"))
            }
            Fact::HoldChanged { hold } => self.held(hold, ui),
            Fact::SessionRenamed { .. }
            | Fact::ModelChanged { .. }
            | Fact::DebugChanged { .. }
            | Fact::AsksChanged { .. } => ui.line(Style::Dim, &setting(fact).unwrap_or_default()),
            Fact::TurnFinished { .. } => self.ended(fact, ui),
            Fact::SessionRestored { cause } => match cause {
                RestoreCause::Panic => ui.line(Style::Warning, "the session failed and was rebuilt from its log"),
                RestoreCause::Restart => ui.line(Style::Warning, "the daemon was restarted"),
                RestoreCause::Unloaded => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn turn_begins(&mut self, at: Timestamp) {
        (self.is_open, self.clock) = (true, Some(Clock::begun(at)));
        (self.steps, self.denied_unseen) = (0, false);
    }

    /// Shows a prompt when its turn begins.
    fn begins(&mut self, prompt: PromptId, ui: &mut Ui) -> io::Result<()> {
        let text = self.waiting.remove(&prompt).unwrap_or_default();
        text.trim_end().lines().try_for_each(|line| ui.line(Style::Bold, &format!("> {}", prose(line))))
    }

    /// Shows the parts of an answer that deltas have not shown, and ends its line.
    fn message(&mut self, message: &AssistantMessage, ui: &mut Ui) -> io::Result<()> {
        for block in &message.blocks {
            self.rest(block.item, block.kind.into(), &block.text, ui)?;
            self.shown.remove(&block.item);
        }
        ui.end_line()?;
        self.many = message.calls.len() > 1;
        for (before, call) in message.calls.iter().enumerate() {
            let (call, number) = (call.clone(), before + 1);
            self.calls.insert(call.id, Call { call, number, started: false, came: 0, line: String::new() });
        }
        Ok(())
    }

    /// Shows the rest of a text or thought.
    fn rest(&mut self, item: ItemId, kind: ItemKind, whole: &str, ui: &mut Ui) -> io::Result<()> {
        let shown = self.shown.entry(item).or_default();
        let rest = whole.get(*shown..).unwrap_or_default();
        *shown = whole.len().max(*shown);
        match kind {
            ItemKind::Thought => ui.thought(rest),
            ItemKind::Text | ItemKind::Output => ui.text(rest),
        }
    }

    /// Shows the output that was missed when this client fell behind.
    fn catch_up(&mut self, item: ItemId, so_far: &Kept, ui: &mut Ui) -> io::Result<()> {
        self.caught_up.insert(item);
        let Some(call) = self.calls.get_mut(&CallId(item.0)) else { return Ok(()) };
        let whole = (so_far.head.len() + so_far.tail.len()) as u64 + so_far.dropped;
        let came = usize::try_from(call.came).unwrap_or(usize::MAX);
        let behind_head = call.came.max(so_far.head.len() as u64);
        let missed = whole.saturating_sub(behind_head);
        let tail = so_far.tail.len() as u64;
        let mut text = so_far.head.get(came..).unwrap_or_default().to_owned();
        if missed <= tail {
            let from = so_far.tail.len() - usize::try_from(missed).unwrap_or_default();
            text.push_str(so_far.tail.get(from..).unwrap_or_default());
        } else {
            let left_out = missed - tail;
            text.push_str(&format!("\n[... {left_out} bytes not shown ...]\n{}", so_far.tail));
        }
        self.output(item, &text, ui)?;
        if let Some(call) = self.calls.get_mut(&CallId(item.0)) {
            call.came = whole;
        }
        Ok(())
    }

    /// Shows the complete lines of a tool's output.
    fn output(&mut self, item: ItemId, text: &str, ui: &mut Ui) -> io::Result<()> {
        let many = self.many;
        let Some(call) = self.calls.get_mut(&CallId(item.0)) else { return Ok(()) };
        call.came += text.len() as u64;
        let mut lines = text.split('\n');
        call.line.push_str(lines.next().unwrap_or_default());
        for line in lines {
            call.put_line(many, ui)?;
            call.line.push_str(line);
        }
        if call.line.len() > LONG_LINE {
            call.put_line(many, ui)?;
        }
        Ok(())
    }

    fn finished(&mut self, result: &ToolResult, ui: &mut Ui) -> io::Result<()> {
        // After a restart, or if deltas were skipped, only the result has the output.
        self.skipped.remove(&result.call.item());
        self.catch_up(result.call.item(), &result.output, ui)?;
        let many = self.many;
        let Some(mut call) = self.calls.remove(&result.call) else { return Ok(()) };
        if !call.line.is_empty() {
            call.put_line(many, ui)?;
        }
        let (mark, style) = match result.status {
            ToolStatus::Ok => ("", Style::Dim),
            ToolStatus::Error => ("failed: ", Style::Warning),
            ToolStatus::Denied => ("denied: ", Style::Warning),
            ToolStatus::Interrupted => ("interrupted: ", Style::Warning),
            ToolStatus::Panicked => ("panicked: ", Style::Fault),
        };
        let which =
            if call.started { call.number(many) } else { format!("{}{}: ", call.number(many), title(&call.call)) };
        let said = sum_up(&result.result);
        // Some results begin with the same word.
        let mark = if said.starts_with(mark.trim_end_matches(": ")) { "" } else { mark };
        if said.is_empty() && mark.is_empty() {
            return Ok(());
        }
        ui.line(style, &format!("  └ {which}{mark}{said}"))
    }

    /// The subject of an ask that has ended, if several were open at once.
    fn which(&mut self, ask: &AskId) -> String {
        let about = self.asks.remove(ask).filter(|_| self.together).unwrap_or_default();
        self.together &= !self.asks.is_empty();
        about
    }

    fn answered(&mut self, ask: &AskId, answer: &Answer, by: &AnsweredBy, ui: &mut Ui) -> io::Result<()> {
        let which = self.which(ask);
        let denied = matches!(answer, Answer::Deny { .. });
        // Not for `approve`, which denies a Confirm that a rule may deny: the advice at the end of
        // the turn does not fit there.
        self.denied_unseen |= denied && *by == AnsweredBy::Setting { asks: AsksMode::Deny };
        let answered = answered(answer, by, self.own);
        ui.line(if denied { Style::Warning } else { Style::Dim }, &format!("  {which}→ {answered}"))
    }

    fn ended(&mut self, fact: &Fact, ui: &mut Ui) -> io::Result<()> {
        let Fact::TurnFinished { outcome, error, cause, receipt, usage } = fact else { return Ok(()) };
        ui.end_line()?;
        self.is_open = false;
        if *outcome == Outcome::Interrupted {
            interrupted(cause.as_ref(), receipt.as_ref(), ui)?;
        } else if let Some(error) = error {
            ui.line(Style::Fault, &format!("{outcome}: {}", prose(error)))?;
        }
        let about = if usage.estimated { "about " } else { "" };
        let (input, output) = (usage.input, usage.output);
        let cost = usage.cost.map(|millionths| format!(", cost {:.4}", millionths as f64 / 1e6)).unwrap_or_default();
        let tokens = format!("{about}{input} tokens in, {output} out{cost}");
        let line = match self.clock.take() {
            Some(clock) => {
                let steps = if self.steps == 1 { "step" } else { "steps" };
                format!("{outcome}: {} {steps}, {tokens}, {:.1} s", self.steps, clock.seconds())
            }
            // Only the end of the turn is shown.
            None => format!("{outcome}: {tokens}"),
        };
        ui.line(Style::Dim, &line)?;
        if self.denied_unseen {
            ui.line(
                Style::Warning,
                "A Confirm was denied because no user was there to answer: use a terminal, or --asks approve.",
            )?;
        }
        Ok(())
    }

    /// Shows that a hold is requested, is in force and can be released, or is over.
    fn held(&mut self, hold: &Hold, ui: &mut Ui) -> io::Result<()> {
        let before = std::mem::replace(&mut self.hold, hold.shown());
        let cause = match hold {
            Hold::Off => {
                // If the turn or run ended before the hold took effect, that end was shown.
                let says = before == HoldShown::Standing || self.is_open;
                return if says { ui.line(Style::Bold, "▶ released") } else { Ok(()) };
            }
            Hold::Requested { cause, .. } => return ui.line(Style::Bold, &pausing(cause)),
            Hold::Standing { cause, .. } => cause,
        };
        ui.line(Style::Bold, &paused(cause))?;
        match cause {
            HoldCause::User { .. } => Ok(()),
            HoldCause::Limit { reached: RunLimit::Failures { .. } } => {
                ui.line(Style::Dim, "  `holdpoint release` resets the count")
            }
            HoldCause::Limit { .. } => ui.line(Style::Dim, "  `holdpoint release` grants the same amount again"),
            HoldCause::Restored => ui.line(Style::Dim, "  `holdpoint release` releases it"),
        }
    }
}

impl Call {
    fn put_line(&mut self, many: bool, ui: &mut Ui) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        ui.line(Style::Dim, &format!("  │ {}{}", self.number(many), prose(&line)))
    }

    /// The number of the call, if its step has several.
    fn number(&self, many: bool) -> String {
        if many { format!("[{}] ", self.number) } else { String::new() }
    }
}

/// Shows that a turn was cut, with the cause and the receipt.
pub(super) fn interrupted(cause: Option<&CutCause>, receipt: Option<&Receipt>, ui: &mut Ui) -> io::Result<()> {
    ui.line(Style::Bold, "Agent interrupted")?;
    let mut about = cause.map(ToString::to_string).into_iter().chain(receipt.map(ToString::to_string));
    about.try_for_each(|about| ui.line(Style::Dim, &format!("  {}", prose_line(&about))))
}
