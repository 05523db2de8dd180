//! Programs that stand before another program: their options, and where the other one begins.

use crate::script::Word;

/// A program that is called as `NAME OPTIONS OPERANDS PROGRAM ARGUMENTS`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prefix {
    /// What it is called.
    pub(super) name: &'static str,
    /// Letters that stand alone.
    flags: &'static str,
    /// Letters that take a value: the rest of the word, or the next one.
    values: &'static str,
    /// Long options that stand alone.
    long_flags: &'static [&'static str],
    /// Long options that take a value: after `=`, or the next word.
    long_values: &'static [&'static str],
    /// How many operands, each beginning with a digit, come before the program.
    numbers: usize,
    /// How many other operands do.
    others: usize,
    /// Running it with these options does nothing that needs to be allowed.
    pub(super) harmless: bool,
}

const NONE: Prefix = Prefix {
    name: "",
    flags: "",
    values: "",
    long_flags: &[],
    long_values: &[],
    numbers: 0,
    others: 0,
    harmless: false,
};

const HARMLESS: Prefix = Prefix { harmless: true, ..NONE };

/// The options that are understood, no more than that. Any other makes the call unclear.
const PREFIXES: [Prefix; 26] = [
    Prefix { name: "builtin", ..HARMLESS },
    Prefix { name: "command", flags: "pvV", ..HARMLESS },
    Prefix { name: "chrt", flags: "bfior", numbers: 1, ..HARMLESS },
    Prefix { name: "env", flags: "i0v", long_flags: &["ignore-environment", "null", "debug"], ..HARMLESS },
    Prefix {
        name: "ionice",
        flags: "t",
        values: "cn",
        long_flags: &["ignore"],
        long_values: &["class", "classdata"],
        ..HARMLESS
    },
    Prefix { name: "nice", flags: "0123456789", values: "n", long_values: &["adjustment"], ..HARMLESS },
    Prefix { name: "nohup", ..HARMLESS },
    Prefix { name: "setsid", flags: "cfw", long_flags: &["ctty", "fork", "wait"], ..HARMLESS },
    Prefix { name: "stdbuf", values: "ioe", long_values: &["input", "output", "error"], ..HARMLESS },
    Prefix { name: "taskset", flags: "c", long_flags: &["cpu-list"], numbers: 1, ..HARMLESS },
    Prefix { name: "time", flags: "pv", long_flags: &["portability", "verbose"], ..HARMLESS },
    Prefix {
        name: "timeout",
        flags: "v",
        values: "ks",
        long_flags: &["foreground", "preserve-status", "verbose"],
        long_values: &["kill-after", "signal"],
        numbers: 1,
        ..HARMLESS
    },
    Prefix {
        name: "xargs",
        flags: "0rtxo",
        values: "nLPsdE",
        long_flags: &["null", "no-run-if-empty", "verbose", "exit", "open-tty"],
        long_values: &["max-args", "max-procs", "max-chars", "delimiter"],
        ..HARMLESS
    },
    Prefix { name: "busybox", ..NONE },
    Prefix { name: "chroot", long_values: &["userspec", "groups"], others: 1, ..NONE },
    Prefix { name: "dbus-run-session", ..NONE },
    Prefix { name: "doas", flags: "nsL", values: "uC", ..NONE },
    Prefix { name: "exec", flags: "cl", values: "a", ..NONE },
    Prefix { name: "fakeroot", ..NONE },
    Prefix { name: "linux32", ..NONE },
    Prefix { name: "linux64", ..NONE },
    Prefix { name: "pkexec", ..NONE },
    Prefix { name: "strace", flags: "fFqvyTtrxzCcdihkwDY", values: "oeaIOPpsSuUX", ..NONE },
    Prefix { name: "sudo", flags: "AbEHknPSs", values: "CghprTtUu", long_values: &["user", "group"], ..NONE },
    Prefix { name: "toybox", ..NONE },
    Prefix { name: "unbuffer", ..NONE },
];

impl Prefix {
    /// What is known of a program of this name.
    pub(super) fn of(name: &str) -> Option<&'static Self> {
        PREFIXES.iter().find(|prefix| prefix.name == name)
    }

    /// How many of `words`, which follow its name, come before the program. `Err`: how many are understood
    /// before one that is not.
    pub(super) fn skip(&self, words: &[Word]) -> Result<usize, usize> {
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let Word::Literal(word) = word else { return Err(at) };
            let length = match word.strip_prefix('-') {
                None | Some("") => break,
                Some("-") => {
                    at += 1;
                    break;
                }
                Some(rest) => match rest.strip_prefix('-') {
                    Some(long) => self.long(long),
                    None => self.short(rest),
                },
            };
            // What is not known may be any number of words, of which the value is the first.
            let end = at + length.ok_or(at)?;
            let is_known = |words: &[Word]| !words.contains(&Word::Dynamic);
            at = words.get(at..end).is_some_and(is_known).then_some(end).ok_or(at)?;
        }
        let is_number = |word: &Word| word.literal().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        let (numbers, others) = (at + self.numbers, at + self.numbers + self.others);
        let numbers_are = words.get(at..numbers).is_some_and(|words| words.iter().all(is_number));
        let others_are = words.get(numbers..others).is_some_and(|words| !words.contains(&Word::Dynamic));
        if numbers_are && others_are { Ok(others) } else { Err(at) }
    }

    /// How many words a long option is.
    fn long(&self, option: &str) -> Option<usize> {
        match option.split_once('=') {
            Some((name, _)) => self.long_values.contains(&name).then_some(1),
            None if self.long_flags.contains(&option) => Some(1),
            None => self.long_values.contains(&option).then_some(2),
        }
    }

    /// How many words a bundle of letters is.
    fn short(&self, letters: &str) -> Option<usize> {
        for (at, letter) in letters.char_indices() {
            if self.values.contains(letter) {
                let is_last = at + letter.len_utf8() == letters.len();
                return Some(if is_last { 2 } else { 1 });
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(1)
    }
}
