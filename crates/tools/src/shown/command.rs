//! Display of a command before it runs: the command, its folder, and the variables it sets.

use std::collections::HashSet;
use std::path::Path;

use super::{Strictness, exact, line};
use crate::programs;
use crate::script::{self, Call, ScriptEffect, Word};
use crate::secrets;

/// Programs that set variables from their arguments for the program they run.
const SETTING_PROGRAMS: [&str; 4] = ["doas", "env", "genv", "sudo"];

/// Commands of bash that set variables from their arguments.
const DECLARING_BUILTINS: [&str; 5] = ["declare", "export", "local", "readonly", "typeset"];

/// Commands of bash that may set variables which their arguments do not show.
const OPAQUE_BUILTINS: [&str; 8] =
    [".", "getopts", "let", "mapfile", "printf", "read", "readarray", "source"];

/// How deeply nested scripts are read.
const MAX_SCRIPT_DEPTH: u32 = 4;

/// Formats a command for display before it runs: the whole command, a blank line, the folder, and
/// the variables that the command sets for itself or for the programs it runs.
///
/// ```
/// use std::path::Path;
///
/// let shown = holdpoint_tools::shown::command("PATH=. mаke", Path::new("/work"));
/// assert_eq!(shown, "PATH=. m\\u{430}ke\n\nin /work\nsets PATH");
/// ```
#[must_use]
pub fn command(command: &str, folder: &Path) -> String {
    with_folder(command, Some(folder))
}

/// Formats a command whose folder is unknown for display before it runs, as [`command`] does.
#[must_use]
pub fn command_anywhere(command: &str) -> String {
    with_folder(command, None)
}

fn with_folder(command: &str, folder: Option<&Path>) -> String {
    let mut shown =
        exact(command, &secrets::find_in_command(command), Strictness::Command, false).into_owned();
    if let Some(folder) = folder {
        shown.push_str("\n\nin ");
        shown.push_str(&line(&folder.to_string_lossy()));
    }
    let mut variables = Variables::default();
    variables.add_script(command, 0);
    if let Some(summary) = variables.summary() {
        shown.push('\n');
        shown.push_str(&summary);
    }
    shown
}

/// The variables that a command sets.
#[derive(Debug, Default)]
struct Variables {
    /// The names in the order of their first uses.
    names: Vec<String>,
    /// The same names, for a fast look-up.
    known: HashSet<String>,
    /// The command may also set variables whose names are unknown.
    more: bool,
}

impl Variables {
    fn summary(&self) -> Option<String> {
        match (self.names.join(", "), self.more) {
            (names, false) => (!names.is_empty()).then(|| format!("sets {names}")),
            (names, true) if names.is_empty() => Some("may set variables".to_owned()),
            (names, true) => Some(format!("sets {names} and other variables")),
        }
    }

    fn add_script(&mut self, script: &str, depth: u32) {
        // A script without `=` sets no variables by name.
        let may_assign = script.contains('=');
        for effect in script::read(script, depth) {
            match effect {
                ScriptEffect::Call(call) => self.add_call(&call, depth),
                ScriptEffect::Text { .. } | ScriptEffect::Redirect(_) => {}
                ScriptEffect::Unclear { .. } => self.more |= may_assign,
            }
        }
    }

    fn add_call(&mut self, call: &Call, depth: u32) {
        for assignment in &call.assignments {
            self.add(&assignment.name);
        }
        let is_one_of = |word: &Word, names: &[&str]| {
            let path = word.literal().unwrap_or_default();
            names.contains(&path.rsplit('/').next().unwrap_or_default())
        };
        let command_at = call
            .words
            .iter()
            .position(|word| {
                let is_option = word.literal().is_some_and(|word| word.starts_with('-'));
                !is_option && !word.literal().is_some_and(programs::runs_builtins)
            })
            .unwrap_or_default();
        let sets = |(at, word): (usize, &Word)| {
            is_one_of(word, &SETTING_PROGRAMS)
                || at == command_at && is_one_of(word, &DECLARING_BUILTINS)
        };
        if let Some(at) = call.words.iter().enumerate().position(sets) {
            self.add_arguments(call, &call.words[at + 1..]);
        }
        if let Some((word, arguments)) = call.words[command_at..].split_first() {
            let prints = is_one_of(word, &["printf"])
                && arguments.first().and_then(Word::literal) != Some("-v");
            self.more |= is_one_of(word, &OPAQUE_BUILTINS) && !prints;
        }
        let takes_script = |word: &Word| {
            let name = programs::name_of(word.literal().unwrap_or_default());
            name == "eval" || programs::is_shell(name) || programs::is_other_shell(name)
        };
        if let Some(at) = call.words.iter().position(takes_script) {
            for word in &call.words[at + 1..] {
                match word {
                    Word::Literal(script) if depth < MAX_SCRIPT_DEPTH && script.contains('=') => {
                        self.add_script(script, depth + 1)
                    }
                    Word::Literal(script) => self.more |= script.contains('='),
                    Word::Home(_) | Word::Dynamic => self.more = true,
                }
            }
        }
    }

    /// Adds the variables from the arguments of a program that sets them. If an argument is known
    /// only at run time, the names are taken from the command as written.
    fn add_arguments(&mut self, call: &Call, words: &[Word]) {
        let known: Vec<_> =
            words.iter().filter_map(Word::literal).filter_map(assigned_name).collect();
        known.iter().for_each(|name| self.add(name));
        let unknown = words.iter().filter(|word| **word == Word::Dynamic).count();
        if unknown > 0 {
            let written: Vec<_> =
                call.text.split_ascii_whitespace().filter_map(assigned_name).collect();
            written.iter().for_each(|name| self.add(name));
            // An unknown argument that is not written as `NAME=…` may set any variable.
            self.more |= unknown + known.len() + call.assignments.len() > written.len();
        }
        // `env -S` splits a word into several.
        let splits = |word: &Word| {
            word.literal().is_some_and(|word| word.starts_with("-S") || word.starts_with("--s"))
        };
        self.more |= words.iter().any(splits);
    }

    fn add(&mut self, name: &str) {
        if self.known.insert(name.to_owned()) {
            self.names.push(name.to_owned());
        }
    }
}

/// The name of `NAME=value` or `NAME+=value`.
fn assigned_name(word: &str) -> Option<&str> {
    let (name, _) = word.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let is_part = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    let is_name = !name.is_empty()
        && name.bytes().all(is_part)
        && !name.starts_with(|first: char| first.is_ascii_digit());
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_listed_once_in_the_order_of_the_command() {
        let mut variables = Variables::default();
        variables.add_script("B=1 A=2 B=3 x", 0);
        assert_eq!(variables.summary().as_deref(), Some("sets B, A"));
    }

    #[test]
    fn a_builtin_that_another_runs_sets_variables() {
        for (command, summary) in [
            ("jobs -x export PATH=.", "sets PATH"),
            ("command -p export PATH=.", "sets PATH"),
            ("jobs -x read PATH", "may set variables"),
            ("jobs -x . f", "may set variables"),
            ("builtin printf -v PATH .", "may set variables"),
        ] {
            let mut variables = Variables::default();
            variables.add_script(command, 0);
            assert_eq!(variables.summary().as_deref(), Some(summary), "{command}");
        }
    }

    #[test]
    fn many_names_are_listed_in_linear_time() {
        let names: Vec<_> = (0..500_000).map(|number| format!("A{number}")).collect();
        let mut variables = Variables::default();
        names.iter().chain(&names).for_each(|name| variables.add(name));
        assert_eq!(variables.names, names);
    }
}
