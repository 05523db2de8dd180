//! All calls that a command would make, including those of the programs and scripts that it runs.

use std::collections::HashSet;

use super::wrapper::{Wrapper, unwrap_wrapper};
use crate::programs;
use crate::script::{self, Assignment, Call, MAX_NESTING, MAX_SCRIPT, ScriptEffect, Word};

/// The most text that is read for one command, in bytes: nested scripts can be read many times.
const MAX_READ: usize = 8 * MAX_SCRIPT;

/// The most distinct scripts that are read for one command.
const MAX_SCRIPTS: usize = 256;

/// The most words of one call that are tried as the start of a wrapped call.
const MAX_POSSIBLE_STARTS: usize = 64;

/// The effects of a command, including those of nested scripts.
#[derive(Debug, Default)]
pub(super) struct CommandEffects {
    pub(super) effects: Vec<CommandEffect>,
    /// The folders that the command may change to; `None` for one that is missing or unknown.
    pub(super) cd_targets: Vec<Option<Word>>,
    /// The scripts that were read. Reading one again would find the same effects.
    scripts: HashSet<String>,
    /// The size of these scripts, in bytes.
    read_bytes: usize,
    /// Whether a limit was reached, so that no further script is read.
    full: bool,
}

/// One effect of a command.
#[derive(Debug)]
pub(super) enum CommandEffect {
    /// A call: its text, the assignments before it, and the program.
    Call(String, Vec<Assignment>, Run),
    /// A `cat` that outputs the text of a here-document: its text and the call.
    Text(String, Run),
    /// A file that is opened.
    Redirect(script::Redirection),
    /// An unknown effect: its text and the reason.
    Unclear(String, &'static str),
}

/// A called program, and the calls that it would make.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) words: Vec<Word>,
    pub(super) wrapper: Option<Wrapper>,
    pub(super) calls: Vec<Run>,
    /// Whether bash makes the call, so that its builtins take precedence over programs.
    pub(super) called_by_bash: bool,
}

impl CommandEffects {
    pub(super) fn new(command: &str) -> Self {
        let mut found = Self::default();
        found.add_script(command, 0);
        found
    }

    fn add_script(&mut self, script: &str, depth: u32) {
        if self.full || !self.scripts.insert(script.to_owned()) {
            return;
        }
        self.read_bytes += script.len();
        self.full = self.read_bytes > MAX_READ || self.scripts.len() > MAX_SCRIPTS;
        if self.full {
            let why = "there are too many nested scripts to check";
            self.effects.push(CommandEffect::Unclear(script::excerpt(script).to_owned(), why));
            return;
        }
        for effect in script::read(script, depth) {
            let effect = match effect {
                ScriptEffect::Call(Call { text, assignments, words }) => {
                    let called_by_bash = true;
                    let run = self.read_call(words, called_by_bash, depth);
                    CommandEffect::Call(text, assignments, run)
                }
                ScriptEffect::Text { call } => {
                    let words = vec![Word::Literal("cat".to_owned())];
                    CommandEffect::Text(
                        call,
                        Run { words, wrapper: None, calls: Vec::new(), called_by_bash: true },
                    )
                }
                ScriptEffect::Redirect(redirection) => CommandEffect::Redirect(redirection),
                ScriptEffect::Unclear { text, why } => CommandEffect::Unclear(text, why),
            };
            self.effects.push(effect);
        }
    }

    /// Reads a call and the calls that its program would make. Adds the effects of the scripts that
    /// these would run.
    fn read_call(&mut self, words: Vec<Word>, called_by_bash: bool, depth: u32) -> Run {
        let name = words.first().and_then(Word::literal).map(programs::name_of);
        if name.is_some_and(programs::changes_folder) {
            self.cd_targets.push(words.get(1).filter(|_| words.len() == 2).cloned());
        }
        let mut wrapper = unwrap_wrapper(&words);
        let mut calls = Vec::new();
        if let Some(wrapper) = &mut wrapper {
            if depth >= MAX_NESTING {
                *wrapper = Wrapper { unclear: true, ..Wrapper::default() };
            }
            for call in wrapper.calls.drain(..) {
                calls.push(self.read_call(call, called_by_bash && !wrapper.external, depth + 1));
            }
            let possible_scripts = (words.len() - wrapper.possible_starts..words.len())
                .take(MAX_POSSIBLE_STARTS)
                .filter_map(|at| unwrap_wrapper(&words[at..]))
                .flat_map(|wrapper| wrapper.scripts);
            for script in wrapper.scripts.drain(..).chain(possible_scripts) {
                self.add_script(&script, depth + 1);
                if self.full {
                    break;
                }
            }
        }
        Run { words, wrapper, calls, called_by_bash }
    }
}
