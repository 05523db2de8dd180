//! The single-threaded runtime that a command runs on.

use std::pin::Pin;

use tokio::runtime::{Builder, Runtime};

use crate::error::CliError;

/// Builds the runtime of a command.
///
/// # Errors
/// Fails if the system can't provide a runtime.
pub(crate) fn runtime() -> Result<Runtime, CliError> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::failed(format!("the runtime can't be started: {error}")))
}

/// Runs a command's work on this thread.
///
/// # Errors
/// Returns the error of `work`, or fails if the runtime can't be built.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    // Boxed, so that the runtime's code is compiled once per result type and not once per command.
    // This saves 2 % of the program.
    let work: Pin<Box<dyn Future<Output = _>>> = Box::pin(work);
    runtime()?.block_on(work)
}
