//! Turns the events of a session into updates for the editor.
//!
//! A pure function of the events and the state that they have built up. The words about events are
//! those of the terminal, from the [`Narrator`]. `docs/protocols.md` has the whole table.

mod calls;
mod items;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, CurrentModeUpdate, MessageId, Notice, NoticeSeverity, Plan,
    PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate, ToolCallContent, UsageUpdate,
};
use holdpoint_common::{
    Ask, AssistantMessage, Block, Body, CallId, ContextFill, Delta, Event, Fact, HeadAndTail,
    ItemId, ItemKind, Part, PromptFact, PromptId, SessionFact, Snapshot, Task, TaskState, Tasks,
    ToolFact, ToolResult, TurnFact,
};

use self::calls::Calls;
pub(super) use self::calls::{call_id, kind, plain, quoted};
use self::items::Items;
use super::features::Features;
use crate::narrator::{Narration, Narrator, Remark};
use crate::tone::Tone;

/// The updates of one session.
pub(super) struct Updates {
    narrator: Narrator,
    features: Features,
    own_pid: u32,
    workspace: PathBuf,
    items: Items,
    calls: Calls,
    /// The prompts of this editor that have not begun. It shows them itself.
    own_prompts: BTreeSet<PromptId>,
    /// Whether the open turn works on a prompt of this editor, which gets its end as the reply.
    is_own_turn: bool,
    /// Whether the prompt that begins is of this editor.
    is_own_prompt: bool,
    /// Whether the events are history.
    is_past: bool,
    tasks: Tasks,
}

impl Updates {
    pub(super) fn new(snapshot: &Snapshot, features: Features, own_pid: u32) -> Self {
        Self {
            // Past prompts of the same process are shown, too, so the narrator knows no own ones.
            narrator: Narrator::new(0),
            features,
            own_pid,
            workspace: PathBuf::from(&snapshot.settings.workspace),
            items: Items::default(),
            calls: Calls::default(),
            own_prompts: BTreeSet::new(),
            is_own_turn: false,
            is_own_prompt: false,
            is_past: false,
            tasks: Tasks::default(),
        }
    }

    /// Sets whether the events that follow are history, whose prompts the editor does not have.
    pub(super) fn set_past(&mut self, is_past: bool) {
        self.is_past = is_past;
    }

    /// Shows the call of an ask, if the editor does not have it: it was made before the attach.
    pub(super) fn announce(&mut self, ask: &Ask) -> Option<SessionUpdate> {
        let shown = self.calls.announce(ask)?;
        Some(SessionUpdate::ToolCall(shown))
    }

    /// The content of a call so far.
    pub(super) fn content(&self, call: CallId) -> Vec<ToolCallContent> {
        self.calls.content(call)
    }

    /// The state that no later event repeats: the tasks, and how full the context is.
    pub(super) fn state(&mut self, snapshot: &Snapshot) -> Vec<SessionUpdate> {
        self.tasks =
            Tasks { tasks: Arc::clone(&snapshot.tasks), notes: Arc::clone(&snapshot.notes) };
        let plan = (!snapshot.tasks.is_empty()).then(|| plan(&snapshot.tasks));
        let usage = snapshot.context.map(usage);
        plan.into_iter().chain(usage).collect()
    }

    /// The updates of an event.
    pub(super) fn event(&mut self, event: &Event) -> Vec<SessionUpdate> {
        let mut updates = match &event.body {
            Body::Delta(delta) => self.delta(delta),
            Body::Fact(fact) => self.fact(fact),
        };
        let is_hold = matches!(event.fact(), Some(Fact::Session(SessionFact::HoldChanged { .. })));
        let narrations = self.narrator.narrate(event);
        // The plan shows the tasks.
        if !matches!(event.fact(), Some(Fact::Task(_))) {
            let shown = |narration| self.narration(narration, event.seq, is_hold);
            updates.extend(narrations.into_iter().filter_map(shown));
        }
        self.forget(event);
        updates
    }

