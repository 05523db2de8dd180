//! The program's own log for debugging, enabled by `HOLDPOINT_LOG`.

use std::io::{self, IsTerminal, Write};

use holdpoint_session::levels::{Levels, VARIABLE};
use holdpoint_tools::secrets::mask;
use holdpoint_tools::shown::prose_line;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::error::CliError;

/// The levels in `HOLDPOINT_LOG`; `None`, and so no log, if it is unset or empty.
pub(crate) fn levels_from_env() -> Result<Option<Levels>, CliError> {
    let Some(levels) = std::env::var_os(VARIABLE).filter(|levels| !levels.is_empty()) else {
        return Ok(None);
    };
    let levels = levels.to_string_lossy();
    let parsed = Levels::parse(&levels).map_err(|error| {
        CliError::usage(format!("{VARIABLE}={levels}: {error}"))
            .hint("for example HOLDPOINT_LOG=holdpoint_session=debug")
    })?;
    Ok(Some(parsed))
}

/// The levels in the configuration, which apply when `HOLDPOINT_LOG` is unset.
pub(crate) fn levels_from_config(levels: Option<&str>) -> Result<Levels, CliError> {
    let Some(levels) = levels else { return Ok(Levels::default()) };
    Levels::parse(levels).map_err(|error| {
        CliError::usage(format!("`log = \"{levels}\"` in the configuration: {error}"))
            .hint("for example log = \"holdpoint_session=debug\"")
    })
}

/// Starts the log on standard error if `HOLDPOINT_LOG` is set. Otherwise no subscriber is
/// installed, and a log statement costs the read of one integer.
pub(crate) fn start() -> Result<(), CliError> {
    let Some(levels) = levels_from_env()? else { return Ok(()) };
    init(levels, || LossyStderr);
    Ok(())
}

/// Fails if the log would be written over a screen.
pub(crate) fn check_not_on_screen() -> Result<(), CliError> {
    if levels_from_env()?.is_some() && io::stderr().is_terminal() {
        return Err(CliError::usage(format!(
            "{VARIABLE} is set, and its log would be written over the screen"
        ))
        .hint("send it to a file: holdpoint 2>holdpoint.log"));
    }
    Ok(())
}

/// Installs the log, which writes to `writer` the lines that these levels let through and every
/// line about a debugged session.
pub(crate) fn init<W>(levels: Levels, writer: W)
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .log_internal_errors(false)
        .with_writer(writer);
    tracing_subscriber::registry().with(levels.around(lines)).init();
}

/// Formats a line of a log: secrets are masked, and characters that a terminal acts on are escaped.
pub(crate) fn line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    format!("{}\n", prose_line(&mask(text.trim_end_matches('\n'))))
}

/// Standard error, with failures ignored: a log without a reader must not disturb the work.
struct LossyStderr;

impl Write for LossyStderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = io::stderr().write_all(line(bytes).as_bytes());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_c5_a_log_line_has_masked_secrets_and_escaped_control_characters() {
        let text = line(b"started with API_TOKEN=aB3dE6gH9jK2mN5pQ8 \x1b[2J\n");
        assert_eq!(text, "started with API_TOKEN=aB3d\u{2026}(14 characters masked) \\u{1b}[2J\n");
    }
}
