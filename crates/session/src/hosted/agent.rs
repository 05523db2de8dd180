//! The agent of a session, with everything that it needs from its user.

use std::sync::Arc;

use holdpoint_common::AgentSettings;

use super::known::KnownAgent;

/// Remembers which agents the user has approved for all sessions.
pub(crate) trait Approvals: Send + Sync {
    /// Whether an agent is approved with exactly these needs. Blocks.
    fn has(&self, agent: &str, needs: &str) -> bool;

    /// Approves an agent with these needs, in place of earlier ones. Blocks.
    ///
    /// # Errors
    /// The reason why this can't be saved.
    fn remember(&self, agent: &str, needs: &str) -> Result<(), String>;
}

/// The agent of a session.
pub(super) struct Agent {
    pub(super) settings: AgentSettings,
    /// Its line of the table, if it has one.
    pub(super) known: Option<&'static KnownAgent>,
    /// The variables that it gets from its user.
    pub(super) vars: Vec<(String, String)>,
    /// `None` if the program keeps no approvals.
    pub(super) approvals: Option<Arc<dyn Approvals>>,
}

impl Agent {
    /// Takes the variables of a known agent from the environment `env` of its user.
    pub(super) fn new(
        settings: &AgentSettings,
        env: &[(String, String)],
        approvals: Option<Arc<dyn Approvals>>,
    ) -> Self {
        let known = KnownAgent::of(settings);
        let variables = known.map_or(&[][..], |known| known.variables);
        let vars = env.iter().filter(|(name, _)| variables.contains(&name.as_str()));
        Self { settings: settings.clone(), known, vars: vars.cloned().collect(), approvals }
    }

    pub(super) fn name(&self) -> &str {
        &self.settings.name
    }

    /// Whether the user has approved the agent with these needs for all sessions. Blocks.
    pub(super) fn is_remembered(&self, needs: &str) -> bool {
        self.known.is_some()
            && self.approvals.as_ref().is_some_and(|approvals| approvals.has(self.name(), needs))
    }
}
