//! The needs of an agent: everything that it gets beyond the sandbox of its session. If there is
//! anything, the user approves its start.

use holdpoint_common::{AgentSettings, PolicyMode, SandboxLevel, SessionError};
use holdpoint_tools::{Act, Intent, Workspace, shown};

use super::permission::line;

/// The needs of an agent in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Needs {
    /// Identifies the needs: they are the same in two sessions if their details are.
    pub(super) id: String,
    /// Whether the user approves the start.
    pub(super) needs_approval: bool,
    message: String,
    details: String,
}

impl Needs {
    /// Determines the needs of an agent in a workspace.
    ///
    /// # Errors
    /// The reason why the agent can't be started.
    pub(super) fn of(agent: &AgentSettings, workspace: &Workspace) -> Result<Self, String> {
        let level = workspace.sandbox().map_or(SandboxLevel::Off, |sandbox| sandbox.level());
        if let Some(why) = not_restrained(workspace.policy().mode(), level) {
            return Err(format!("{why} (hint: {NOT_RESTRAINED_HINT})"));
        }
        let outside = level == SandboxLevel::Off;
        let mut details = shown::command(&line(&agent.command), workspace.root());
        let mut message = format!("Start the agent {}", agent.name);
        if outside {
            message.push_str(" without a sandbox");
            details
                .push_str("\nwithout a sandbox: it has your permissions, whatever the policy is");
        }
        message.push('?');
        let id = blake3::hash(details.as_bytes()).to_hex()[..16].to_owned();
        Ok(Self { id, needs_approval: outside, message, details })
    }

    /// The start of the agent, for the policy and the user.
    pub(super) fn intent(self, agent: &AgentSettings) -> Intent {
        let Self { message, details, .. } = self;
        Intent { details: Some(details), ..Intent::new(start_of(agent), message) }
    }
}

/// The effect of a start, for the policy.
pub(super) fn start_of(agent: &AgentSettings) -> Act {
    Act::StartAgent { name: agent.name.clone() }
}

const NOT_RESTRAINED_HINT: &str = "use another policy, or a sandbox";

/// The reason why a session can't host an agent; `None` if it can.
fn not_restrained(policy: PolicyMode, level: SandboxLevel) -> Option<&'static str> {
    (policy == PolicyMode::Readonly && level == SandboxLevel::Off).then_some(
        "without a sandbox, the policy `readonly` can't keep an agent from changing files",
    )
}

/// Checks that something restrains the agent of a session with this policy and this sandbox.
///
/// # Errors
/// [`SessionError::ModelSetup`] if the policy allows no change, and no sandbox enforces it.
pub(crate) fn check_restrained(
    policy: PolicyMode,
    level: SandboxLevel,
) -> Result<(), SessionError> {
    match not_restrained(policy, level) {
        None => Ok(()),
        Some(why) => Err(SessionError::ModelSetup {
            message: why.to_owned(),
            hint: NOT_RESTRAINED_HINT.to_owned(),
        }),
    }
}
