//! Waiting of a call for its browser, until the work is done, the turn is cut, the browser ends, or
//! the time limit is reached.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use super::error::WebError;
use crate::context::ToolContext;

/// The runtime on which a call waits. A call has its own thread, so it can block.
pub(super) struct Waiting<'a> {
    runtime: Runtime,
    context: &'a ToolContext,
}

impl<'a> Waiting<'a> {
    pub(super) fn new(context: &'a ToolContext) -> Result<Self, WebError> {
        let runtime = Builder::new_current_thread().enable_time().build();
        let runtime = runtime
            .map_err(|error| WebError::failed(format!("can't create a runtime: {error}")))?;
        Ok(Self { runtime, context })
    }

    /// Waits for `work` until the turn is cut, the browser has ended, or the limit is reached. A
    /// browser that is gone never answers a command.
    pub(super) fn wait<T>(
        &self,
        ended: &CancellationToken,
        (task, limit): (&'static str, Duration),
        work: impl Future<Output = Result<T, WebError>>,
    ) -> Result<T, WebError> {
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.context.cancelled() => Err(WebError::Interrupted),
                done = work => match done {
                    // Several errors can result from the end of a browser, depending on which is
                    // noticed first.
                    Err(WebError::Browser(_) | WebError::Gone { .. }) if ended.is_cancelled() => Err(WebError::Ended),
                    done => done,
                },
                () = ended.cancelled() => Err(WebError::Ended),
                () = tokio::time::sleep(limit) => Err(WebError::Late { task, limit }),
            }
        })
    }
}
