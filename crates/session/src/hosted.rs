//! Hosted agents: programs that speak the Agent Client Protocol and do the work of a session.
//!
//! A *hosted agent* is a program with a model and tools of its own. It runs under the session's
//! supervisor and in its sandbox, and takes the place of the session's model and tools: a turn is one
//! *agent turn*, which begins with a prompt to the agent and ends with its reply.
//!
//! - [`HostedModel`] is the session's model. An answer is a part of an agent turn: the text and the
//!   thoughts up to the next *agent call*, which is a tool call that the agent reports.
//! - [`HostedTool`](tool::HostedTool) is a tool of the session. A call of it follows one agent call
//!   to its end: it streams the output, and puts the agent's permission requests to the policy and
//!   the user. It pauses if the agent requests a file or a new terminal.
//! - [`ServedTool`](served_tool::ServedTool) is a tool of Holdpoint for such requests, which are calls
//!   of the next answer: each call replies to its request.
//! - [`HostedSource`](source::HostedSource) starts the program before a step that needs it, and ends
//!   it when a turn is cut and with the session.
//!
//! If the agent gets more than the sandbox of the session, its start is a call of the tool, too, which
//! the user approves: see [`Needs`](needs::Needs).
//!
//! All share the [`Link`](link::Link) to the program. Only one of them uses it at a time: a
//! session's turn either reads an answer or runs a call. Everything that an agent sends is untrusted
//! and bounded.

mod agent;
mod ask;
#[cfg(feature = "folders")]
mod check;
mod command_line;
mod connection;
mod consent;
mod conversation;
mod deferred;
mod event;
mod known;
mod known_calls;
mod link;
mod model;
mod needs;
mod permission;
mod protocol;
mod served;
mod served_tool;
mod source;
mod start;
mod terminals;
mod tool;

use std::sync::Arc;

use holdpoint_common::AgentSettings;
use holdpoint_tools::{ReadFile, Shell, Toolbox, WriteFile};
use tokio::runtime;

use crate::model::Model;
use crate::state::State;
use agent::Agent;
use link::{Link, SharedLink};
use model::HostedModel;
use served_tool::{Serve, ServedTool};
use source::{Before, HostedSource};
use tool::HostedTool;

pub(crate) use agent::Approvals;
#[cfg(feature = "folders")]
pub use check::{CheckedAgent, check_agent};
#[cfg(feature = "remote")]
pub(crate) use known::is_variable;
pub use known::{KNOWN_AGENTS, KnownAgent};
pub(crate) use needs::check_restrained;

/// The agent that a session hosts. Clones share it.
#[derive(Clone)]
pub(crate) struct Hosted {
    agent: Arc<Agent>,
    link: SharedLink,
    /// The runtime on which calls wait.
    runtime: runtime::Handle,
}

impl Hosted {
    /// `env` is the environment of the user, of which a known agent gets the variables of its line.
    pub(crate) fn new(
        settings: &AgentSettings,
        env: &[(String, String)],
        approvals: Option<Arc<dyn Approvals>>,
        runtime: runtime::Handle,
    ) -> Self {
        let link = Link::shared(settings);
        Self { agent: Arc::new(Agent::new(settings, env, approvals)), link, runtime }
    }

    /// The agent as the model of its session.
    pub(crate) fn model(&self) -> Arc<dyn Model> {
        Arc::new(HostedModel::new(&self.agent.settings, Arc::clone(&self.link)))
    }

    /// The tools of the session: one that follows the agent's own calls, and those that serve its
    /// requests.
    pub(crate) fn toolbox(&self, state: &State) -> Toolbox {
        let (agent, link) = (Arc::clone(&self.agent), Arc::clone(&self.link));
        let tool = HostedTool::new(Arc::clone(&agent), Arc::clone(&link), self.runtime.clone());
        let before = Before {
            session: state.agent_session().map(str::to_owned),
            approved: state.approved_start().map(str::to_owned),
        };
        let source = HostedSource::new(agent, link, before);
        let toolbox = Toolbox::new().with(move || tool.clone()).with_source(Box::new(source));
        let toolbox = self.serving(toolbox, ReadFile::new);
        let toolbox = self.serving(toolbox, WriteFile::new);
        self.serving(toolbox, Shell::new)
    }

    /// Adds a tool that serves requests of the agent.
    fn serving<T: Serve + 'static>(&self, toolbox: Toolbox, make: fn() -> T) -> Toolbox {
        let (link, runtime) = (Arc::clone(&self.link), self.runtime.clone());
        toolbox.with(move || ServedTool::new(make(), Arc::clone(&link), runtime.clone()))
    }
}