    fn delta(&mut self, delta: &Delta) -> Vec<SessionUpdate> {
        let update = match delta {
            Delta::Text { item, text } => {
                chunk(*item, ItemKind::Text, self.items.piece(*item, text))
            }
            Delta::Thought { item, text } => {
                chunk(*item, ItemKind::Thought, self.items.piece(*item, text))
            }
            Delta::Output { item, text } => {
                let piece = self.items.piece(*item, text);
                self.calls.output(CallId(item.0), piece).map(SessionUpdate::ToolCallUpdate)
            }
            Delta::ItemSoFar { item, kind: ItemKind::Output, so_far } => {
                let rest = self.items.so_far(*item, so_far);
                self.calls.output(CallId(item.0), &rest).map(SessionUpdate::ToolCallUpdate)
            }
            Delta::ItemSoFar { item, kind, so_far } => {
                chunk(*item, *kind, &self.items.so_far(*item, so_far))
            }
            _ => None,
        };
        update.into_iter().collect()
    }

    fn fact(&mut self, fact: &Fact) -> Vec<SessionUpdate> {
        match fact {
            Fact::Prompt(PromptFact::Accepted { prompt, by, .. })
                if by.pid == Some(self.own_pid) && !self.is_past =>
            {
                self.own_prompts.insert(*prompt);
                Vec::new()
            }
            Fact::Turn(TurnFact::Started { prompt, .. }) => {
                self.is_own_prompt = self.own_prompts.contains(prompt);
                self.is_own_turn = self.is_own_prompt;
                Vec::new()
            }
            Fact::Prompt(PromptFact::Delivered { prompt, .. }) => {
                self.is_own_prompt = self.own_prompts.contains(prompt);
                self.is_own_turn |= self.is_own_prompt;
                Vec::new()
            }
            Fact::Task(fact) if !self.is_past => {
                self.tasks.apply(fact);
                vec![plan(&self.tasks.tasks)]
            }
            Fact::Turn(TurnFact::AssistantMessage(message)) => self.message(message),
            Fact::Turn(TurnFact::StepFinished { context, .. }) => {
                context.map(usage).into_iter().collect()
            }
            Fact::Tool(ToolFact::Started { call }) => {
                vec![SessionUpdate::ToolCallUpdate(self.calls.started(*call))]
            }
            Fact::Tool(ToolFact::Finished(result)) => self.finished(result),
            Fact::Session(SessionFact::PolicyChanged { policy, .. }) => {
                vec![SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(policy.to_string()))]
            }
            _ => Vec::new(),
        }
    }

    fn message(&mut self, message: &AssistantMessage) -> Vec<SessionUpdate> {
        let update = |part| match part {
            Part::Block(Block { item, kind, text, .. }) => {
                let whole = HeadAndTail { head: text.clone(), ..HeadAndTail::default() };
                chunk(*item, ItemKind::from(*kind), &self.items.finish(*item, &whole))
            }
            Part::Call(call) => {
                let in_terminal = self.features.terminal_output;
                let added = self.calls.add(call, &self.workspace, in_terminal);
                Some(SessionUpdate::ToolCall(added))
            }
        };
        message.parts().filter_map(update).collect()
    }

    fn finished(&mut self, result: &ToolResult) -> Vec<SessionUpdate> {
        let rest = self.items.finish(result.call.item(), &result.output);
        let updates = self.calls.finished(result, &rest);
        updates.into_iter().map(SessionUpdate::ToolCallUpdate).collect()
    }

    fn narration(
        &mut self,
        narration: Narration,
        seq: u64,
        is_hold: bool,
    ) -> Option<SessionUpdate> {
        match narration {
            Narration::Remark(remark) | Narration::State(remark) | Narration::Hold(remark) => {
                self.notice(&remark, seq, is_hold)
            }
            Narration::Prompt { .. } if self.is_own_prompt => None,
            Narration::Prompt { text, .. } => {
                let chunk = ContentChunk::new(ContentBlock::from(text));
                Some(SessionUpdate::UserMessageChunk(
                    chunk.message_id(MessageId::new(format!("prompt-{seq}"))),
                ))
            }
            Narration::AskEnd(end) => {
                let call = end.ask.as_ref()?.call;
                self.calls.note(call, end.text).map(SessionUpdate::ToolCallUpdate)
            }
            Narration::TurnEnd(end) if !self.is_own_turn => {
                end.cause.and_then(|cause| self.notice(&cause, seq, true))
            }
            // The reply to a prompt has its end, and a cut is followed by the end of its turn.
            Narration::Returned { .. }
            | Narration::TextCut(..)
            | Narration::Cut(_)
            | Narration::TurnEnd(_) => None,
        }
    }

    /// A line about the session. An editor that shows no notices gets it as a message of its own if
    /// it is `important` or a warning.
    pub(super) fn notice(
        &self,
        remark: &Remark,
        seq: u64,
        important: bool,
    ) -> Option<SessionUpdate> {
        let text = std::iter::once(&remark.text).chain(&remark.details);
        let text = text.map(String::as_str).collect::<Vec<_>>().join("\n");
        let severity = match remark.tone {
            Tone::Fault => NoticeSeverity::Error,
            Tone::Warning => NoticeSeverity::Warning,
            _ => NoticeSeverity::Info,
        };
        if self.features.notices {
            return Some(SessionUpdate::Notice(Notice::new(severity, text)));
        }
        (important || severity != NoticeSeverity::Info).then(|| message(&text, seq))
    }

    /// Drops the parts of the state that end with an event.
    fn forget(&mut self, event: &Event) {
        match event.fact() {
            Some(
                Fact::Turn(TurnFact::Started { prompt, .. })
                | Fact::Prompt(
                    PromptFact::Delivered { prompt, .. } | PromptFact::Returned { prompt, .. },
                ),
            ) => {
                self.own_prompts.remove(prompt);
            }
            Some(Fact::Turn(TurnFact::StepFinished { .. })) => self.items.clear(),
            Some(Fact::Turn(TurnFact::Finished { .. })) => {
                self.is_own_turn = false;
                self.items.clear();
                self.calls.clear();
            }
            _ => {}
        }
    }
}

