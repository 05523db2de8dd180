//! The conversation as a state keeps it: the newest of it, for what is far too old fits into no request any more.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdpoint_common::{Event, Fact, NOTES_KEPT};

/// Bytes of the conversation that are kept at most, or only the newest prompt and what has come since. A request of
/// 100,000 tokens would have to have over 600 bytes to each to need more.
pub const KEPT: usize = 64 * 1024 * 1024;

/// The prompts that were started, answers and results: the newest of them. And what iterations of a run begin with: the
/// run, tasks and notes. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conversation {
    events: Arc<Vec<Arc<Event>>>,
    /// Bytes of these.
    weight: usize,
    /// How many came before them.
    forgotten: u64,
}

impl Conversation {
    /// The newest facts of it.
    #[must_use]
    pub fn events(&self) -> &[Arc<Event>] {
        &self.events
    }

    /// How many facts of it came before those.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// About how many bytes of words are in these.
    pub(super) fn words(&self) -> u64 {
        (self.weight - size_of::<Event>() * self.events.len()) as u64
    }

    /// Adds a fact.
    pub(super) fn push(&mut self, event: &Arc<Event>) {
        self.weight += event.weight();
        Arc::make_mut(&mut self.events).push(Arc::clone(event));
        if self.weight > KEPT {
            self.forget();
        }
    }

    /// What was said to the run that the model has not answered: its iteration failed first.
    pub(super) fn unheard(&self) -> impl Iterator<Item = &Arc<Event>> {
        let hears = |event: &&Arc<Event>| match event.fact() {
            Some(Fact::RunStarted { .. } | Fact::StepFinished { refused: true, .. }) => true,
            Some(Fact::AssistantMessage(message)) => message.says_something(),
            _ => false,
        };
        let since = self.events.iter().rev().take_while(move |event| !hears(event));
        since.filter(|event| matches!(event.fact(), Some(Fact::PromptAccepted { .. })))
    }

    /// Leaves what an iteration of a run begins with: its run, the tasks, the newest notes, and what nobody has heard.
    pub(super) fn begin_iteration(&mut self) {
        let run = |event: &Arc<Event>| matches!(event.fact(), Some(Fact::RunStarted { .. }));
        let last_run = self.events.iter().rposition(run);
        let unheard: BTreeSet<_> = self.unheard().map(|event| event.seq).collect();
        let (mut moved, mut notes) = (BTreeSet::new(), 0);
        let mut kept: Vec<_> = (0..self.events.len())
            .rev()
            .filter(|at| match self.events[*at].fact() {
                Some(Fact::RunStarted { .. }) => Some(*at) == last_run,
                Some(Fact::TaskAdded { .. }) => true,
                Some(Fact::PromptAccepted { .. }) => unheard.contains(&self.events[*at].seq),
                // Only where it has come to.
                Some(Fact::TaskMoved { task, .. }) => moved.insert(*task),
                Some(Fact::NoteTaken { .. }) => {
                    notes += 1;
                    notes <= NOTES_KEPT
                }
                _ => false,
            })
            .collect();
        kept.reverse();
        self.keep(&kept);
        self.forgotten = 0;
    }

    /// Keeps these alone.
    fn keep(&mut self, places: &[usize]) {
        let kept: Vec<_> = places.iter().map(|at| Arc::clone(&self.events[*at])).collect();
        self.forgotten += (self.events.len() - kept.len()) as u64;
        self.weight = kept.iter().map(|event| event.weight()).sum();
        self.events = Arc::new(kept);
    }

    /// Keeps the newest three quarters of what may be kept, from where a prompt or an answer begins, and of a turn that is
    /// longer its prompt, too, or what its iteration began with. Not seldom by a little: what is forgotten is moved out of the way each time.
    fn forget(&mut self) {
        let (mut weight, mut from) = (0, self.events.len());
        for (at, event) in self.events.iter().enumerate().rev() {
            weight += event.weight();
            if weight > KEPT / 4 * 3 {
                break;
            }
            if matches!(event.fact(), Some(Fact::PromptAccepted { .. } | Fact::AssistantMessage(_))) {
                from = at;
            }
        }
        let is_prompt = |event: &Arc<Event>| matches!(event.fact(), Some(Fact::PromptAccepted { .. }));
        let prompt = match self.events.get(from) {
            Some(event) if is_prompt(event) => None,
            _ => self.events[..from].iter().rposition(is_prompt),
        };
        let iteration =
            self.events[..from].iter().rposition(|event| matches!(event.fact(), Some(Fact::IterationStarted { .. })));
        let stands = |at: &usize| Some(*at) == prompt || Some(*at) == iteration || begins_iterations(&self.events[*at]);
        let kept: Vec<_> = (0..from).filter(stands).chain(from..self.events.len()).collect();
        self.keep(&kept);
    }
}

/// Whether it is of what iterations begin with.
fn begins_iterations(event: &Event) -> bool {
    matches!(
        event.fact(),
        Some(Fact::RunStarted { .. } | Fact::TaskAdded { .. } | Fact::TaskMoved { .. } | Fact::NoteTaken { .. })
    )
}

#[cfg(test)]
mod tests {
    use holdpoint_common::{AssistantMessage, Block, BlockKind, Body, ItemId, PromptId, Timestamp, Who};

    use super::*;

    /// A prompt, or an answer.
    fn event(seq: u64, bytes: usize, prompt: bool) -> Arc<Event> {
        let fact = if prompt {
            Fact::PromptAccepted { prompt: PromptId(seq), text: "x".repeat(bytes).into(), by: Who::named("test") }
        } else {
            let (item, text) = (ItemId(seq), "x".repeat(bytes));
            let block = Block { item, kind: BlockKind::Text, text, signature: None, calls_before: 0 };
            Fact::AssistantMessage(AssistantMessage { blocks: vec![block], ..AssistantMessage::default() })
        };
        Arc::new(Event { seq, at: Timestamp(0), turn: None, step: None, body: Body::Fact(fact) })
    }

    #[test]
    fn t_u12_only_so_much_is_kept_and_it_begins_with_a_prompt() {
        let mut kept = Conversation::default();
        for seq in 1..=400 {
            kept.push(&event(seq, 1024 * 1024, seq % 10 == 1));
            assert!(kept.weight <= KEPT, "{seq}");
            assert!(matches!(kept.events()[0].fact(), Some(Fact::PromptAccepted { .. })), "{seq}");
            assert_eq!(kept.events().last().unwrap().seq, seq);
            assert_eq!(kept.forgotten() + kept.events().len() as u64, seq);
        }
        assert!(kept.weight > KEPT / 2);
    }

    #[test]
    fn the_newest_prompt_stays_however_long_its_turn_is() {
        let mut kept = Conversation::default();
        kept.push(&event(1, 10, true));
        (2..=200).for_each(|seq| kept.push(&event(seq, 1024 * 1024, false)));
        assert_eq!(kept.events()[0].seq, 1);
        assert!(kept.forgotten() > 100);
    }
}
