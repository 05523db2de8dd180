//! A prompt as the command line gives it.

use std::io::IsTerminal;

use holdpoint_common::Config;
use holdpoint_session::model::rehearsal::{self, Rehearsal};
use holdpoint_session::model::{Model, ModelError};

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

/// The same for a session of this model.
///
/// # Errors
/// There are none, they can't be read, or they can't be played.
pub(crate) fn words_for(model: &str, given: Option<&str>, config: &Config, usage: &str) -> Result<String, CliError> {
    let words = words(given, config, usage)?;
    check_for(model, &words)?;
    Ok(words)
}

/// Checks a prompt for this model: `rehearsal` plays it as a script.
///
/// # Errors
/// The script can't be played.
pub(crate) fn check_for(model: &str, words: &str) -> Result<(), CliError> {
    if model == Rehearsal.name()
        && let Err(ModelError::Setup { message, hint }) = rehearsal::check(words)
    {
        return Err(CliError::usage(message).hint(hint));
    }
    Ok(())
}
