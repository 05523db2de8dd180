//! Shows a run in brief: a line for each iteration, and a progress line.

use std::io;

use holdpoint_common::{Body, Delta, Event, Fact, Hold, Outcome, Snapshot, TaskCounts, Tasks, Timestamp};
use holdpoint_tools::shown::prose_line;

use super::{StepView, step_view};
use crate::summaries::clock::Clock;
use crate::summaries::shorten;
use crate::ui::{Style, Ui};

/// The width of the progress bar in cells.
const BAR: usize = 20;

/// The iteration-by-iteration view of a run.
pub(crate) struct Iterations {
    /// Shows events that need attention at once: asks, holds and faults.
    human: StepView,
    tasks: Tasks,
    /// The open iteration and its working time.
    open: Option<(u32, Clock)>,
}

impl Iterations {
    pub(crate) fn new(asks_elsewhere: bool) -> Self {
        Self { human: StepView::new(asks_elsewhere), tasks: Tasks::default(), open: None }
    }

    pub(crate) fn show(&mut self, event: &Event, ui: &mut Ui) -> io::Result<()> {
        match &event.body {
            Body::Fact(fact) => self.fact(event, fact, ui),
            Body::Delta(Delta::Retrying { .. } | Delta::Gap { .. } | Delta::NotSaved { .. } | Delta::SavedAgain) => {
                self.human.show(event, ui)
            }
            Body::Delta(_) => Ok(()),
        }
    }

    fn fact(&mut self, event: &Event, fact: &Fact, ui: &mut Ui) -> io::Result<()> {
        self.tasks.apply(fact);
        self.open.iter_mut().for_each(|(_, clock)| clock.tick(event.at, fact));
        match fact {
            Fact::IterationStarted { iteration, .. } => {
                self.open = Some((*iteration, Clock::begun(event.at)));
                self.human.is_open = true;
                Ok(())
            }
            Fact::TurnFinished { outcome, error, cause, receipt, usage } => {
                if *outcome == Outcome::Interrupted {
                    step_view::interrupted(cause.as_ref(), receipt.as_ref(), ui)?;
                }
                self.human.is_open = false;
                let Some((iteration, clock)) = self.open.take() else { return Ok(()) };
                let why = error.clone().or_else(|| cause.as_ref().map(ToString::to_string));
                let why = why.map(|why| format!(" ({})", shorten(&prose_line(&why)))).unwrap_or_default();
                let counts = self.tasks.counts();
                let counts = if counts.is_empty() { String::new() } else { format!("{counts}, ") };
                let (tokens, seconds) = (usage.total(), clock.seconds());
                let style = if *outcome == Outcome::Done { Style::Plain } else { Style::Warning };
                ui.line(style, &format!("#{iteration} {outcome}{why}: {counts}{tokens} tokens, {seconds:.1} s"))
            }
            Fact::AskRaised { .. }
            | Fact::AskAnswered { .. }
            | Fact::AskClosed { .. }
            | Fact::HoldChanged { .. }
            | Fact::PromptAccepted { .. }
            | Fact::PromptDelivered { .. }
            | Fact::PromptReturned { .. }
            | Fact::RunWaiting { .. }
            | Fact::RunExtended { .. }
            | Fact::RunFinished { .. }
            | Fact::SessionRenamed { .. }
            | Fact::ModelChanged { .. }
            | Fact::DebugChanged { .. }
            | Fact::AsksChanged { .. }
            | Fact::SessionRestored { .. } => self.human.show(event, ui),
            _ => Ok(()),
        }
    }

    /// Whether the progress line changes with time: the run is working and the line is shown.
    pub(crate) fn ticks(snapshot: &Snapshot) -> bool {
        let works = snapshot.run.as_ref().is_some_and(|run| run.progress.working_since.is_some());
        works && snapshot.asks.is_empty()
    }

    /// Shows the progress of the run, if the terminal can show it on one line.
    pub(crate) fn progress(&self, snapshot: &Snapshot, now: Timestamp, ui: &mut Ui) -> io::Result<()> {
        let Some(run) = snapshot.run.as_ref().filter(|_| snapshot.asks.is_empty()) else { return Ok(()) };
        let seconds = run.progress.worked(now).as_secs();
        let clock = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        let state = match &snapshot.hold {
            Hold::Off => String::new(),
            Hold::Requested { .. } => "PAUSING...".to_owned(),
            Hold::Standing { .. } => "⏸ PAUSED".to_owned(),
        };
        let counts = TaskCounts::from_tasks(&snapshot.tasks);
        let (bar, counts) = if counts.is_empty() { Default::default() } else { (bar(counts), counts.to_string()) };
        let (iteration, tokens) = (run.progress.iteration, format!("{} tokens", run.progress.tokens));
        let (iteration, number) = (format!("Iteration #{iteration}"), format!("#{iteration}"));
        // From the longest form to the shortest. Each part is shown whole or not at all.
        let ways: [&[&str]; 6] = [
            &[&bar, &counts, &iteration, &clock, &tokens, &state],
            &[&counts, &iteration, &clock, &tokens, &state],
            &[&counts, &iteration, &clock, &state],
            &[&counts, &number, &clock, &state],
            &[&number, &state],
            &[&state],
        ];
        let text = |way: &[&str]| way.iter().copied().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  ");
        ui.progress(&ways.map(text))
    }
}

/// A bar that shows how many of the tasks are done.
fn bar(counts: TaskCounts) -> String {
    let done = counts.done * BAR / counts.total().max(1);
    format!("[{}{}]", "█".repeat(done), "░".repeat(BAR - done))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_full_when_all_is_done() {
        let counts = |done, todo| TaskCounts { done, todo, ..TaskCounts::default() };
        assert_eq!(bar(counts(0, 0)), format!("[{}]", "░".repeat(20)));
        assert_eq!(bar(counts(1, 3)), format!("[{}{}]", "█".repeat(5), "░".repeat(15)));
        assert_eq!(bar(counts(7, 0)), format!("[{}]", "█".repeat(20)));
    }
}
