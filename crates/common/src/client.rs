//! The identity of a client.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Client name of the screen.
const SCREEN: &str = "tui";

/// Client name of an editor that uses the Agent Client Protocol.
const EDITOR: &str = "acp";

/// Client name of a Node.js program that sets none.
const NODE: &str = "node";

/// The commands of the program `holdpoint`. Each command is a client with its own name.
pub const COMMANDS: [&str; 32] = [
    "run",
    "loop",
    "new",
    "list",
    "attach",
    "prompt",
    "unqueue",
    "logs",
    "show",
    "wait",
    "inbox",
    "approve",
    "deny",
    "continue",
    "answer",
    "asks",
    "hold",
    "release",
    "interrupt",
    "close",
    "rename",
    "move",
    "rm",
    "export",
    "import",
    "status",
    "daemon",
    "models",
    "agents",
    "policy",
    "mcp",
    "completions",
];

/// A client as others see it: its name and its process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Who {
    /// Name that the client gives itself, for example `run` or `tui`.
    pub name: String,
    /// Process id of the client; absent if the client has no process of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

impl Who {
    /// Creates a client with this name and no process id.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), pid: None }
    }

    /// Describes the kind of client, in words that follow a verb: `from the command line`,
    /// `by curl/8.5.0`.
    #[must_use]
    pub fn origin_without_pid(&self) -> String {
        match &*self.name {
            SCREEN => "from the screen".to_owned(),
            EDITOR => "from the editor".to_owned(),
            NODE => "from Node.js".to_owned(),
            command if COMMANDS.contains(&command) => "from the command line".to_owned(),
            other => format!("by {other}"),
        }
    }

    /// Like [`origin_without_pid`](Self::origin_without_pid), with the process id: `from the
    /// command line (pid 7)`.
    #[must_use]
    pub fn origin(&self) -> String {
        match self.pid {
            Some(pid) => format!("{} (pid {pid})", self.origin_without_pid()),
            None => self.origin_without_pid(),
        }
    }
}

/// A client that the daemon refused because a tool call had started its process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedClient {
    /// Process id of the client.
    pub pid: u32,
    /// Name of the client's program, at most 15 bytes. The process can choose it.
    pub program: String,
    /// Method and path of the request, at most 200 characters.
    pub request: String,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "{} (pid {pid})", self.name),
            None => f.write_str(&self.name),
        }
    }
}
