//! Who a client is.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "{} (pid {pid})", self.name),
            None => f.write_str(&self.name),
        }
    }
}
