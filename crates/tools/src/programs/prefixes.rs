//! Programs that run the command in their arguments, such as `env` and `timeout`: their options,
//! and the position of the command.

use crate::script::Word;

/// A program that is called as `NAME OPTIONS OPERANDS PROGRAM ARGUMENTS`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prefix {
    pub(crate) name: &'static str,
    /// Short options without a value.
    flags: &'static str,
    /// Short options with a value: the rest of the word, or the next word.
    values: &'static str,
    /// Long options without a value.
    long_flags: &'static [&'static str],
    /// Long options with a value: after `=`, or the next word.
    long_values: &'static [&'static str],
    /// The number of operands that come before the program and begin with a digit.
    numbers: usize,
    /// The number of other operands before the program.
    others: usize,
    /// Whether the prefix itself, with these options, needs no approval.
    pub(crate) harmless: bool,
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

/// The known options of each prefix. Any other option makes the call unclear.
const PREFIXES: [Prefix; 27] = [
    Prefix { name: "builtin", ..HARMLESS },
    Prefix { name: "command", flags: "pvV", ..HARMLESS },
    Prefix { name: "chrt", flags: "bfior", numbers: 1, ..HARMLESS },
    Prefix {
        name: "env",
        flags: "i0v",
        long_flags: &["ignore-environment", "null", "debug"],
        ..HARMLESS
    },
    Prefix {
        name: "ionice",
        flags: "t",
        values: "cn",
        long_flags: &["ignore"],
        long_values: &["class", "classdata"],
        ..HARMLESS
    },
    Prefix {
        name: "nice",
        flags: "0123456789",
        values: "n",
        long_values: &["adjustment"],
        ..HARMLESS
    },
    Prefix { name: "nohup", ..HARMLESS },
    Prefix { name: "setsid", flags: "cfw", long_flags: &["ctty", "fork", "wait"], ..HARMLESS },
    Prefix {
        name: "stdbuf",
        values: "ioe",
        long_values: &["input", "output", "error"],
        ..HARMLESS
    },
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
    Prefix { name: "logsave", flags: "asv", others: 1, ..NONE },
    Prefix { name: "pkexec", ..NONE },
    Prefix { name: "strace", flags: "fFqvyTtrxzCcdihkwDY", values: "oeaIOPpsSuUX", ..NONE },
    Prefix {
        name: "sudo",
        flags: "AbEHknPSs",
        values: "CghprTtUu",
        long_values: &["user", "group"],
        ..NONE
    },
    Prefix { name: "toybox", ..NONE },
    Prefix { name: "unbuffer", ..NONE },
];

/// The options of git that come before its subcommand.
pub(super) const GIT: Prefix = Prefix {
    name: "git",
    flags: "hpPv",
    values: "Cc",
    long_flags: &[
        "bare",
        "glob-pathspecs",
        "help",
        "icase-pathspecs",
        "literal-pathspecs",
        "no-advice",
        "no-lazy-fetch",
        "no-optional-locks",
        "no-pager",
        "no-replace-objects",
        "noglob-pathspecs",
        "paginate",
        "version",
    ],
    long_values: &["attr-source", "config-env", "git-dir", "namespace", "work-tree"],
    ..NONE
};

impl Prefix {
    pub(crate) fn with_name(name: &str) -> Option<&'static Self> {
        PREFIXES.iter().find(|prefix| prefix.name == name)
    }

    /// The number of `words`, the arguments of the prefix, that come before the program. `Err`
    /// holds the number of words before the first one that is not understood.
    pub(crate) fn words_before_program(&self, words: &[Word]) -> Result<usize, usize> {
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
                    Some(long) => self.long_option_len(long),
                    None => self.short_options_len(rest),
                },
            };
            // An unknown word may expand to several words, of which only the first is the value.
            let end = at + length.ok_or(at)?;
            let is_known = |words: &[Word]| !words.contains(&Word::Dynamic);
            at = words.get(at..end).is_some_and(is_known).then_some(end).ok_or(at)?;
        }
        let is_number = |word: &Word| {
            word.literal().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        };
        let numbers_end = at + self.numbers;
        let others_end = numbers_end + self.others;
        let has_numbers =
            words.get(at..numbers_end).is_some_and(|words| words.iter().all(is_number));
        let has_others =
            words.get(numbers_end..others_end).is_some_and(|words| !words.contains(&Word::Dynamic));
        if has_numbers && has_others { Ok(others_end) } else { Err(at) }
    }

    /// The number of words of a long option with its value; `None` if the option is unknown.
    fn long_option_len(&self, option: &str) -> Option<usize> {
        match option.split_once('=') {
            Some((name, _)) => self.long_values.contains(&name).then_some(1),
            None if self.long_flags.contains(&option) => Some(1),
            None => self.long_values.contains(&option).then_some(2),
        }
    }

    /// The number of words of a bundle of short options; `None` if one is unknown.
    fn short_options_len(&self, letters: &str) -> Option<usize> {
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
