//! Decisions on a session's settings: its name, model, policy mode and log level.

use holdpoint_common::api::{ChangeModelRequest, DebugRequest, PolicyRequest, RenameRequest};
use holdpoint_common::{Refused, SessionFact, Who, check_name};

use super::DecisionBuilder;
use crate::state::input::Decide;
use crate::state::{Cut, Phase};

impl Decide for RenameRequest {
    fn decide(&self, by: &Who, builder: &mut DecisionBuilder<'_>) -> Result<(), Refused> {
        // A name has no effect on a session's work, so a closed session can be renamed, too.
        if !matches!(builder.state.phase, Phase::Closed) {
            builder.check_open()?;
        }
        check_name(&self.name)?;
        if builder.state.settings.name != self.name
            || builder.state.title.as_ref() != Some(&self.name)
        {
            builder.record(SessionFact::Renamed { name: self.name.clone(), by: by.clone() });
        }
        Ok(())
    }
}

/// Changes the model of the turns to come; the open turn keeps the model it began with. The sender
/// has resolved the name of the model.
impl Decide for ChangeModelRequest {
    fn decide(&self, by: &Who, builder: &mut DecisionBuilder<'_>) -> Result<(), Refused> {
        builder.check_open()?;
        if builder.state.settings.model != self.model {
            builder.record(SessionFact::ModelChanged { model: self.model.clone(), by: by.clone() });
        }
        Ok(())
    }
}

impl Decide for DebugRequest {
    fn decide(&self, by: &Who, builder: &mut DecisionBuilder<'_>) -> Result<(), Refused> {
        builder.check_open()?;
        if builder.state.debug != self.enabled {
            builder.record(SessionFact::DebugChanged { enabled: self.enabled, by: by.clone() });
        }
        Ok(())
    }
}

/// Changes the mode that judges the calls to come. An ask that is open stays open.
impl Decide for PolicyRequest {
    fn decide(&self, by: &Who, builder: &mut DecisionBuilder<'_>) -> Result<(), Refused> {
        builder.check_open()?;
        if builder.state.settings.policy != self.policy {
            builder.record(SessionFact::PolicyChanged { policy: self.policy, by: by.clone() });
        }
        Ok(())
    }
}

impl DecisionBuilder<'_> {
    /// Fails if the session is closed or closing.
    pub(super) fn check_open(&self) -> Result<(), Refused> {
        match &self.state.phase {
            Phase::Closed | Phase::Interrupting(_, Cut { closing: Some(_), .. }) => {
                Err(Refused::Closed)
            }
            Phase::Idle | Phase::Running(_) | Phase::Interrupting(_, Cut { closing: None, .. }) => {
                Ok(())
            }
        }
    }
}
