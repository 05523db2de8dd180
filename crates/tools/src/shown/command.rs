//! What would run: the command, where, and what it sets for itself.

use std::path::Path;

use super::{Care, exact, line};
use crate::script::{self, Call, Deed, Word};
use crate::secrets;

/// Programs that set what their arguments say for what they run.
const SETTING: [&str; 4] = ["doas", "env", "genv", "sudo"];

/// Commands of bash that set what their arguments say.
const DECLARING: [&str; 5] = ["declare", "export", "local", "readonly", "typeset"];

/// Commands of bash that set what only they know.
const READING: [&str; 8] = [".", "getopts", "let", "mapfile", "printf", "read", "readarray", "source"];

/// Programs whose arguments are scripts.
const SHELLS: [&str; 8] = ["ash", "bash", "dash", "eval", "ksh", "mksh", "sh", "zsh"];

/// How deep scripts in scripts are looked at.
const DEEP: u32 = 4;

/// A command as it is shown before it runs: all of it, then a blank line, then the folder, and the variables it sets
/// for itself or for what it runs.
///
/// ```
/// use std::path::Path;
///
/// let shown = holdpoint_tools::shown::command("PATH=. mаke", Path::new("/work"));
/// assert_eq!(shown, "PATH=. m\\u{430}ke\n\nin /work\nsets PATH for it");
/// ```
#[must_use]
pub fn command(command: &str, folder: &Path) -> String {
    let mut shown = exact(command, &secrets::find_in_command(command), Care::Command, false).into_owned();
    shown.push_str("\n\nin ");
    shown.push_str(&line(&folder.to_string_lossy()));
    let mut variables = Variables::default();
    variables.read(command, 0);
    if let Some(told) = variables.told() {
        shown.push('\n');
        shown.push_str(&told);
    }
    shown
}

/// The variables that a command sets.
#[derive(Debug, Default)]
struct Variables {
    names: Vec<String>,
    /// There may be more.
    more: bool,
}

impl Variables {
    fn told(&self) -> Option<String> {
        match (self.names.join(", "), self.more) {
            (names, false) => (!names.is_empty()).then(|| format!("sets {names} for it")),
            (names, true) if names.is_empty() => Some("may set variables for it".to_owned()),
            (names, true) => Some(format!("sets {names} and more for it")),
        }
    }

    fn read(&mut self, script: &str, depth: u32) {
        for deed in script::read(script, depth) {
            match deed {
                Deed::Call(call) => self.call(&call, depth),
                Deed::Text { .. } | Deed::Redirect(_) => {}
                // Where nothing is set by name, nothing is said of what can't be read.
                Deed::Unclear { .. } => self.more |= script.contains('='),
            }
        }
    }

    fn call(&mut self, call: &Call, depth: u32) {
        for assignment in &call.assignments {
            self.add(&assignment.name);
        }
        let is_one_of = |word: &Word, names: &[&str]| {
            let path = word.literal().unwrap_or_default();
            names.contains(&path.rsplit('/').next().unwrap_or_default())
        };
        let bash_own = call.words.iter().position(|word| !is_one_of(word, &["builtin", "command"])).unwrap_or_default();
        let sets =
            |(at, word): (usize, &Word)| is_one_of(word, &SETTING) || at == bash_own && is_one_of(word, &DECLARING);
        if let Some(at) = call.words.iter().enumerate().position(sets) {
            self.arguments(call, &call.words[at + 1..]);
        }
        if let Some((word, arguments)) = call.words[bash_own..].split_first() {
            let prints = is_one_of(word, &["printf"]) && arguments.first().and_then(Word::literal) != Some("-v");
            self.more |= is_one_of(word, &READING) && !prints;
        }
        if let Some(at) = call.words.iter().position(|word| is_one_of(word, &SHELLS)) {
            for word in &call.words[at + 1..] {
                match word {
                    Word::Literal(script) if depth < DEEP && script.contains('=') => self.read(script, depth + 1),
                    Word::Literal(script) => self.more |= script.contains('='),
                    Word::Home(_) | Word::Dynamic => self.more = true,
                }
            }
        }
    }

    /// What is set among the arguments of a program that sets. Those that are not known are found as they are written.
    fn arguments(&mut self, call: &Call, words: &[Word]) {
        let known: Vec<_> = words.iter().filter_map(Word::literal).filter_map(name_of).collect();
        known.iter().for_each(|name| self.add(name));
        let unknown = words.iter().filter(|word| **word == Word::Dynamic).count();
        if unknown > 0 {
            let written: Vec<_> = call.text.split_ascii_whitespace().filter_map(name_of).collect();
            written.iter().for_each(|name| self.add(name));
            self.more |= unknown + known.len() + call.assignments.len() > written.len();
        }
        // `env -S` splits a word into more of its own.
        let splits = |word: &Word| word.literal().is_some_and(|word| word.starts_with("-S") || word.starts_with("--s"));
        self.more |= words.iter().any(splits);
    }

    fn add(&mut self, name: &str) {
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
    }
}

/// The name of `NAME=value` or `NAME+=value`.
fn name_of(word: &str) -> Option<&str> {
    let (name, _) = word.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let is_part = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    let is_name =
        !name.is_empty() && name.bytes().all(is_part) && !name.starts_with(|first: char| first.is_ascii_digit());
    is_name.then_some(name)
}
