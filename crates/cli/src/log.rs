//! The program's own log, for whoever looks for a fault: `HOLDPOINT_LOG`.

use std::io;

use tracing_subscriber::EnvFilter;

use crate::error::CliError;

/// Sets levels, for example `debug` or `holdpoint_session=trace`. Unset or empty: no log at all.
const VARIABLE: &str = "HOLDPOINT_LOG";

/// Writes the log to standard error if it is asked for. If not, nothing is set up, and a log line costs the
/// reading of one number.
pub(crate) fn start() -> Result<(), CliError> {
    let Some(levels) = std::env::var_os(VARIABLE).filter(|levels| !levels.is_empty()) else { return Ok(()) };
    let levels = levels.to_string_lossy();
    let filter = EnvFilter::try_new(&levels).map_err(|error| {
        CliError::usage(format!("{VARIABLE}={levels}: {error}"))
            .hint("for example HOLDPOINT_LOG=holdpoint_session=debug")
    })?;
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(io::stderr).init();
    Ok(())
}
