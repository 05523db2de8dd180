//! The errors of page visits, with their text for the model.

use std::time::Duration;

use thiserror::Error;

use super::cdp::CdpError;
use crate::error::ToolError;

/// The error of a visit.
#[derive(Debug, Error)]
pub(super) enum WebError {
    /// The turn was cut.
    #[error("interrupted")]
    Interrupted,
    /// The browser, or the connection to its page, has ended.
    #[error("the browser has ended; the next call starts a new one")]
    Ended,
    /// The page was closed or crashed while its browser still runs.
    #[error("the page {how} before it was read")]
    Gone {
        /// "crashed" or "was closed".
        how: &'static str,
    },
    /// A time limit was reached.
    #[error("{task} took more than {} s", limit.as_secs())]
    Late {
        /// The work that took too long.
        task: &'static str,
        /// The time limit of the work.
        limit: Duration,
    },
    /// The browser answered with an error.
    #[error("browser error: {0}")]
    Browser(CdpError),
    /// Any other failure, described for the model.
    #[error("{0}")]
    Failed(String),
}

impl WebError {
    pub(super) fn failed(why: impl Into<String>) -> Self {
        Self::Failed(why.into())
    }
}

impl From<CdpError> for WebError {
    fn from(error: CdpError) -> Self {
        match error {
            CdpError::Ended => Self::Ended,
            error => Self::Browser(error),
        }
    }
}

impl From<WebError> for ToolError {
    fn from(error: WebError) -> Self {
        match error {
            WebError::Interrupted => Self::Interrupted,
            error => Self::failed(error.to_string()),
        }
    }
}
