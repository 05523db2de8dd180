//! Secrets in a command. A value that may be a program, a folder or an operand is shown, not
//! masked.

use std::cell::LazyCell;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::{Secret, block, known, named};
use crate::programs;
use crate::script::{self, ScriptEffect, Word};

/// Words that list variables without naming them, or run words of the command; shells, languages
/// and other programs are in [`programs`]. `env` is missing because [`find_program`] checks it: it
/// is harmless before variables and a program.
const INDIRECT_READERS: [&str; 17] = [
    "ENV", "ENVIRON", "alias", "busybox", "compgen", "declare", "environ", "envsubst", "eval",
    "getenv", "local", "printenv", "set", "source", "toybox", "typeset", "xargs",
];

/// Programs whose arguments are files.
const FILE_PROGRAMS: [&str; 16] = [
    "cat", "chmod", "chown", "cp", "dd", "install", "ln", "ls", "mkdir", "mv", "rm", "rmdir",
    "rsync", "scp", "tee", "touch",
];

/// How many bytes before a value are searched for its name.
const NAME_WINDOW: usize = 96;

/// Forms that read variables without naming them, or arguments by number.
const INDIRECT_FORMS: [&str; 8] =
    ["${!", "$@", "$*", "${@", "${*", "export -p", "export -n", "--eval"];

/// Endings of the name of a key, if the value looks like one.
const KEY_ENDINGS: [&str; 8] =
    ["key", "token", "secret", "password", "passwd", "passphrase", "jwt", "credential"];

/// Endings of the name of a field that holds a location or a command.
const LOCATION_ENDINGS: [&str; 16] = [
    "cmd",
    "command",
    "dest",
    "destination",
    "dir",
    "entrypoint",
    "exec",
    "file",
    "host",
    "image",
    "module",
    "output",
    "path",
    "run",
    "target",
    "url",
];

/// A name and the text between it and its value: `NAME=`, `Name: `, `"name":"`.
static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?-u)([A-Za-z0-9_-]+)(?:(=)["']?|["']?:(?:[ \t]+["']?|["']))$"#).ok()
});

pub(super) fn find(command: &str) -> Vec<Secret> {
    let mut found = named::find(command, true);
    let named_starts: HashSet<_> = found.iter().map(|secret| secret.range.start).collect();
    found.extend(known::find(command));
    if !found.is_empty() || command.contains(block::BEGIN) {
        let facts = CommandFacts::new(command);
        let option_starts: HashSet<_> =
            named::options(command).map(|option| option.start).collect();
        let used_names = LazyCell::new(|| named::used_names(command, true));
        found.retain(|secret| {
            let is_value = named_starts.contains(&secret.range.start)
                || is_value(command, &secret.range, |name| used_names.contains(name));
            is_value
                && !facts
                    .may_have_effect(&secret.range, option_starts.contains(&secret.range.start))
        });
        if !facts.uncertain {
            found.extend(
                block::find_whole(command)
                    .into_iter()
                    .filter(|line| !facts.may_have_effect(&line.range, false)),
            );
        }
    }
    found
}

/// Whether a value with the shape of a key is a key: it is in an address, or the name of its field
/// or variable fits.
fn is_value(command: &str, range: &Range<usize>, is_used: impl Fn(&str) -> bool) -> bool {
    // A value of a known shape is followed by `@` only in an address.
    if command[range.end..].starts_with('@') {
        return true;
    }
    let near = end_of(&command[..range.start]);
    let Some(field) = NAMED.as_ref().and_then(|named| named.captures(near)) else { return false };
    let name = field.get(1).map_or("", |name| name.as_str());
    let ends_with = |ends: &[&str]| ends.iter().any(|end| name.to_ascii_lowercase().ends_with(end));
    match field.get(2) {
        Some(_) => ends_with(&KEY_ENDINGS) && !is_used(named::last_word(name)),
        None => !ends_with(&LOCATION_ENDINGS),
    }
}

