//! The part of the conversation that a state keeps: the newest facts, because much older ones fit
//! into no request.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdpoint_common::{
    Event, Fact, NOTES_KEPT, PromptFact, RunFact, SessionFact, TaskFact, TaskId, ToolFact, TurnFact,
};
use serde::{Deserialize, Serialize};

use crate::history;

mod stored;

pub use stored::UnreadPart;
use stored::{Stored, Unread};

/// The most bytes of a conversation that are kept. Beyond that the oldest facts are forgotten,
/// except the newest prompt. A request of 100,000 tokens would need more only at over 600 bytes per
/// token.
pub const MAX_CONVERSATION_BYTES: usize = 64 * 1024 * 1024;

/// Whether a fact becomes part of the conversation when it is applied. A prompt is added later,
/// when its turn starts or an iteration receives it.
pub(super) fn belongs_to_conversation(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::Turn(
            TurnFact::AssistantMessage(_)
                | TurnFact::ContentAdded { .. }
                | TurnFact::StepFinished { refused: true, .. }
                | TurnFact::StepFinished { omitted: Some(_), .. }
        ) | Fact::Tool(ToolFact::Finished(_))
            | Fact::Session(SessionFact::ModelChanged { .. })
            // The end of a run marks the point after which prompts no longer belong to it.
            | Fact::Run(
                RunFact::Started { .. }
                    | RunFact::IterationStarted { .. }
                    | RunFact::Finished { .. }
            )
            | Fact::Task(_)
    )
}

/// The newest of the started prompts, answers and results, and the facts that an iteration of a run
/// begins with: the run, tasks and notes. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(into = "Stored", from = "Stored")]
pub struct Conversation {
    /// The facts before `events`, if they are only in the log yet.
    unread: Option<Unread>,
    events: Arc<Vec<Arc<Event>>>,
    /// The total weight of `unread` and `events` in bytes. Like `messages`, it includes facts that the
    /// log has lost, until all were read.
    weight: usize,
    /// How many messages `unread` and `events` give.
    messages: u64,
    /// The weight after facts were last dropped. It may exceed the bound, because the newest answer
    /// is always kept with its results.
    weight_kept: usize,
    /// How many older facts were dropped.
    forgotten: u64,
}

impl Conversation {
    /// The facts that are kept, oldest first, except for those that were not read yet.
    #[must_use]
    pub fn events(&self) -> &[Arc<Event>] {
        &self.events
    }

    /// How many older facts of the conversation were dropped.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Whether facts before [`events`](Self::events) were not read yet.
    #[must_use]
    pub fn has_unread(&self) -> bool {
        self.unread.is_some()
    }

    /// Where the newest facts of at least this many bytes begin in [`events`](Self::events), as
    /// [`history::start_of_newest`] finds it; `None` if older facts have to be read first.
    pub(crate) fn start_of_newest(&self, bytes: u64) -> Option<usize> {
        let from = history::start_of_newest(&self.events, bytes);
        (from > 0 || self.unread.is_none()).then_some(from)
    }

    /// How many messages the facts before this position of [`events`](Self::events) give, with
    /// those that were not read or that were dropped.
    pub(crate) fn messages_before(&self, at: usize) -> u64 {
        self.messages.saturating_sub(count_messages(&self.events[at..])) + self.forgotten
    }

    /// About how many bytes of text the kept facts hold.
    pub(super) fn text_bytes(&self) -> u64 {
        let unread = self.unread.as_ref().map_or(0, |unread| unread.seqs.len());
        let facts = self.events.len() + unread;
        self.weight.saturating_sub(size_of::<Event>() * facts) as u64
    }

    /// Appends a fact, and drops the oldest ones beyond [`MAX_CONVERSATION_BYTES`].
    pub(super) fn push(&mut self, event: &Arc<Event>) {
        self.weight += event.weight();
        self.messages += u64::from(is_message(event));
        Arc::make_mut(&mut self.events).push(Arc::clone(event));
        self.forget_if_too_large();
    }

    fn forget_if_too_large(&mut self) {
        if self.unread.is_none() && self.is_too_large() {
            self.forget();
        }
    }

