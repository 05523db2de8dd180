//! What a command waits on: a runtime of one thread, this one.

use tokio::runtime::{Builder, Runtime};

use crate::error::CliError;

/// A runtime for a command.
///
/// # Errors
/// The system gives none.
pub(crate) fn runtime() -> Result<Runtime, CliError> {
    Builder::new_current_thread().enable_all().build().map_err(|error| CliError::failed(format!("no runtime: {error}")))
}