/// The last [`NAME_WINDOW`] bytes of the text before a value.
fn end_of(before: &str) -> &str {
    &before[before.ceil_char_boundary(before.len().saturating_sub(NAME_WINDOW))..]
}

/// The facts that are known about a command without running it.
struct CommandFacts<'a> {
    command: &'a str,
    /// Whether words may expand to others, or some programs are unknown.
    uncertain: bool,
    /// The positions of blanks and line feeds, in order.
    blanks: Vec<usize>,
    /// The positions of the characters that end a word, in order.
    word_ends: Vec<usize>,
    /// The literal words.
    words: HashSet<String>,
    /// The programs that the command calls and the files that it opens.
    programs_and_files: Vec<String>,
}

impl<'a> CommandFacts<'a> {
    fn new(command: &'a str) -> Self {
        let mut facts = Self {
            command,
            uncertain: reads_indirectly(command),
            blanks: positions(command, |c| matches!(c, ' ' | '\t' | '\n')),
            word_ends: positions(command, ends_word),
            words: HashSet::new(),
            programs_and_files: Vec::new(),
        };
        for effect in script::read(command, 0) {
            match effect {
                ScriptEffect::Call(call) => {
                    facts.uncertain |= call.words.first() == Some(&Word::Dynamic);
                    let literal = call.words.iter().filter_map(Word::literal);
                    let is_file_program = |word: &&str| {
                        FILE_PROGRAMS.contains(&word.rsplit('/').next().unwrap_or_default())
                    };
                    facts
                        .programs_and_files
                        .extend(call.words.first().and_then(Word::literal).map(str::to_owned));
                    facts.programs_and_files.extend(
                        literal
                            .clone()
                            .skip_while(|word| !is_file_program(word))
                            .skip(1)
                            .map(str::to_owned),
                    );
                    // These words are unquoted, so that quotes can't hide the program.
                    let program = literal
                        .clone()
                        .find(|word| !word.starts_with('-') && !programs::runs_builtins(word));
                    facts.uncertain |= program == Some(".");
                    facts.uncertain |= literal.clone().any(|word| {
                        words_of(word).any(is_indirect_reader)
                            || word == "env" && !command.contains(word)
                    });
                    facts.words.extend(literal.map(str::to_owned));
                }
                ScriptEffect::Text { .. } => {}
                ScriptEffect::Redirect(redirection) => {
                    facts.programs_and_files.extend(redirection.target.literal().map(str::to_owned))
                }
                ScriptEffect::Unclear { .. } => facts.uncertain = true,
            }
        }
        facts
    }

    /// Whether the text at `range` may be, or be part of, a program, a folder or an operand.
    /// `is_option_value` is true for the value of an option whose name marks it as secret.
    fn may_have_effect(&self, range: &Range<usize>, is_option_value: bool) -> bool {
        let text = &self.command[range.clone()];
        if self.programs_and_files.iter().any(|name| name.contains(text))
            || !is_option_value && self.words.contains(text)
        {
            return true;
        }
        let may_be_name = || !named::is_random(text) || self.is_program_or_file(range);
        self.uncertain
            && match is_option_value {
                true => may_be_name(),
                // A value that looks like a key may also be an encoded command.
                false => self.is_assigned(range) || may_be_name() || self.is_separate_word(range),
            }
    }

    /// Whether the text is the value of a variable or a field, not of an option: `NAME=value`,
    /// `"name": "value"`.
    fn is_assigned(&self, range: &Range<usize>) -> bool {
        let before = self.command[..range.start].trim_end_matches([' ', '\t']);
        let before =
            before.strip_suffix(['"', '\'']).unwrap_or(before).trim_end_matches([' ', '\t']);
        let word = &before[after_last(&self.blanks, before.len())..];
        let is_option = word.trim_start_matches(['"', '\'', '(']).starts_with('-');
        !is_option && ["=", "=>", "\":", "':"].iter().any(|sign| before.ends_with(sign))
    }

