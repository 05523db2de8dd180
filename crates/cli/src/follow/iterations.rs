//! Shows a run in brief: a line for each iteration, and a progress line.

use std::io;

use holdpoint_common::{
    Body, Delta, Event, Fact, Hold, Outcome, RunFact, SessionFact, Snapshot, TaskCounts, Timestamp,
    TurnFact,
};
use holdpoint_tools::shown::prose_line;

use super::StepView;
use super::step_view::show_remark;
use crate::narrator::{Narration, TurnEnd};
use crate::summaries::shorten;
use crate::tone::Tone;
use crate::ui::Ui;

/// The width of the progress bar in cells.
const BAR_CELLS: usize = 20;

/// The iteration-by-iteration view of a run.
pub(crate) struct Iterations {
    /// Shows the events that have lines of their own, and narrates the rest.
    steps: StepView,
    /// The open iteration.
    open: Option<u32>,
}

impl Iterations {
    pub(crate) fn new(asks_elsewhere: bool) -> Self {
        Self { steps: StepView::new(asks_elsewhere), open: None }
    }

    pub(crate) fn show(&mut self, event: &Event, ui: &mut Ui) -> io::Result<()> {
        if has_own_lines(&event.body) {
            return self.steps.show(event, ui);
        }
        for narration in self.steps.narrate(event) {
            if let (Narration::TurnEnd(end), Some(fact)) = (narration, event.fact()) {
                self.show_turn_end(&end, fact, ui)?;
            }
        }
        if let Some(Fact::Run(RunFact::IterationStarted { iteration, .. })) = event.fact() {
            self.open = Some(*iteration);
        }
        Ok(())
    }

    /// Shows the end of a turn: its receipt if it was cut, and the line of its iteration.
    fn show_turn_end(&mut self, end: &TurnEnd, fact: &Fact, ui: &mut Ui) -> io::Result<()> {
        let Fact::Turn(TurnFact::Finished { outcome, error, cause, usage, .. }) = fact else {
            return Ok(());
        };
        if *outcome == Outcome::Interrupted {
            end.cause.iter().try_for_each(|remark| show_remark(remark, ui))?;
        }
        let (Some(iteration), Some(seconds)) = (self.open.take(), end.seconds) else {
            return Ok(());
        };
        let why = error.clone().or_else(|| cause.as_ref().map(ToString::to_string));
        let why = why.map(|why| format!(" ({})", shorten(&prose_line(&why)))).unwrap_or_default();
        let counts = self.steps.tasks().counts();
        let counts = if counts.is_empty() { String::new() } else { format!("{counts}, ") };
        let tokens = usage.total();
        let tone = if *outcome == Outcome::Done { Tone::Plain } else { Tone::Warning };
        ui.line(
            tone,
            &format!("#{iteration} {outcome}{why}: {counts}{tokens} tokens, {seconds:.1} s"),
        )
    }

    /// Whether the progress line changes with time: the run is working and the line is shown.
    pub(crate) fn ticks(snapshot: &Snapshot) -> bool {
        let is_working =
            snapshot.run.as_ref().is_some_and(|run| run.progress.working_since.is_some());
        is_working && snapshot.asks.is_empty()
    }

    /// Shows the progress of the run, if the terminal can show it on one line.
    pub(crate) fn progress(
        &self,
        snapshot: &Snapshot,
        now: Timestamp,
        ui: &mut Ui,
    ) -> io::Result<()> {
        let Some(run) = snapshot.run.as_ref().filter(|_| snapshot.asks.is_empty()) else {
            return Ok(());
        };
        let seconds = run.progress.worked(now).as_secs();
        let clock = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        let state = match &snapshot.hold {
            Hold::Off => String::new(),
            Hold::Requested { .. } => "PAUSING...".to_owned(),
            Hold::Standing { .. } => "⏸ PAUSED".to_owned(),
        };
        let counts = TaskCounts::from_tasks(&snapshot.tasks);
        let (bar, counts) =
            if counts.is_empty() { Default::default() } else { (bar(counts), counts.to_string()) };
        let tokens = format!("{} tokens", run.progress.tokens);
        let number = format!("#{}", run.progress.iteration);
        let iteration = format!("Iteration {number}");
        // From the longest form to the shortest. Each part is shown whole or not at all.
        let layouts: [&[&str]; 6] = [
            &[&bar, &counts, &iteration, &clock, &tokens, &state],
            &[&counts, &iteration, &clock, &tokens, &state],
            &[&counts, &iteration, &clock, &state],
            &[&counts, &number, &clock, &state],
            &[&number, &state],
            &[&state],
        ];
        let text = |layout: &[&str]| {
            layout.iter().copied().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  ")
        };
        ui.progress(&layouts.map(text))
    }
}

/// Whether an event has lines of its own, besides the line of its iteration.
fn has_own_lines(body: &Body) -> bool {
    match body {
        Body::Delta(delta) => {
            matches!(
                delta,
                Delta::Retrying { .. }
                    | Delta::Gap { .. }
                    | Delta::NotSaved { .. }
                    | Delta::SavedAgain
            )
        }
        Body::Fact(fact) => matches!(
            fact,
            Fact::Ask(_)
                | Fact::Session(
                    SessionFact::HoldChanged { .. }
                        | SessionFact::Renamed { .. }
                        | SessionFact::ModelChanged { .. }
                        | SessionFact::DebugChanged { .. }
                        | SessionFact::AsksChanged { .. }
                        | SessionFact::PolicyChanged { .. }
                        | SessionFact::Restored { .. }
                        | SessionFact::Moved { .. }
                        | SessionFact::ClientRefused(_)
                )
                | Fact::Prompt(_)
                | Fact::Run(
                    RunFact::Waiting { .. } | RunFact::Extended { .. } | RunFact::Finished { .. }
                )
        ),
    }
}

/// A bar that shows how many of the tasks are done.
fn bar(counts: TaskCounts) -> String {
    let done = counts.done * BAR_CELLS / counts.total().max(1);
    format!("[{}{}]", "█".repeat(done), "░".repeat(BAR_CELLS - done))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_shows_the_share_of_done_tasks() {
        let counts = |done, todo| TaskCounts { done, todo, ..TaskCounts::default() };
        assert_eq!(bar(counts(0, 0)), format!("[{}]", "░".repeat(20)));
        assert_eq!(bar(counts(1, 3)), format!("[{}{}]", "█".repeat(5), "░".repeat(15)));
        assert_eq!(bar(counts(7, 0)), format!("[{}]", "█".repeat(20)));
    }
}
