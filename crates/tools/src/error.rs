//! Why a call did not do what it was called for.

use thiserror::Error;

/// Why a call did not do what it was called for.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The input does not fit.
    #[error("{message}")]
    Input {
        /// What is wrong, for the model.
        message: String,
    },
    /// It could not be done.
    #[error("{message}")]
    Failed {
        /// What went wrong, for the model.
        message: String,
    },
    /// The user said no.
    #[error("the user denied this{}", reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Denied {
        /// Why, in the user's words.
        reason: Option<String>,
    },
    /// The turn was cut.
    #[error("interrupted")]
    Interrupted,
}

impl ToolError {
    /// It could not be done, for this reason.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into() }
    }

    /// The input does not fit, for this reason.
    pub fn input(message: impl Into<String>) -> Self {
        Self::Input { message: message.into() }
    }
}