    /// Whether the text seems to be the name of a program, or a part of the name of an opened file.
    fn is_program_or_file(&self, range: &Range<usize>) -> bool {
        let before = &self.command[..range.start];
        let before_word = &before[..after_last(&self.word_ends, before.len())];
        let last = |text: &str| text.trim_end_matches([' ', '\t', '"', '\'']).chars().next_back();
        last(before_word).is_some_and(|last| "<>".contains(last))
            || last(before).is_none_or(|last| "\n;|&({`!".contains(last))
    }

    /// Whether the text seems to be a separate word, so that quotes around it may hold a script.
    /// The value of an `Authorization` header does not count.
    fn is_separate_word(&self, range: &Range<usize>) -> bool {
        // Backwards from the value: the empty text after the last blank, the scheme, the header.
        let mut words = end_of(&self.command[..range.start]).rsplit([' ', '\t', '"', '\'']);
        if words.nth(2).is_some_and(|name| name.eq_ignore_ascii_case("authorization:")) {
            return false;
        }
        let is_quote = |c: char| c == '"' || c == '\'';
        let before = self.command[..range.start].trim_end_matches(is_quote).chars().next_back();
        let after = self.command[range.end..].trim_start_matches(is_quote).chars().next();
        before.is_none_or(ends_word) && after.is_none_or(ends_word)
    }
}

/// Whether a character ends a word, unless it is quoted.
fn ends_word(character: char) -> bool {
    character.is_ascii_whitespace() || "<>|&;()`".contains(character)
}

/// The positions of the characters for which `is_one` is true, which must all be ASCII.
fn positions(text: &str, is_one: fn(char) -> bool) -> Vec<usize> {
    text.match_indices(is_one).map(|(at, _)| at).collect()
}

/// The end of the last of these characters before `end`; 0 if there is none.
fn after_last(positions: &[usize], end: usize) -> usize {
    positions[..positions.partition_point(|&at| at < end)].last().map_or(0, |at| at + 1)
}

/// Whether the command can reach variables, arguments or text without their literal names.
fn reads_indirectly(command: &str) -> bool {
    let numbered =
        |expanded: &str| expanded.trim_start_matches('{').starts_with(|c: char| c.is_ascii_digit());
    // A later `env` before the end of this position runs the same program.
    let mut checked = 0;
    INDIRECT_FORMS.iter().any(|form| command.contains(form))
        || command.split('$').skip(1).any(numbered)
        || words_of(command).any(is_indirect_reader)
        || command.match_indices("env").any(|(at, env)| {
            let (before, after) = (&command[..at], &command[at + env.len()..]);
            if at < checked || before.ends_with(is_name_char) || after.starts_with(is_name_char) {
                return false;
            }
            let program = find_program(after);
            checked = command.len() - after.len() + program.unwrap_or_default();
            program.is_none()
        })
}

/// Whether a character may be part of a program's name.
fn is_name_char(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_.-".contains(character)
}

/// The words that may be names of programs.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character| !is_name_char(character))
}

/// Whether a program of this name can reach variables, or text that is not in the command.
fn is_indirect_reader(name: &str) -> bool {
    INDIRECT_READERS.contains(&name)
        || programs::is_shell(name)
        || programs::is_other_shell(name)
        || programs::runs_scripts(name)
        || programs::is_language(name)
}

/// Finds the program after `env`, if only variables are before it, all of them plain, so that `env`
/// lists no other variables.
fn find_program(after: &str) -> Option<usize> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:=,@%+~-".contains(c);
    let mut at = 0;
    let program = after.split([' ', '\t']).find(|word| {
        let is_variable = word.contains('=') && word.chars().all(is_plain);
        let is_found = !(word.is_empty() || is_variable);
        at += if is_found { 0 } else { word.len() + 1 };
        is_found
    })?;
    let is_program = program.starts_with(|c: char| c.is_ascii_alphanumeric() || "./".contains(c));
    (is_program && !program.contains('=')).then_some(at)
}
