//! The error of a tool call.

use thiserror::Error;

/// The reason why a call failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The input is invalid.
    #[error("{message}")]
    Input {
        /// A description of the problem, for the model.
        message: String,
    },
    /// The call could not be carried out.
    #[error("{message}")]
    Failed {
        /// A description of the failure, for the model.
        message: String,
    },
    /// The user denied the call.
    #[error("the user denied this{}", reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Denied {
        /// The reason in the user's words.
        reason: Option<String>,
    },
    /// The turn was cut.
    #[error("interrupted")]
    Interrupted,
}

impl ToolError {
    /// The error for a call that could not be carried out.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into() }
    }

    /// The error for an invalid input.
    pub fn input(message: impl Into<String>) -> Self {
        Self::Input { message: message.into() }
    }
}
