//! The sandbox of tool processes: its levels and its settings.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The level of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SandboxLevel {
    /// Namespaces, made by bubblewrap. Processes see no sockets, keys or other processes of their
    /// user, and write only to the workspace and to folders of the sandbox.
    Bwrap,
    /// Landlock and seccomp. Processes write only to the workspace and to folders of the sandbox,
    /// but files in the workspace can't be protected from them.
    Landlock,
    /// No sandbox. Processes have all permissions of their user.
    Off,
}

impl fmt::Display for SandboxLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bwrap => "bwrap",
            Self::Landlock => "landlock",
            Self::Off => "off",
        })
    }
}

/// The level of the sandbox that a user has chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SandboxChoice {
    /// The strongest level that works on this machine.
    Auto,
    /// `bwrap`. Where it does not work, no session is opened.
    Bwrap,
    /// `landlock`. Where it does not work, no session is opened.
    Landlock,
    /// No sandbox.
    #[default]
    Off,
}

/// The settings of the sandbox of tool processes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SandboxSettings {
    /// Level of the sandbox: `auto`, `bwrap`, `landlock` or `off`. Default: `off`.
    pub level: SandboxChoice,
    /// Further folders and files, as absolute paths or with `~`, that processes may write to.
    /// Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<String>,
    /// Further folders and files, as absolute paths or with `~`, that processes can't read.
    /// Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    /// Whether processes may use the network. Default: `false`.
    pub network: bool,
}
