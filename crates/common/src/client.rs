//! Who a client is.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the screen calls itself.
const SCREEN: &str = "tui";

/// What a Node.js program is called that does not name itself.
const NODE: &str = "node";

/// The commands of the program, each of which calls itself by its name.
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

    /// Where this client acts from, as it follows a verb: `from the command line (pid 7)`, `by curl/8.5.0 (pid 9)`.
    #[must_use]
    pub fn origin(&self) -> String {
        let place = match &*self.name {
            SCREEN => "from the screen".to_owned(),
            NODE => "from Node.js".to_owned(),
            command if COMMANDS.contains(&command) => "from the command line".to_owned(),
            other => format!("by {other}"),
        };
        match self.pid {
            Some(pid) => format!("{place} (pid {pid})"),
            None => place,
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