    /// Whether the oldest facts have to be dropped. The unread ones have to be read first, because a
    /// few of them may be needed, such as tasks.
    pub(super) fn is_too_large(&self) -> bool {
        // The facts that have to be kept may exceed the bound. They are not copied again for every
        // new fact, but only after an eighth of the bound.
        self.weight > MAX_CONVERSATION_BYTES.max(self.weight_kept + MAX_CONVERSATION_BYTES / 8)
    }

    /// The prompts to a run that the model has not answered, because its iteration failed first.
    pub(super) fn unanswered_prompts(&self) -> impl Iterator<Item = &Arc<Event>> {
        let is_boundary = |event: &&Arc<Event>| match event.fact() {
            Some(
                Fact::Run(RunFact::Started { .. })
                | Fact::Turn(TurnFact::StepFinished { refused: true, .. }),
            ) => true,
            Some(Fact::Turn(TurnFact::AssistantMessage(message))) => message.has_text_or_calls(),
            _ => false,
        };
        let after_boundary = self.events.iter().rev().take_while(move |event| !is_boundary(event));
        after_boundary
            .filter(|event| matches!(event.fact(), Some(Fact::Prompt(PromptFact::Accepted { .. }))))
    }

    /// Keeps only the facts that an iteration of a run begins with: its run, the tasks, the newest
    /// notes and the unanswered prompts. Of the unread facts, that is at most tasks and notes: the run
    /// began after them.
    pub(super) fn begin_iteration(&mut self) {
        let is_run_start =
            |event: &Arc<Event>| matches!(event.fact(), Some(Fact::Run(RunFact::Started { .. })));
        let last_run = self.events.iter().rposition(is_run_start);
        let unanswered: BTreeSet<_> = self.unanswered_prompts().map(|event| event.seq).collect();
        let mut newest = NewestTaskFacts::default();
        let mut kept: Vec<_> = (0..self.events.len())
            .rev()
            .filter(|at| match self.events[*at].fact() {
                Some(Fact::Run(RunFact::Started { .. })) => Some(*at) == last_run,
                Some(Fact::Prompt(PromptFact::Accepted { .. })) => {
                    unanswered.contains(&self.events[*at].seq)
                }
                Some(Fact::Task(fact)) => newest.needs(fact),
                _ => false,
            })
            .collect();
        kept.reverse();
        self.keep(&kept);
        self.forgotten = 0;
        self.unread.iter_mut().for_each(|unread| unread.only_tasks = true);
    }

    /// Keeps only the events at these positions.
    fn keep(&mut self, positions: &[usize]) {
        let kept: Vec<_> = positions.iter().map(|at| Arc::clone(&self.events[*at])).collect();
        self.forgotten += (self.events.len() - kept.len()) as u64;
        self.set_all(kept);
        self.weight_kept = self.weight;
    }

    /// Replaces all facts.
    fn set_all(&mut self, events: Vec<Arc<Event>>) {
        self.weight = events.iter().map(|event| event.weight()).sum();
        self.messages = count_messages(&events);
        self.events = Arc::new(events);
    }