/// A line of the agent in a message of its own.
pub(super) fn message(text: &str, seq: u64) -> SessionUpdate {
    let chunk = ContentChunk::new(ContentBlock::from(format!("\n\n{text}\n\n")));
    SessionUpdate::AgentMessageChunk(chunk.message_id(MessageId::new(format!("notice-{seq}"))))
}

/// The tasks of a session as a plan. Dropped ones are not part of it.
pub(super) fn plan(tasks: &[Task]) -> SessionUpdate {
    let entry = |task: &Task| {
        let status = match task.state {
            TaskState::Todo => PlanEntryStatus::Pending,
            TaskState::Doing => PlanEntryStatus::InProgress,
            TaskState::Done => PlanEntryStatus::Completed,
            TaskState::Dropped => return None,
        };
        Some(PlanEntry::new(task.title.clone(), PlanEntryPriority::Medium, status))
    };
    SessionUpdate::Plan(Plan::new(tasks.iter().filter_map(entry).collect()))
}

/// How full the context is. The cost is left out: its currency is not known, because prices are
/// configured without one.
fn usage(context: ContextFill) -> SessionUpdate {
    SessionUpdate::UsageUpdate(UsageUpdate::new(context.tokens, context.limit))
}

/// A piece of the agent's text or thought.
fn chunk(item: ItemId, kind: ItemKind, text: &str) -> Option<SessionUpdate> {
    if text.is_empty() {
        return None;
    }
    let chunk =
        ContentChunk::new(ContentBlock::from(text)).message_id(MessageId::new(item.to_string()));
    Some(match kind {
        ItemKind::Thought => SessionUpdate::AgentThoughtChunk(chunk),
        ItemKind::Text | ItemKind::Output => SessionUpdate::AgentMessageChunk(chunk),
    })
}
