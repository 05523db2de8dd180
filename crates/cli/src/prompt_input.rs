//! Reads prompts from the command line.

use std::io::{self, IsTerminal, Read};

use holdpoint_common::Config;
use holdpoint_common::api::PromptRequest;
use holdpoint_session::model::rehearsal::{self, Rehearsal};
use holdpoint_session::model::{Model, ModelError};

use crate::error::CliError;

/// Returns the given prompt. If it is `-`, or missing in a pipe, reads it from standard input
/// instead. Text from a pipe counts as not written by the user. `usage` is the command line that
/// the hint shows.
///
/// # Errors
/// Fails if the prompt is empty or can't be read.
pub(crate) fn read_prompt(
    given: Option<&str>,
    config: &Config,
    usage: &str,
) -> Result<PromptRequest, CliError> {
    let is_terminal = io::stdin().is_terminal();
    let prompt = match given {
        Some(prompt) if prompt != "-" => prompt.into(),
        None if is_terminal => "".into(),
        Some(_) | None => {
            let text = read_stdin(config.limits.max_prompt_bytes).map_err(|error| {
                CliError::usage(format!("the prompt can't be read from standard input: {error}"))
            })?;
            PromptRequest { text, typed_bytes: (!is_terminal).then_some(0), idempotency_key: None }
        }
    };
    // Checked before a session is opened for the prompt.
    if prompt.text.trim().is_empty() {
        let hint = format!("{usage} \"what to do\", or `-` to read it from standard input");
        return Err(CliError::usage("the prompt is empty").hint(hint));
    }
    Ok(prompt)
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
) -> Result<PromptRequest, CliError> {
    let prompt = read_prompt(given, config, usage)?;
    check_prompt(model, &prompt.text)?;
    Ok(prompt)
}

/// Checks a prompt for this model. Only `rehearsal` has requirements: it plays the prompt as a
/// script.
///
/// # Errors
/// Fails if the script can't be played.
pub(crate) fn check_prompt(model: &str, prompt: &str) -> Result<(), CliError> {
    if model == Rehearsal.name()
        && let Err(ModelError::Setup { message, hint }) = rehearsal::check(prompt)
    {
        return Err(CliError::usage(message).hint(hint));
    }
    Ok(())
}

/// Reads all of standard input as text. Longer input is cut a little above `max_bytes`, so the
/// caller's length check still rejects it.
pub(crate) fn read_stdin(max_bytes: usize) -> io::Result<String> {
    read_text(io::stdin().lock(), max_bytes)
}

fn read_text(from: impl Read, max_bytes: usize) -> io::Result<String> {
    let mut bytes = Vec::new();
    // Room for one more character, which has up to 4 bytes.
    from.take(max_bytes as u64 + 4).read_to_end(&mut bytes)?;
    let cut = match std::str::from_utf8(&bytes) {
        // Reading stopped in the middle of the last character.
        Err(error) if error.error_len().is_none() && error.valid_up_to() > max_bytes => {
            error.valid_up_to()
        }
        _ => bytes.len(),
    };
    bytes.truncate(cut);
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_long_input_keeps_it_over_the_limit() {
        for text in ["a", "é", "漢", "🦀"].map(|character| character.repeat(100)) {
            for max_bytes in 0..text.len() {
                let read = read_text(text.as_bytes(), max_bytes).unwrap();
                assert!(read.len() > max_bytes && text.starts_with(&read), "{max_bytes} of {text}");
            }
            assert_eq!(read_text(text.as_bytes(), text.len()).unwrap(), text);
        }
        // Text that ends in the middle of a character is invalid.
        assert!(read_text(&"漢".as_bytes()[..2], 100).is_err());
        assert!(read_text(&[0xff; 200][..], 100).is_err());
    }
}
