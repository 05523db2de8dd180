//! A prompt as the command line gives it.

use std::io::IsTerminal;

use holdpoint_common::Config;

use crate::error::CliError;
use crate::terminal;

/// What is to be done: the words given, or with `-` (or none, in a pipe) those on standard input. `usage` is how the
/// command is called.
///
/// # Errors
/// There are none, or they can't be read.
pub(crate) fn words(given: Option<&str>, config: &Config, usage: &str) -> Result<String, CliError> {
    let words = match given {
        Some(words) if words != "-" => words.to_owned(),
        None if std::io::stdin().is_terminal() => String::new(),
        Some(_) | None => terminal::read_stdin(config.limits.max_prompt_bytes)
            .map_err(|error| CliError::usage(format!("the prompt can't be read from standard input: {error}")))?,
    };
    // Before anything is opened for it.
    if words.trim().is_empty() {
        let hint = format!("{usage} \"what to do\", or `-` to read it from standard input");
        return Err(CliError::usage("the prompt is empty").hint(hint));
    }
    Ok(words)
}
