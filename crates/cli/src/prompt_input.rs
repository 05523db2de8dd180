//! Reads prompts from the command line.

use std::io::IsTerminal;

use holdpoint_common::Config;
use holdpoint_session::model::rehearsal::{self, Rehearsal};
use holdpoint_session::model::{Model, ModelError};

use crate::error::CliError;
use crate::terminal;

/// Returns the given prompt. If it is `-`, or missing in a pipe, reads it from standard input
/// instead. `usage` is the command line that the hint shows.
///
/// # Errors
/// Fails if the prompt is empty or can't be read.
pub(crate) fn read_prompt(given: Option<&str>, config: &Config, usage: &str) -> Result<String, CliError> {
    let words = match given {
        Some(words) if words != "-" => words.to_owned(),
        None if std::io::stdin().is_terminal() => String::new(),
        Some(_) | None => terminal::read_stdin(config.limits.max_prompt_bytes)
            .map_err(|error| CliError::usage(format!("the prompt can't be read from standard input: {error}")))?,
    };
    // Checked before a session is opened for the prompt.
    if words.trim().is_empty() {
        let hint = format!("{usage} \"what to do\", or `-` to read it from standard input");
        return Err(CliError::usage("the prompt is empty").hint(hint));
    }
    Ok(words)
}

/// Like [`read_prompt`], for a session of this model.
///
/// # Errors
/// Fails if the prompt is empty, can't be read, or is a script that can't be played.
pub(crate) fn read_prompt_for(
    model: &str,
    given: Option<&str>,
    config: &Config,
    usage: &str,
) -> Result<String, CliError> {
    let words = read_prompt(given, config, usage)?;
    check_prompt(model, &words)?;
    Ok(words)
}

/// Checks a prompt for this model. Only `rehearsal` has requirements: it plays the prompt as a
/// script.
///
/// # Errors
/// Fails if the script can't be played.
pub(crate) fn check_prompt(model: &str, words: &str) -> Result<(), CliError> {
    if model == Rehearsal.name()
        && let Err(ModelError::Setup { message, hint }) = rehearsal::check(words)
    {
        return Err(CliError::usage(message).hint(hint));
    }
    Ok(())
}
