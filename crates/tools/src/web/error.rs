//! What can go wrong with a page, and what of it a model is told.

use std::time::Duration;

use chromiumoxide::error::CdpError;
use thiserror::Error;

use crate::error::ToolError;

/// How a browser says that a page is not there any more.
const NO_SESSION: i64 = -32001;

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
            // Its connection is gone.
            CdpError::ChannelSendError(_) | CdpError::NoResponse | CdpError::Ws(_) => Self::Ended,
            CdpError::Chrome(error) if error.code == NO_SESSION => Self::Ended,
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