    /// Keeps the newest three quarters of [`MAX_CONVERSATION_BYTES`], starting with a prompt or an
    /// answer, and at least the newest of these with its results. If the newest turn is longer, its
    /// prompt is kept too, or the facts that its iteration began with. The kept events are copied,
    /// so each call drops many events instead of a few.
    fn forget(&mut self) {
        let is_prompt_or_answer = |event: &Arc<Event>| {
            matches!(
                event.fact(),
                Some(
                    Fact::Prompt(PromptFact::Accepted { .. })
                        | Fact::Turn(TurnFact::AssistantMessage(_))
                )
            )
        };
        let mut from =
            self.events.iter().rposition(is_prompt_or_answer).unwrap_or(self.events.len());
        let mut weight = 0;
        for (at, event) in self.events.iter().enumerate().rev() {
            weight += event.weight();
            if weight > MAX_CONVERSATION_BYTES / 4 * 3 {
                break;
            }
            if is_prompt_or_answer(event) {
                from = at;
            }
        }
        let is_prompt = |event: &Arc<Event>| {
            matches!(event.fact(), Some(Fact::Prompt(PromptFact::Accepted { .. })))
        };
        let prompt = match self.events.get(from) {
            Some(event) if is_prompt(event) => None,
            _ => self.events[..from].iter().rposition(is_prompt),
        };
        let iteration = self.events[..from].iter().rposition(|event| {
            matches!(event.fact(), Some(Fact::Run(RunFact::IterationStarted { .. })))
        });
        let mut newest = NewestTaskFacts::default();
        let is_needed = |at: &usize| {
            if Some(*at) == iteration {
                // The iteration begins with the tasks and notes of its time.
                newest = NewestTaskFacts::default();
                return true;
            }
            match self.events[*at].fact() {
                Some(Fact::Run(RunFact::Started { .. })) => true,
                Some(Fact::Task(fact)) => newest.needs(fact),
                _ => Some(*at) == prompt,
            }
        };
        let mut kept: Vec<_> = (0..from).rev().filter(is_needed).collect();
        kept.reverse();
        kept.extend(from..self.events.len());
        self.keep(&kept);
    }
}

/// The number of messages that these facts give.
fn count_messages(facts: &[Arc<Event>]) -> u64 {
    facts.iter().filter(|event| is_message(event)).count() as u64
}

fn is_message(event: &Event) -> bool {
    match event.fact() {
        Some(Fact::Prompt(PromptFact::Accepted { .. }) | Fact::Tool(ToolFact::Finished(_))) => true,
        Some(Fact::Turn(TurnFact::AssistantMessage(message))) => message.has_text_or_calls(),
        _ => false,
    }
}

/// Selects the facts from which the tasks and the newest notes can be derived.
#[derive(Default)]
struct NewestTaskFacts {
    moved: BTreeSet<TaskId>,
    notes: usize,
}

