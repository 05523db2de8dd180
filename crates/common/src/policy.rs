//! What tools may do without asking, by class.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a call does to the world: what the policy judges by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PolicyClass {
    /// Only talks to the user or to the session itself.
    Talk,
    /// Reads inside the workspace.
    Read,
    /// Reads elsewhere.
    ReadOutside,
    /// Writes inside the workspace.
    Write,
    /// Writes inside the workspace, at a name that starts programs or configures them.
    WriteProtected,
    /// Writes elsewhere.
    WriteOutside,
    /// Runs a program.
    Run,
}

/// What is allowed unasked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PolicyMode {
    /// Reading inside the workspace; the rest asks.
    #[default]
    Ask,
    /// Also writing inside the workspace, but for protected names; the rest asks.
    Edits,
    /// Everything.
    All,
    /// Reading inside the workspace; the rest is denied unasked.
    Readonly,
}

/// What a policy says of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It may run.
    Allow,
    /// It may run if the user confirms it.
    Ask,
    /// It may not run.
    Deny,
}

impl PolicyMode {
    /// What this mode says of a call of that class.
    #[must_use]
    pub fn judge(self, class: PolicyClass) -> Verdict {
        use PolicyClass as C;
        match (self, class) {
            (_, C::Talk | C::Read) | (Self::All, _) | (Self::Edits, C::Write) => Verdict::Allow,
            (Self::Readonly, C::ReadOutside | C::Write | C::WriteProtected | C::WriteOutside | C::Run) => Verdict::Deny,
            (Self::Ask, C::ReadOutside | C::Write | C::WriteProtected | C::WriteOutside | C::Run)
            | (Self::Edits, C::ReadOutside | C::WriteProtected | C::WriteOutside | C::Run) => Verdict::Ask,
        }
    }
}

impl fmt::Display for PolicyMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ask => "ask",
            Self::Edits => "edits",
            Self::All => "all",
            Self::Readonly => "readonly",
        })
    }
}
