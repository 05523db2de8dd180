//! What can go wrong with a page, and what of it a model is told.

use std::time::Duration;

use thiserror::Error;

use super::cdp::CdpError;
use crate::error::ToolError;

/// Why a page could not be had.
#[derive(Debug, Error)]
pub(super) enum WebError {
    /// The turn was cut.
    #[error("interrupted")]
    Interrupted,
    /// The browser, or the connection to its page, has ended.
    #[error("the browser has ended; the next call starts another one")]
    Ended,
    /// The page is not there any more, though its browser is.
    #[error("the page {how} before it was read")]
    Gone {
        /// What became of it.
        how: &'static str,
    },
    /// It took too long.
    #[error("{what} took more than {} s", limit.as_secs())]
    Late {
        /// What did.
        what: &'static str,
        /// What it may take.
        limit: Duration,
    },
    /// The browser refuses.
    #[error("the browser says: {0}")]
    Browser(CdpError),
    /// Something else.
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