impl NewestTaskFacts {
    /// Whether a fact is needed besides the newer ones. The newest fact comes first.
    fn needs(&mut self, fact: &TaskFact) -> bool {
        match fact {
            TaskFact::Added { .. } => true,
            // Only a task's last move counts.
            TaskFact::Moved { task, .. } => self.moved.insert(*task),
            TaskFact::NoteTaken { .. } => {
                self.notes += 1;
                self.notes <= NOTES_KEPT
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_common::{
        AssistantMessage, Block, BlockKind, Body, CallId, ItemId, Note, PromptId, TaskState,
        Timestamp, ToolResult, ToolStatus, TurnId, Who,
    };

    use super::*;

    fn event(seq: u64, fact: impl Into<Fact>) -> Arc<Event> {
        let body = Body::Fact(fact.into());
        Arc::new(Event { seq, at: Timestamp(0), turn: None, step: None, body })
    }

    fn prompt(seq: u64, bytes: usize) -> Arc<Event> {
        let text = "x".repeat(bytes).into();
        let (prompt, by) = (PromptId(seq), Who::named("test"));
        event(
            seq,
            PromptFact::Accepted { prompt, text, by, typed_bytes: None, idempotency_key: None },
        )
    }

    fn answer(seq: u64, bytes: usize) -> Arc<Event> {
        let (item, text) = (ItemId(seq), "x".repeat(bytes));
        let block = Block { item, kind: BlockKind::Text, text, signature: None, calls_before: 0 };
        let message = AssistantMessage { blocks: vec![block], ..AssistantMessage::default() };
        event(seq, TurnFact::AssistantMessage(message.into()))
    }

    fn result(seq: u64, bytes: usize) -> Arc<Event> {
        let result = ToolResult::not_run(CallId(seq), ToolStatus::Ok, "x".repeat(bytes));
        event(seq, ToolFact::Finished(result.into()))
    }

    #[test]
    fn t_u12_the_kept_part_is_bounded_and_begins_with_a_prompt() {
        let mut kept = Conversation::default();
        for seq in 1..=400 {
            let make = if seq % 10 == 1 { prompt } else { answer };
            kept.push(&make(seq, 1024 * 1024));
            assert!(kept.weight <= MAX_CONVERSATION_BYTES, "{seq}");
            assert!(
                matches!(kept.events()[0].fact(), Some(Fact::Prompt(PromptFact::Accepted { .. }))),
                "{seq}"
            );
            assert_eq!(kept.events().last().unwrap().seq, seq);
            assert_eq!(kept.forgotten() + kept.events().len() as u64, seq);
        }
        assert!(kept.weight > MAX_CONVERSATION_BYTES / 2);
    }

    #[test]
    fn the_newest_answer_stays_with_its_results_however_large_they_are() {
        let mut kept = Conversation::default();
        kept.push(&prompt(1, 10));
        kept.push(&answer(2, 10));
        for seq in 3..=200 {
            kept.push(&result(seq, 1024 * 1024));
        }
        assert_eq!((kept.events().len(), kept.forgotten()), (200, 0));
    }

    #[test]
    fn only_the_task_facts_that_still_count_stay() {
        let note = |seq: u64| {
            let note = Note { text: seq.to_string(), task: None, iteration: None };
            event(seq, TaskFact::NoteTaken { note })
        };
        let moved = |seq: u64| {
            let (task, to) = (TaskId(seq % 2), TaskState::Done);
            event(seq, TaskFact::Moved { task, to })
        };
        let mut kept = Conversation::default();
        for task in 0..2 {
            let title = String::new();
            kept.push(&event(task, TaskFact::Added { task: TaskId(task), title }));
        }
        (2..100).for_each(|seq| kept.push(&note(seq)));
        (100..104).for_each(|seq| kept.push(&moved(seq)));
        kept.push(&event(
            104,
            RunFact::IterationStarted { turn: TurnId(1), iteration: 1, resumed: false },
        ));
        (105..200).for_each(|seq| kept.push(&note(seq)));
        (200..300).for_each(|seq| kept.push(&moved(seq)));
        (300..500).for_each(|seq| kept.push(&answer(seq, 1024 * 1024)));
        let numbers: Vec<_> = kept.events().iter().map(|event| event.seq).collect();
        let notes = NOTES_KEPT as u64;
        // The iteration begins with the tasks and notes of its time.
        let before = (0..2).chain(100 - notes..100).chain([102, 103, 104]);
        let expected: Vec<_> = before.chain(200 - notes..200).chain([298, 299]).collect();
        assert_eq!(numbers[..expected.len()], expected);
        assert!(numbers[expected.len()] >= 300, "{numbers:?}");
    }

    #[test]
    fn one_part_has_the_newest_facts_of_even_sizes() {
        let mut saved = Conversation::default();
        let facts: Vec<_> = (1..=3_000)
            .map(|seq| if seq % 2 == 1 { prompt(seq, 400) } else { answer(seq, 400) })
            .collect();
        facts.iter().for_each(|fact| saved.push(fact));
        for bytes in [1, 10_000, 300_000] {
            let mut kept = Conversation::from(Stored::from(saved.clone()));
            kept.read(&kept.unread(bytes).unwrap(), &facts);
            assert!(kept.start_of_newest(bytes).is_some() && kept.has_unread(), "{bytes}");
        }
    }

    #[test]
    fn unread_facts_that_can_not_be_read_are_dropped() {
        let mut saved = Conversation::default();
        (1..=60).for_each(|seq| saved.push(&answer(seq, 1024 * 1024)));
        let mut kept = Conversation::from(Stored::from(saved));
        (61..=100).for_each(|seq| kept.push(&answer(seq, 1024 * 1024)));
        assert!(kept.is_too_large());
        assert_eq!((kept.events().len(), kept.messages_before(0)), (40, 60));
        kept.drop_unread();
        assert!(!kept.is_too_large());
        assert_eq!((kept.events().len(), kept.messages_before(0)), (40, 60));
    }

    #[test]
    fn the_newest_prompt_stays_however_long_its_turn_is() {
        let mut kept = Conversation::default();
        kept.push(&prompt(1, 10));
        (2..=200).for_each(|seq| kept.push(&answer(seq, 1024 * 1024)));
        assert_eq!(kept.events()[0].seq, 1);
        assert!(kept.forgotten() > 100);
    }
}
