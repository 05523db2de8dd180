//! Secrets in a command: what is masked there can't be what runs, where, or on what. In doubt, it is shown.

use std::cell::LazyCell;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::{Secret, block, known, named};
use crate::script::{self, Deed, Word};

/// Programs that run what they are given or read, and what tells of variables without their names. `env` before variables
/// and a program does not.
const REACHING: [&str; 30] = [
    "ENV", "ENVIRON", "alias", "ash", "bash", "busybox", "compgen", "csh", "dash", "declare", "environ", "envsubst",
    "eval", "fish", "getenv", "ksh", "local", "mksh", "parallel", "printenv", "pwsh", "set", "sh", "source", "ssh",
    "tcsh", "typeset", "watch", "xargs", "zsh",
];

/// Before what bash itself has, and changing nothing of it.
const HANDING_ON: [&str; 2] = ["builtin", "command"];

/// Interpreters, which reach variables and run text in a language of their own. Versions count: `python3.12`. Not whatever
/// can run something: what `npm` or `gh` is given a key for runs nothing that stands in the command.
const INTERPRETERS: [&str; 45] = [
    "R", "Rscript", "awk", "bun", "dc", "deno", "ed", "elixir", "emacs", "erl", "ex", "expect", "gawk", "gdb", "ghci",
    "groovy", "iex", "ipython", "irb", "jshell", "julia", "lua", "luajit", "m4", "mawk", "nawk", "node", "nodejs",
    "nvim", "octave", "perl", "php", "pry", "pypy", "python", "raku", "ruby", "scala", "sed", "tclsh", "ts-node",
    "tsx", "vi", "vim", "wish",
];

/// Programs whose arguments are files.
const OF_FILES: [&str; 16] = [
    "cat", "chmod", "chown", "cp", "dd", "install", "ln", "ls", "mkdir", "mv", "rm", "rmdir", "rsync", "scp", "tee",
    "touch",
];

/// Bytes before a value in which its name is looked for.
const NAME: usize = 96;

/// Variables by a name that is not there to be read, and arguments by their number.
const INDIRECT: [&str; 8] = ["${!", "$@", "$*", "${@", "${*", "export -p", "export -n", "--eval"];

/// What says in the end of a name that its value is a key, where the value looks like one.
const KEYS: [&str; 8] = ["key", "token", "secret", "password", "passwd", "passphrase", "jwt", "credential"];

