//! Who a client is.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the screen.
const SCREEN: &str = "tui";

/// The name of a Node.js program that gives none.
const NODE: &str = "node";

/// The commands of the program: each has its own name as a client.
pub const COMMANDS: [&str; 26] = [
    "run",
    "loop",
    "new",
    "list",
    "attach",
    "prompt",
    "logs",
    "show",
    "wait",
    "inbox",
    "approve",
    "deny",
    "continue",
    "answer",
    "hold",
    "release",
    "interrupt",
    "close",
    "rename",
    "rm",
    "export",
    "import",
    "status",
    "daemon",
    "models",
    "completions",
];

/// A client as others see it: its name and, where it has one of its own, its process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Who {
    /// What the client calls itself, for example `run` or `tui`.
    pub name: String,
    /// Its process id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

impl Who {
    /// A client of this name, in no process of its own.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), pid: None }
    }

    /// The kind of client, as it follows a verb: `from the command line`, `by curl/8.5.0`.
    #[must_use]
    pub fn place(&self) -> String {
        match &*self.name {
            SCREEN => "from the screen".to_owned(),
            NODE => "from Node.js".to_owned(),
            command if COMMANDS.contains(&command) => "from the command line".to_owned(),
            other => format!("by {other}"),
        }
    }

    /// The same with the client's process: `from the command line (pid 7)`.
    #[must_use]
    pub fn origin(&self) -> String {
        match self.pid {
            Some(pid) => format!("{} (pid {pid})", self.place()),
            None => self.place(),
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "{} (pid {pid})", self.name),
            None => f.write_str(&self.name),
        }
    }
}
