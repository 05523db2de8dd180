//! Decisions on a session's settings: its name, its model and its log level.

use holdpoint_common::{Fact, Who, check_name};

use super::DecisionBuilder;
use crate::state::decision::{Refused, Reply};
use crate::state::{Cut, Phase};

impl DecisionBuilder<'_> {
    pub(super) fn rename(&mut self, name: String, by: Who) -> Result<Reply, Refused> {
        // A name has no effect on a session's work, so a closed session can be renamed, too.
        if !matches!(self.state.phase, Phase::Closed) {
            self.not_closed()?;
        }
        check_name(&name)?;
        if self.state.settings.name != name || self.state.title.as_ref() != Some(&name) {
            self.facts.push(Fact::SessionRenamed { name, by });
        }
        Ok(Reply::Renamed)
    }

    /// Changes the model of the turns to come; the open turn keeps the model it began with.
    pub(super) fn change_model(&mut self, model: String, by: Who) -> Result<Reply, Refused> {
        self.not_closed()?;
        if self.state.settings.model != model {
            self.facts.push(Fact::ModelChanged { model, by });
        }
        Ok(Reply::Noted)
    }

    pub(super) fn change_debug(&mut self, enabled: bool, by: Who) -> Result<Reply, Refused> {
        self.not_closed()?;
        if self.state.debug != enabled {
            self.facts.push(Fact::DebugChanged { enabled, by });
        }
        Ok(Reply::Noted)
    }

    fn not_closed(&self) -> Result<(), Refused> {
        match &self.state.phase {
            Phase::Closed | Phase::Interrupting(_, Cut { closing: Some(_), .. }) => Err(Refused::Closed),
            Phase::Idle | Phase::Running(_) | Phase::Interrupting(_, Cut { closing: None, .. }) => Ok(()),
        }
    }
}
