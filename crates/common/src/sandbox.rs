//! The sandbox of tool processes: its levels and its settings.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The level of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SandboxLevel {
    /// The strongest level that works on this machine. A session that is open has one of the others.
    #[default]
    Auto,
    /// Namespaces, made by bubblewrap. Processes see no sockets, keys or other processes of their
    /// user, and write only to the workspace and to folders of the sandbox. Protected names in the
    /// workspace folder can't be changed.
    Bwrap,
    /// Landlock and seccomp. Processes write only to the workspace and to folders of the sandbox,
    /// but names in the workspace can't be protected from them.
    Landlock,
    /// No sandbox: processes have the permissions of their user.
    Off,
}

impl SandboxLevel {
    /// Name of the level in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Bwrap => "bwrap",
            Self::Landlock => "landlock",
            Self::Off => "off",
        }
    }
}

impl fmt::Display for SandboxLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Maximum number of paths in a list of the settings.
const MAX_PATHS: usize = 100;

/// The settings of the sandbox of tool processes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SandboxSettings {
    /// Level of the sandbox: `auto`, `bwrap`, `landlock` or `off`. With `bwrap` or `landlock`, no
    /// session is opened where that level does not work. Default: `auto`.
    pub level: SandboxLevel,
    /// Further files and folders that processes may change, as absolute paths or with `~/`.
    /// Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<String>,
    /// Further files and folders that processes can't read, as absolute paths or with `~/`.
    /// Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    /// Whether processes may use the network. Default: `false`.
    pub network: bool,
}

impl SandboxSettings {
    /// No sandbox.
    #[must_use]
    pub fn off() -> Self {
        Self { level: SandboxLevel::Off, ..Self::default() }
    }

    /// Whether there is no sandbox, and no other setting.
    #[must_use]
    pub fn is_off(&self) -> bool {
        *self == Self::off()
    }

    /// Checks that there are at most 100 paths in each list, which are absolute or begin with `~/`.
    ///
    /// # Errors
    /// The fault, in words.
    pub fn check(&self) -> Result<(), String> {
        let is_too_long = |paths: &[String]| paths.len() > MAX_PATHS;
        if is_too_long(&self.writable) || is_too_long(&self.hidden) {
            return Err(format!("[sandbox]: a list has more than {MAX_PATHS} paths"));
        }
        let is_relative = |path: &&String| !path.starts_with('/') && !path.starts_with("~/");
        match self.writable.iter().chain(&self.hidden).find(is_relative) {
            Some(path) => {
                Err(format!("[sandbox]: `{path}` is neither absolute nor begins with `~/`"))
            }
            None => Ok(()),
        }
    }
}
