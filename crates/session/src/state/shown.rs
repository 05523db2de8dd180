//! The views of a state that clients see: its snapshot and its summary.

use std::sync::Arc;

use holdpoint_common::{QueuedPrompt, SessionSummary, Snapshot, Usage};

use super::{State, queued};

impl State {
    /// The summary shown in session lists while the session has no actor.
    #[must_use]
    pub fn summary(&self) -> SessionSummary {
        SessionSummary { live: false, ..SessionSummary::from(&self.snapshot(self.last(), 0, None)) }
    }

    /// The state as clients see it. `seq` is the number of the last event, fact or delta. `clients`
    /// is the number of attached clients. `not_saved` is the reason why some facts are not saved,
    /// if there are any.
    #[must_use]
    pub fn snapshot(&self, seq: u64, clients: usize, not_saved: Option<Arc<str>>) -> Snapshot {
        Snapshot {
            settings: Arc::clone(&self.settings),
            title: self.title.clone().unwrap_or_else(|| self.settings.name.clone()),
            last_line: self.last_line.clone(),
            seq,
            status: self.status(),
            since: self.since,
            worked_ms: self.worked_ms,
            working_since: self.working_since,
            turn: self.turn().map(|turn| turn.id),
            step: self.turn().map(|turn| turn.step).filter(|step| *step > 0),
            asks: self.asks.iter().cloned().collect(),
            hold: self.hold.clone(),
            queue: self
                .queue
                .iter()
                .filter_map(|event| queued(event))
                .map(|(prompt, text)| QueuedPrompt { prompt, text: Arc::clone(text) })
                .collect(),
            jobs: self.jobs.clone(),
            last_turn: self.last_turn.clone(),
            run: self.run.clone(),
            last_run: self.last_run,
            tasks: Arc::clone(&self.tasks.tasks),
            notes: Arc::clone(&self.tasks.notes),
            usage: self.usage_so_far(),
            context: self.context,
            instructions: Arc::clone(&self.instructions),
            files_modified: Arc::clone(&self.files_modified),
            clients,
            saved: not_saved.is_none(),
            not_saved,
            gaps: self.gaps.clone(),
            is_debug_enabled: self.debug,
        }
    }

    /// The usage of all steps, including the open one once it is answered.
    fn usage_so_far(&self) -> Usage {
        let answered = self.turn().and_then(|turn| turn.open_step).and_then(|step| step.usage);
        let mut used = self.usage;
        used += answered.unwrap_or_default();
        used
    }
}