/// What says in the end of a field's name that its value is where something is, or what runs.
const PLACES: [&str; 16] = [
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

/// A name and what stands between it and its value: `NAME=`, `Name: `, `"name":"`.
static NAMED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?-u)([A-Za-z0-9_-]+)(?:(=)["']?|["']?:(?:[ \t]+["']?|["']))$"#).ok());

/// The secrets of a command.
pub(super) fn find(command: &str) -> Vec<Secret> {
    let mut found = named::find(command, true);
    let named: HashSet<_> = found.iter().map(|secret| secret.range.start).collect();
    found.extend(known::find(command));
    if !found.is_empty() || command.contains(block::BEGIN) {
        let read = Read::new(command);
        let options: HashSet<_> = named::options(command).map(|option| option.start).collect();
        let used = LazyCell::new(|| named::used_names(command, true));
        found.retain(|secret| {
            let is_value =
                named.contains(&secret.range.start) || is_value(command, &secret.range, |name| used.contains(name));
            is_value && !read.may_do(&secret.range, options.contains(&secret.range.start))
        });
        if !read.doubtful {
            found.extend(block::find_whole(command).into_iter().filter(|line| !read.may_do(&line.range, false)));
        }
    }
    found
}

/// Whether what looks like a key is somebody's: the value of a field or variable that is called so, or in an address.
fn is_value(command: &str, range: &Range<usize>, is_used: impl Fn(&str) -> bool) -> bool {
    let (before, after) = (&command[..range.start], &command[range.end..]);
    let start = before.rfind(|c: char| c.is_ascii_whitespace() || "\"'".contains(c)).map_or(0, |at| at + 1);
    if before[start..].contains("://") && after.starts_with('@') {
        return true;
    }
    let near = &before[before.ceil_char_boundary(before.len().saturating_sub(NAME))..];
    let Some(field) = NAMED.as_ref().and_then(|named| named.captures(near)) else { return false };
    let name = field.get(1).map_or("", |name| name.as_str());
    let ends_with = |ends: &[&str]| ends.iter().any(|end| name.to_ascii_lowercase().ends_with(end));
    match field.get(2) {
        Some(_) => ends_with(&KEYS) && !is_used(named::last_word(name)),
        None => !ends_with(&PLACES),
    }
}

/// What is known of a command without running it.
struct Read<'a> {
    command: &'a str,
    /// Its words may become others, or what runs is not all known.
    doubtful: bool,
    /// Its words.
    words: HashSet<String>,
    /// The programs it calls and the files it opens.
    does: Vec<String>,
}

impl<'a> Read<'a> {
    fn new(command: &'a str) -> Self {
        let mut read = Self { command, doubtful: reaches(command), words: HashSet::new(), does: Vec::new() };
        for deed in script::read(command, 0) {
            match deed {
                Deed::Call(call) => {
                    read.doubtful |= call.words.first() == Some(&Word::Dynamic);
                    let literal = call.words.iter().filter_map(Word::literal);
                    let is_of_files = |word: &&str| OF_FILES.contains(&word.rsplit('/').next().unwrap_or_default());
                    read.does.extend(call.words.first().and_then(Word::literal).map(str::to_owned));
                    read.does.extend(literal.clone().skip_while(|word| !is_of_files(word)).skip(1).map(str::to_owned));
                    // However it is quoted.
                    let program = literal.clone().find(|word| !word.starts_with('-') && !HANDING_ON.contains(word));
                    read.doubtful |= program == Some(".");
                    read.doubtful |= literal
                        .clone()
                        .any(|word| words_of(word).any(is_reaching) || word == "env" && !command.contains(word));
                    read.words.extend(literal.map(str::to_owned));
                }
                Deed::Text { .. } => {}
                Deed::Redirect(redirection) => read.does.extend(redirection.target.literal().map(str::to_owned)),
                Deed::Unclear { .. } => read.doubtful = true,
            }
        }
        read
    }

    /// Whether what stands there may be, or be part of, what runs, where, or on what.
    fn may_do(&self, range: &Range<usize>, of_option: bool) -> bool {
        let text = &self.command[range.clone()];
        if self.does.iter().any(|does| does.contains(text)) || !of_option && self.words.contains(text) {
            return true;
        }
        let shown = |text| !named::is_random(text) || self.opens_or_begins(range) || self.is_apart(range);
        match of_option {
            true => self.doubtful && (!named::is_random(text) || self.opens_or_begins(range)),
            // What looks like a key may as well be what runs, only encoded.
            false => self.doubtful && (self.is_assigned(range) || shown(text)),
        }
    }

    /// Whether it is what a variable or a field is set to, and no option: `NAME=value`, `"name": "value"`.
    fn is_assigned(&self, range: &Range<usize>) -> bool {
        let before = self.command[..range.start].trim_end_matches([' ', '\t']);
        let before = before.strip_suffix(['"', '\'']).unwrap_or(before).trim_end_matches([' ', '\t']);
        let word = before.rsplit([' ', '\t', '\n']).next().unwrap_or_default();
        let is_option = word.trim_start_matches(['"', '\'', '(']).starts_with('-');
        !is_option && ["=", "=>", "\":", "':"].iter().any(|sign| before.ends_with(sign))
    }

    /// Whether it seems to be the name of a program, or in that of a file that is opened.
    fn opens_or_begins(&self, range: &Range<usize>) -> bool {
        let before = &self.command[..range.start];
        let word = before.trim_end_matches(|c: char| !c.is_ascii_whitespace() && !"<>|&;()`".contains(c));
        let last = |text: &str| text.trim_end_matches([' ', '\t', '"', '\'']).chars().next_back();
        last(word).is_some_and(|last| "<>".contains(last)) || last(before).is_none_or(|last| "\n;|&({`!".contains(last))
    }

    /// Whether it seems to be a word of its own: what is quoted around it may be a script. A header's is not.
    fn is_apart(&self, range: &Range<usize>) -> bool {
        let mut words = self.command[..range.start].rsplit([' ', '\t', '"', '\'']);
        if words.nth(2).is_some_and(|name| name.eq_ignore_ascii_case("authorization:")) {
            return false;
        }
        let unquoted = |c: char| c == '"' || c == '\'';
        let before = self.command[..range.start].trim_end_matches(unquoted).chars().next_back();
        let after = self.command[range.end..].trim_start_matches(unquoted).chars().next();
        let ends = |c: char| c.is_ascii_whitespace() || "<>|&;()`".contains(c);
        before.is_none_or(ends) && after.is_none_or(ends)
    }
}

/// Whether it can reach variables, arguments or text by other ways than the names that stand there.
fn reaches(command: &str) -> bool {
    let numbered = |expanded: &str| expanded.trim_start_matches('{').starts_with(|c: char| c.is_ascii_digit());
    INDIRECT.iter().any(|form| command.contains(form))
        || command.split('$').skip(1).any(numbered)
        || words_of(command).any(is_reaching)
        || command.match_indices("env").any(|(at, env)| {
            let (before, after) = (&command[..at], &command[at + env.len()..]);
            !before.ends_with(is_part) && !after.starts_with(is_part) && !runs_only(after)
        })
}

/// What may be part of a program's name.
fn is_part(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_.-".contains(character)
}

/// The names that may be of programs.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character| !is_part(character))
}

/// Whether a program of this name reaches variables, or text that is not there to be read.
fn is_reaching(name: &str) -> bool {
    let unversioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || ".-".contains(c));
    REACHING.contains(&name) || INTERPRETERS.contains(&unversioned)
}

/// Whether what follows `env` is variables and a program, each plain, so that nothing is told of others.
fn runs_only(after: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:=,@%+~-".contains(c);
    let mut words = after.split([' ', '\t']).filter(|word| !word.is_empty());
    let program = words.find(|word| !(word.contains('=') && word.chars().all(is_plain)));
    let names = |word: &str| word.starts_with(|c: char| c.is_ascii_alphanumeric() || "./".contains(c));
    program.is_some_and(|word| !word.contains('=') && names(word))
}
