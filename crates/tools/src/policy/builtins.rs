//! Builtins of bash that evaluate their arguments.

use super::shells::CHANGE_READING;
use super::variables;
use crate::script::Word;

/// Whether a call of the builtin `program` may run code in `words`, or in a variable that they
/// name.
pub(super) fn may_run(program: &str, words: &[Word]) -> bool {
    let has_option = |letter| {
        words
            .iter()
            .filter_map(Word::literal)
            .any(|word| word.starts_with(['-', '+']) && word.contains::<char>(letter))
    };
    let names_evaluated_variable = || {
        let names = words
            .iter()
            .filter_map(Word::literal)
            .map(|word| word.split(['=', '+']).next().unwrap_or(word));
        names.into_iter().any(variables::is_evaluated)
    };
    // A subscript is arithmetic, which evaluates variables and their values in turn.
    let has_subscript = || {
        words
            .iter()
            .any(|word| word.literal().map_or(*word == Word::Dynamic, |word| word.contains('[')))
    };
    // An array in parentheses is expanded by the assignment, even if it is quoted.
    let has_array = || words.iter().filter_map(Word::literal).any(|word| word.contains("=("));
    let declares_array = || has_option('a') || has_option('A');
    match program {
        "bind" | "compgen" | "complete" | "enable" | "fc" | "let" => !words.is_empty(),
        // With `-p`, a name runs the file that is given for it.
        "hash" => has_option('p') || words.contains(&Word::Dynamic),
        // With `-i`, the value is arithmetic. With `-n`, the variable is an alias of another one,
        // which may be one that bash evaluates.
        "declare" | "local" | "typeset" => {
            has_option('i')
                || has_option('n')
                || has_subscript()
                || has_array()
                || names_evaluated_variable()
        }
        "set" | "shopt" => changes_reading(program, words),
        "read" | "unset" => has_subscript() || names_evaluated_variable(),
        // If the variable is not an array yet, these read an unknown word as an array only with
        // `-a` or `-A`.
        "export" | "readonly" => {
            has_array()
                || declares_array() && words.contains(&Word::Dynamic)
                || names_evaluated_variable()
        }
        // These take only names.
        "getopts" | "mapfile" | "readarray" => names_evaluated_variable(),
        _ => evaluates(program, words),
    }
}

/// Whether `set` or `shopt` may change how bash reads the rest of the script. `-k` is
/// `keyword`, and `-H` is `histexpand`. After `--` or `-`, `set` has no options, but `shopt` has the
/// names of its options.
fn changes_reading(program: &str, words: &[Word]) -> bool {
    let ends_options = |word: &Word| matches!(word.literal(), Some("--" | "-"));
    let mut options = words.iter().take_while(|word| program == "shopt" || !ends_options(word));
    options.any(|word| match word.literal() {
        Some(word) => {
            CHANGE_READING.contains(&word)
                || word.starts_with(['-', '+']) && word.contains(['k', 'H'])
        }
        None => true,
    })
}

/// Whether `program` evaluates some of `words` or sets variables that they name. No rule allows
/// that.
pub(super) fn evaluates(program: &str, words: &[Word]) -> bool {
    let is_option =
        |word: &Word| word.literal().is_none_or(|word| word.starts_with('-') && word != "--");
    match program {
        "printf" => {
            words.first().is_some_and(is_option)
                || words.iter().take(2).any(|word| word.literal().is_none_or(has_count_conversion))
        }
        "test" | "[" => words
            .iter()
            .any(|word| *word == Word::Dynamic || matches!(word.literal(), Some("-v" | "-R"))),
        "wait" => words.iter().any(is_option),
        _ => false,
    }
}

/// Whether a format of `printf` has a `%n`, which sets a variable, such as `PATH`, to a number.
fn has_count_conversion(format: &str) -> bool {
    let plain = format.replace("%%", "");
    let conversions = plain.split('%').skip(1);
    let kinds = conversions.map(|text| {
        text.trim_start_matches(|c: char| "hlLjztq".contains(c) || !c.is_ascii_alphabetic())
    });
    kinds.into_iter().any(|kind| kind.starts_with('n'))
}
