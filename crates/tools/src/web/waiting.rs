//! How a call waits for its browser: until what it waits for is there, or any of all that may come between.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use super::error::WebError;
use crate::context::ToolContext;

/// What one call waits with. A call has its own thread, and blocks it.
pub(super) struct Waiting<'a> {
    runtime: Runtime,
    context: &'a ToolContext,
}

impl<'a> Waiting<'a> {
    /// For the call of this context: it ends when its turn is cut.
    pub(super) fn new(context: &'a ToolContext) -> Result<Self, WebError> {
        let runtime = Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(|error| WebError::failed(format!("nothing to wait with: {error}")))?;
        Ok(Self { runtime, context })
    }

    /// Waits for `work`, until the turn is cut, the browser has ended, or the limit is over: where the browser is gone,
    /// an answer to a command never comes.
    pub(super) fn wait<T>(
        &self,
        ended: &CancellationToken,
        (what, limit): (&'static str, Duration),
        work: impl Future<Output = Result<T, WebError>>,
    ) -> Result<T, WebError> {
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.context.cancelled() => Err(WebError::Interrupted),
                done = work => match done {
                    // What the end of a browser brings about depends on where it is noticed first.
                    Err(WebError::Browser(_) | WebError::Gone { .. }) if ended.is_cancelled() => Err(WebError::Ended),
                    done => done,
                },
                () = ended.cancelled() => Err(WebError::Ended),
                () = tokio::time::sleep(limit) => Err(WebError::Late { what, limit }),
            }
        })
    }
}
