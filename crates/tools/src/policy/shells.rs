//! Shells with the syntax and options of bash: finds the script after `-c`.

use crate::script::Word;

/// Long options without a value. Bash reads them before short options, and also with a single dash.
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

/// The script among `words`, if every word before it is known.
pub(super) fn script(words: &[Word]) -> Option<&str> {
    let mut has_script = false;
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
        let values = if FLAGS.contains(&long) {
            0
        } else if VALUES.contains(&long) {
            1
        } else if option.starts_with('-') {
            return None;
        } else {
            // These options change how bash reads the script.
            if option.contains(['k', 'H']) {
                return None;
            }
            has_script |= option.contains('c');
            // Each of these takes the next word as its value.
            option.matches(['o', 'O']).count()
        };
        for _ in 0..values {
            let value = words.next().filter(|value| **value != Word::Dynamic)?;
            if matches!(value.literal(), Some("keyword" | "history" | "histexpand")) {
                return None;
            }
        }
    }
    None
}
