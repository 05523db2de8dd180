//! Hosted agents: programs that speak the Agent Client Protocol and do the work of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Maximum length of the name of an agent in bytes.
pub const MAX_AGENT_NAME: usize = 32;

/// Maximum number of words in the command of an agent.
pub const MAX_AGENT_WORDS: usize = 64;

/// Maximum size of the command of an agent in bytes, all words together.
pub const MAX_AGENT_COMMAND: usize = 16 * 1024;

/// Maximum length of the id of an agent's model in bytes.
pub const MAX_AGENT_MODEL: usize = 256;

/// An agent that a session hosts: a program that is its model and its tools. The program is started
/// with the session's first turn, in its sandbox, and ends with the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentSettings {
    /// Name of the agent: letters, digits, `.`, `_` and `-`, at most 32.
    pub name: String,
    /// Program of the agent, as a path or a name to look up in the `PATH` of the session, and its
    /// arguments; or the name of a known agent alone. At most 64 words and 16 KiB. No shell is
    /// involved.
    pub command: Vec<String>,
    /// Model that the agent uses, by its id at the agent. At most 256 bytes. Default: the agent's own
    /// choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// How a hosted agent gets the conversation of its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AgentStart {
    /// The conversation begins: the agent has a new session of its own.
    New,
    /// The agent has resumed its own session.
    Resumed,
    /// The agent has loaded its own session.
    Loaded,
    /// The agent can't continue its session. It has a new one, and the conversation as text.
    Replayed,
}

/// The reason why an agent can't be hosted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The name is not allowed.
    #[error(
        "`{name}` can't be the name of an agent: it has at most {MAX_AGENT_NAME} letters, digits, `.`, \
         `_` and `-`"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// The command has no program.
    #[error("the command of an agent is empty")]
    Empty,
    /// The command is too long.
    #[error(
        "the command of an agent has more than {MAX_AGENT_WORDS} words or {MAX_AGENT_COMMAND} bytes"
    )]
    TooLong,
    /// The model can't be one.
    #[error("the model of an agent has 1 to {MAX_AGENT_MODEL} bytes on one line")]
    Model,
    /// A word of the command has a zero byte.
    #[error("a word in the command of an agent has a zero byte")]
    ZeroByte,
}

impl AgentSettings {
    /// Creates an agent that is this program with these arguments. Its name is that of the program's
    /// file, without the characters that are not allowed in a name.
    #[must_use]
    pub fn from_command(command: Vec<String>) -> Self {
        let file = command.first().and_then(|program| program.rsplit('/').next());
        let mut name: String = file.unwrap_or_default().chars().filter(is_allowed).collect();
        name.truncate(MAX_AGENT_NAME);
        let name = if name.is_empty() { "custom".to_owned() } else { name };
        Self { name, command, model: None }
    }

    /// Sets the model that the agent uses.
    #[must_use]
    pub fn with_model(self, model: Option<String>) -> Self {
        Self { model, ..self }
    }

    /// The name of the agent as the model of its session.
    #[must_use]
    pub fn model_name(&self) -> String {
        format!("agent/{}", self.name)
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// [`AgentError`] if the name or the command is not allowed.
    pub fn check(&self) -> Result<(), AgentError> {
        let Self { name, command, model } = self;
        let is_model = |model: &String| {
            (1..=MAX_AGENT_MODEL).contains(&model.len()) && !model.contains(char::is_control)
        };
        if !model.as_ref().is_none_or(is_model) {
            return Err(AgentError::Model);
        }
        if name.is_empty() || name.len() > MAX_AGENT_NAME || !name.chars().all(|c| is_allowed(&c)) {
            return Err(AgentError::Name { name: name.chars().take(MAX_AGENT_NAME).collect() });
        }
        if command.first().is_none_or(|program| program.is_empty()) {
            return Err(AgentError::Empty);
        }
        let bytes: usize = command.iter().map(String::len).sum();
        if command.len() > MAX_AGENT_WORDS || bytes > MAX_AGENT_COMMAND {
            return Err(AgentError::TooLong);
        }
        if command.iter().any(|word| word.contains('\0')) {
            return Err(AgentError::ZeroByte);
        }
        Ok(())
    }
}

fn is_allowed(character: &char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-')
}
