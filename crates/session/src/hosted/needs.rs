//! The needs of an agent: its command, and everything that it gets beyond the sandbox of its session.
//! If there is anything, the user approves its start.

mod files;
mod server;

use std::path::Path;

use holdpoint_common::{PolicyMode, SandboxLevel, SessionError};
use holdpoint_tools::{Act, Domains, Intent, Sandbox, Widening, Workspace, shown};

use self::files::Files;
use self::server::Server;
use super::agent::Agent;
use super::known::KnownAgent;
use super::permission::line;

/// The needs of an agent in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Needs {
    /// Identifies the needs: they are the same in two sessions if their details are.
    pub(super) id: String,
    /// The program, as a path if it was looked up, and its arguments.
    pub(super) command: Vec<String>,
    /// The widenings of the sandbox.
    pub(super) widenings: Vec<Widening>,
    /// The files among them.
    files: Files,
    /// Whether the user approves the start.
    pub(super) needs_approval: bool,
    message: String,
    /// The needs in words.
    pub(super) details: String,
}

impl Needs {
    /// Determines the needs of an agent in a workspace. Looks at files, so it blocks.
    ///
    /// # Errors
    /// The reason why the agent can't be started.
    pub(super) fn of(agent: &Agent, workspace: &Workspace) -> Result<Self, String> {
        let level = workspace.sandbox().map_or(SandboxLevel::Off, Sandbox::level);
        if let Some(why) = not_restrained(workspace.policy().mode(), level) {
            return Err(format!("{why} (hint: {NOT_RESTRAINED_HINT})"));
        }
        let (mut files, mut widenings) = (Files::default(), Vec::new());
        let (command, server) = match agent.known {
            Some(known) => (known_command(known, workspace)?, Server::of(known, &agent.vars)?),
            None => (agent.settings.command.clone(), None),
        };
        // Without the workspace, because an approval can be for all sessions.
        let mut details = shown::command_anywhere(&line(&command));
        let mut message = format!("Start the agent {}", agent.name());
        match (workspace.sandbox(), agent.known) {
            (None, _) => {
                message.push_str(" without a sandbox");
                let words = "it has your permissions, whatever the policy is";
                details.push_str(&format!("\nwithout a sandbox: {words}"));
            }
            (Some(sandbox), Some(known)) => {
                (files, widenings) = Files::of(known, workspace, sandbox)?;
                widenings.extend(network(known, server.as_ref(), sandbox)?);
                for widening in &widenings {
                    details.push_str(&format!("\nit may {widening}"));
                }
            }
            (Some(_), None) => {}
        }
        if let Some(known) = agent.known {
            let variables = known.variables.join(", ");
            details.push_str(&format!("\nit gets the variables {variables}, where they are set"));
        }
        if let Some(Server { variable, host }) = &server {
            details.push_str(&format!("\nits server is {}, by {variable}", shown::line(host)));
        }
        message.push('?');
        let id = blake3::hash(details.as_bytes()).to_hex().to_string();
        let needs_approval = level == SandboxLevel::Off || agent.known.is_some();
        Ok(Self { id, command, widenings, files, needs_approval, message, details })
    }

    /// Creates the files and folders that are missing.
    ///
    /// # Errors
    /// The reason why one can't be created.
    pub(super) fn create_files(&self) -> Result<(), String> {
        self.files.create()
    }

    /// The start of the agent, for the policy and the user.
    pub(super) fn intent(self, agent: &Agent) -> Intent {
        let Self { id, message, details, .. } = self;
        let always = agent.known.map(|known| {
            // A session remembers the text, so it has to identify the needs.
            let id = &id[..16];
            format!("start {} in all sessions, until these needs change ({id})", known.name)
        });
        Intent { details: Some(details), always, ..Intent::new(start_of(agent), message) }
    }
}

/// The effect of a start, for the policy.
pub(super) fn start_of(agent: &Agent) -> Act {
    Act::StartAgent { name: agent.name().to_owned() }
}

/// The command of a known agent. Its program is never one of the workspace.
fn known_command(known: &KnownAgent, workspace: &Workspace) -> Result<Vec<String>, String> {
    let program = known.find(workspace.env(), workspace.root());
    let program = program.as_ref().and_then(|program| program.to_str()).ok_or_else(|| {
        // No program lies below a file.
        let inside = known.find(workspace.env(), Path::new("/dev/null"));
        if let Some(inside) = inside {
            let inside = inside.display();
            return format!(
                "{inside} is in the workspace, and programs of the workspace are not started as agents \
                 (hint: begin the session in another folder)"
            );
        }
        let (programs, package) = (known.programs.join("` or `"), known.package);
        format!("the program `{programs}` is not found (hint: npm install -g {package})")
    })?;
    let args = known.args.iter().map(|arg| (*arg).to_owned());
    Ok([program.to_owned()].into_iter().chain(args).collect())
}

/// The network that a known agent gets, if the sandbox does not have it. Single hosts can't be allowed
/// at every level of the sandbox.
fn network(
    known: &KnownAgent,
    server: Option<&Server>,
    sandbox: &Sandbox,
) -> Result<Option<Widening>, String> {
    if sandbox.has_network() || known.domains.is_empty() {
        return Ok(None);
    }
    if sandbox.lacks_domains().is_some() {
        return Ok(Some(Widening::Network));
    }
    let mut domains: Vec<_> = known.domains.iter().map(|domain| (*domain).to_owned()).collect();
    if let Some(server) = server {
        domains.push(server.domain()?);
    }
    Ok(Some(Widening::Domains(Domains::parse(&domains)?)))
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
