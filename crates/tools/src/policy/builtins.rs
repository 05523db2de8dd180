//! Commands of bash that evaluate what they are given.

use super::variables;
use crate::script::Word;

/// Whether it may run what these words say, or what a variable holds that they name.
pub(super) fn may_run(program: &str, words: &[Word]) -> bool {
    let has_option = |letter| {
        words.iter().filter_map(Word::literal).any(|word| word.starts_with(['-', '+']) && word.contains::<char>(letter))
    };
    let names_evaluated = || {
        let names = words.iter().filter_map(Word::literal).map(|word| word.split(['=', '+']).next().unwrap_or(word));
        names.into_iter().any(variables::is_evaluated)
    };
    // A subscript is arithmetic, which evaluates variables and their values in turn.
    let has_subscript =
        || words.iter().any(|word| word.literal().map_or(*word == Word::Dynamic, |word| word.contains('[')));
    // What stands in parentheses makes an array: it is expanded then, whatever quotes it.
    let has_array = || words.iter().filter_map(Word::literal).any(|word| word.contains("=("));
    let is_of_arrays = || has_option('a') || has_option('A');
    match program {
        "bind" | "compgen" | "complete" | "enable" | "fc" | "let" => !words.is_empty(),
        "hash" => has_option('p') || words.contains(&Word::Dynamic),
        // With `-n` it is another name for a variable, which may be any of those.
        "declare" | "local" | "typeset" => {
            has_option('i') || has_option('n') || has_subscript() || has_array() || names_evaluated()
        }
        "set" | "shopt" => changes_reading(words),
        "read" | "unset" => has_subscript() || names_evaluated(),
        // Of a variable that is no array yet, they do so only if they are told that it is one.
        "export" | "readonly" => has_array() || is_of_arrays() && words.contains(&Word::Dynamic) || names_evaluated(),
        // These take names and nothing else.
        "getopts" | "mapfile" | "readarray" => names_evaluated(),
        _ => evaluates(program, words),
    }
}

/// Whether `set` or `shopt` may change how what follows is read: with `-k` words behind a program set variables, and with
/// a history it is put together from earlier lines.
fn changes_reading(words: &[Word]) -> bool {
    let mut options = words.iter().take_while(|word| !matches!(word.literal(), Some("--" | "-")));
    options.any(|word| match word.literal() {
        Some("keyword" | "history" | "histexpand") | None => true,
        Some(word) => word.starts_with(['-', '+']) && word.contains(['k', 'H']),
    })
}

/// Whether it evaluates some of these words, or sets variables that they name: no rule allows that.
pub(super) fn evaluates(program: &str, words: &[Word]) -> bool {
    let is_option = |word: &Word| word.literal().is_none_or(|word| word.starts_with('-') && word != "--");
    match program {
        "printf" => {
            words.first().is_some_and(is_option) || words.iter().take(2).any(|word| word.literal().is_none_or(counts))
        }
        "test" | "[" => words.iter().any(|word| *word == Word::Dynamic || matches!(word.literal(), Some("-v" | "-R"))),
        "wait" => words.iter().any(is_option),
        _ => false,
    }
}

/// Whether a format of `printf` has a `%n`, which sets a variable to a number: `PATH`, say.
fn counts(format: &str) -> bool {
    let plain = format.replace("%%", "");
    let conversions = plain.split('%').skip(1);
    let kinds =
        conversions.map(|text| text.trim_start_matches(|c: char| "hlLjztq".contains(c) || !c.is_ascii_alphabetic()));
    kinds.into_iter().any(|kind| kind.starts_with('n'))
}
