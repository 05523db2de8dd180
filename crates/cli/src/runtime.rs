//! What a command waits on: a runtime of one thread, this one.

use std::pin::Pin;

use tokio::runtime::{Builder, Runtime};

use crate::error::CliError;

/// A runtime for a command.
///
/// # Errors
/// The system gives none.
pub(crate) fn runtime() -> Result<Runtime, CliError> {
    Builder::new_current_thread().enable_all().build().map_err(|error| CliError::failed(format!("no runtime: {error}")))
}

/// Does a command's work on this thread.
///
/// # Errors
/// Those of the work, or the system gives no runtime.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    // In a box the runtime's code is compiled once for each result, not for each command: 2 % of the program.
    let work: Pin<Box<dyn Future<Output = _>>> = Box::pin(work);
    runtime()?.block_on(work)
}
