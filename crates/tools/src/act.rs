//! Acts: the effects of a tool call, which the policy judges.

use holdpoint_common::PolicyClass;

use crate::place::Place;
use crate::sandbox::Widening;

/// One effect that a call would have on the world.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Act {
    /// Affects only the user or the session itself.
    Internal,
    /// Reads a file, or anything below a folder.
    Read(Place),
    /// Walks through a folder. Paths that the policy does not allow to be read are left out.
    Walk(Place),
    /// Writes a file at this place.
    Write(Place),
    /// Runs this command with bash.
    Command(String),
    /// Extends the sandbox of the command, or runs it outside.
    Widen(Widening),
    /// Calls this tool of an MCP server.
    Mcp {
        /// The name of the server.
        server: String,
        /// The tool's own name.
        tool: String,
    },
    /// Starts the hosted agent of this name, which gets more than the sandbox allows, or has none.
    StartAgent {
        /// The name of the agent.
        name: String,
    },
    /// Has any other effect.
    Other,
}

impl Act {
    /// The class by which a policy's mode judges this act.
    #[must_use]
    pub fn class(&self) -> PolicyClass {
        match self {
            Self::Internal => PolicyClass::Internal,
            Self::Read(place) | Self::Walk(place) if place.is_inside() => PolicyClass::Read,
            Self::Read(_) | Self::Walk(_) => PolicyClass::ReadOutside,
            Self::Write(place) if !place.is_inside() => PolicyClass::WriteOutside,
            Self::Write(place) if place.is_protected() => PolicyClass::WriteProtected,
            Self::Write(_) => PolicyClass::Write,
            Self::Command(_) | Self::Mcp { .. } | Self::Other => PolicyClass::Run,
            Self::Widen(_) => PolicyClass::LeaveSandbox,
            Self::StartAgent { .. } => PolicyClass::StartAgent,
        }
    }
}
