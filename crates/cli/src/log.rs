//! The program's own log, for whoever looks for a fault: `HOLDPOINT_LOG`.

mod debug;

use std::io::{self, Write};

use tracing_subscriber::filter::FilterExt;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::error::CliError;

/// Sets levels, for example `debug` or `holdpoint_session=trace`. Unset or empty: no log at all.
pub(crate) const VARIABLE: &str = "HOLDPOINT_LOG";

/// What is asked for, if anything is.
pub(crate) fn levels() -> Result<Option<EnvFilter>, CliError> {
    let Some(levels) = std::env::var_os(VARIABLE).filter(|levels| !levels.is_empty()) else { return Ok(None) };
    let levels = levels.to_string_lossy();
    let filter = EnvFilter::try_new(&levels).map_err(|error| {
        CliError::usage(format!("{VARIABLE}={levels}: {error}"))
            .hint("for example HOLDPOINT_LOG=holdpoint_session=debug")
    })?;
    Ok(Some(filter))
}

/// Writes the log to standard error if it is asked for. If not, nothing is set up, and a log line costs the
/// reading of one number.
pub(crate) fn start() -> Result<(), CliError> {
    let Some(levels) = levels()? else { return Ok(()) };
    write(levels, || Quiet);
    Ok(())
}

/// Writes what these levels let through, and all that is debugged, from now on.
pub(crate) fn write<W>(levels: EnvFilter, to: W)
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).log_internal_errors(false).with_writer(to);
    let lines = lines.with_filter(levels.or(debug::Debugged));
    tracing_subscriber::registry().with(debug::Marks.with_filter(debug::sessions())).with(lines).init();
}

/// Standard error, for as long as somebody reads it: a log nobody reads any more must not disturb the work.
struct Quiet;

impl Write for Quiet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Nobody is left to be told.
        let _ = io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
