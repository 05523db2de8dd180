//! The ways to show events: as JSON, step by step, or iteration by iteration.

use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use holdpoint_common::{Event, Snapshot, Timestamp};

use super::{Iterations, StepView};
use crate::ui::Ui;

pub(crate) enum View {
    /// One line of JSON for each event.
    Json,
    Steps(Box<StepView>),
    /// Iteration by iteration, for a run.
    Iterations(Box<Iterations>),
}

impl View {
    /// Shows JSON or steps. With `asks_elsewhere`, the view shows no asks, because the follower
    /// shows them.
    pub(crate) fn steps(json: bool, asks_elsewhere: bool) -> Self {
        if json { Self::Json } else { Self::Steps(Box::new(StepView::new(asks_elsewhere))) }
    }

    /// Like [`View::steps`], but also shows the work of other clients.
    pub(crate) fn transcript(json: bool, asks_elsewhere: bool) -> Self {
        if json {
            Self::Json
        } else {
            Self::Steps(Box::new(StepView::new(asks_elsewhere).with_others()))
        }
    }

    pub(crate) fn show(&mut self, event: &Arc<Event>, ui: &mut Ui) -> io::Result<()> {
        match self {
            Self::Json => ui.event(event),
            Self::Steps(steps) => steps.show(event, ui),
            Self::Iterations(iterations) => iterations.show(event, ui),
        }
    }

    /// Treats the next events, up to `seq`, as a replay after this client fell behind.
    pub(super) fn resume(&mut self, seq: u64) {
        match self {
            Self::Steps(steps) => steps.resume(seq),
            Self::Json | Self::Iterations(_) => {}
        }
    }

    /// Whether the progress line changes with time alone.
    pub(super) fn ticks(&self, snapshot: &Snapshot) -> bool {
        match self {
            Self::Iterations(_) => Iterations::ticks(snapshot),
            Self::Json | Self::Steps(_) => false,
        }
    }

    /// Shows the progress of the session, if this view has a progress line.
    pub(super) fn progress(&self, snapshot: &Snapshot, ui: &mut Ui) -> io::Result<()> {
        match self {
            Self::Iterations(iterations) => {
                iterations.progress(snapshot, Timestamp::from(SystemTime::now()), ui)
            }
            Self::Json | Self::Steps(_) => Ok(()),
        }
    }
}
