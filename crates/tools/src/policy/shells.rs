//! Shells with the syntax and options of bash: finds the script after `-c`.

use crate::script::Word;

/// Long options without a value. Bash accepts them with one dash or two, but only before the first
/// short option.
const FLAGS: [&str; 11] = [
    "debug",
    "debugger",
    "login",
    "noediting",
    "noprofile",
    "norc",
    "posix",
    "pretty-print",
    "protected",
    "restricted",
    "verbose",
];

/// Long options that take the next word as value.
const VALUES: [&str; 2] = ["init-file", "rcfile"];

/// Options of bash that change how it reads a script: whether a line is built from earlier lines,
/// `#` begins a comment, and words after a program set variables. `set -o` and `shopt` spell one of
/// them differently.
pub(super) const CHANGE_READING: [&str; 5] =
    ["histexpand", "history", "interactive-comments", "interactive_comments", "keyword"];

/// The script among `words`, if every word before it is known.
pub(super) fn script(words: &[Word]) -> Option<&str> {
    let mut has_script = false;
    let mut has_startup_file = false;
    let mut is_long_allowed = true;
    let mut words = words.iter();
    // An unknown word may expand to any number of words.
    while let Some(word) = words.next()?.literal() {
        let option = match word.strip_prefix(['-', '+']) {
            None => return has_script.then_some(word),
            Some(_) if matches!(word, "-" | "--") => {
                return words.next()?.literal().filter(|_| has_script);
            }
            Some(option) => option,
        };
        let long = option.strip_prefix('-').unwrap_or(option);
        is_long_allowed &= word.starts_with('-');
        let values = if is_long_allowed && FLAGS.contains(&long) {
            0
        } else if is_long_allowed && VALUES.contains(&long) {
            has_startup_file = true;
            1
        } else if option.starts_with('-') {
            return None;
        } else {
            is_long_allowed = false;
            // `-k` and `-H` change how bash reads the script. With `-i`, bash runs the startup file
            // first.
            if option.contains(['k', 'H']) || has_startup_file && option.contains('i') {
                return None;
            }
            has_script |= option.contains('c');
            // Each of these takes the next word as its value.
            option.matches(['o', 'O']).count()
        };
        for _ in 0..values {
            let value = words.next().filter(|value| **value != Word::Dynamic)?;
            if value.literal().is_some_and(|value| CHANGE_READING.contains(&value)) {
                return None;
            }
        }
    }
    None
}
