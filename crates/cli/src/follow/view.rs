//! How events are shown: as they are, step by step, or iteration by iteration.

use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use holdpoint_common::{Event, Snapshot, Timestamp};

use super::{Human, Iterations};
use crate::ui::Ui;

/// How events are shown.
pub(crate) enum View {
    /// As they are: a line of JSON each.
    Json,
    /// Step by step.
    Human(Box<Human>),
    /// Of a run, iteration by iteration.
    Iterations(Box<Iterations>),
}

impl View {
    /// As they are, or step by step; the asks here or elsewhere.
    pub(crate) fn steps(json: bool, asks_elsewhere: bool) -> Self {
        if json { Self::Json } else { Self::Human(Box::new(Human::new(asks_elsewhere))) }
    }

    /// The same, and what was said by users, who are elsewhere.
    pub(crate) fn transcript(json: bool, asks_elsewhere: bool) -> Self {
        if json { Self::Json } else { Self::Human(Box::new(Human::new(asks_elsewhere).with_prompts())) }
    }

    /// Shows an event.
    pub(super) fn show(&mut self, event: &Arc<Event>, ui: &mut Ui) -> io::Result<()> {
        match self {
            Self::Json => ui.event(event),
            Self::Human(human) => human.show(event, ui),
            Self::Iterations(iterations) => iterations.show(event, ui),
        }
    }

    /// What comes next up to `seq` was missed because it came faster than it could be written.
    pub(super) fn resume(&mut self, seq: u64) {
        match self {
            Self::Human(human) => human.resume(seq),
            Self::Json | Self::Iterations(_) => {}
        }
    }

    /// Whether how far it is changes with time alone.
    pub(super) fn ticks(&self, snapshot: &Snapshot) -> bool {
        match self {
            Self::Iterations(_) => Iterations::ticks(snapshot),
            Self::Json | Self::Human(_) => false,
        }
    }

    /// Shows how far the session is, where that is part of it.
    pub(super) fn progress(&self, snapshot: &Snapshot, ui: &mut Ui) -> io::Result<()> {
        match self {
            Self::Iterations(iterations) => iterations.progress(snapshot, Timestamp::from(SystemTime::now()), ui),
            Self::Json | Self::Human(_) => Ok(()),
        }
    }
}
