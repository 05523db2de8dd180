//! A command, opened: every call it would make, those that programs make in their turn included.

use std::collections::HashSet;

use super::programs;
use super::wrapper::{Wrapper, look_through};
use crate::script::{self, Assignment, Call, Deed, MAX_NESTING, MAX_SCRIPT, Word};

/// How much text is read for one command, in bytes: scripts within scripts can be read many times.
const MAX_READ: usize = 8 * MAX_SCRIPT;

/// How many different scripts are read for one command.
const MAX_SCRIPTS: usize = 256;

/// How many words that may begin a script are looked at.
const MAX_GUESSES: usize = 64;

/// What a command would do, scripts within scripts included.
#[derive(Debug, Default)]
pub(super) struct Opened {
    pub(super) deeds: Vec<OpenedDeed>,
    /// The folders that it may go to; none for one that is not given or not known.
    pub(super) goes_to: Vec<Option<Word>>,
    /// What was read: to read it again would find the same.
    scripts: HashSet<String>,
    /// How much that was, in bytes.
    read: usize,
    /// No more is read.
    full: bool,
}

/// One thing it would do.
#[derive(Debug)]
pub(super) enum OpenedDeed {
    /// A call: as it is written, what is assigned before it, and what it would run.
    Call(String, Vec<Assignment>, Run),
    /// `cat` for the text of a here-document: as it is written, and the call.
    Text(String, Run),
    /// A file that is opened.
    Redirect(script::Redirection),
    /// Something that can't be known: the text, and what it is.
    Unclear(String, &'static str),
}

/// A program that is called, and what it would call in its turn.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) words: Vec<Word>,
    pub(super) wrapper: Option<Wrapper>,
    pub(super) calls: Vec<Run>,
    /// By bash: commands that are its own come first.
    pub(super) by_bash: bool,
}

impl Opened {
    pub(super) fn new(command: &str) -> Self {
        let mut opened = Self::default();
        opened.open(command, 0);
        opened
    }

    fn open(&mut self, script: &str, depth: u32) {
        if self.full || !self.scripts.insert(script.to_owned()) {
            return;
        }
        self.read += script.len();
        self.full = self.read > MAX_READ || self.scripts.len() > MAX_SCRIPTS;
        if self.full {
            let why = "there are more scripts in scripts than are read";
            self.deeds.push(OpenedDeed::Unclear(script::excerpt(script).to_owned(), why));
            return;
        }
        for deed in script::read(script, depth) {
            let deed = match deed {
                Deed::Call(Call { text, assignments, words }) => {
                    OpenedDeed::Call(text, assignments, self.run(words, true, depth))
                }
                Deed::Text { call } => {
                    let words = vec![Word::Literal("cat".to_owned())];
                    OpenedDeed::Text(call, Run { words, wrapper: None, calls: Vec::new(), by_bash: true })
                }
                Deed::Redirect(redirection) => OpenedDeed::Redirect(redirection),
                Deed::Unclear { text, why } => OpenedDeed::Unclear(text, why),
            };
            self.deeds.push(deed);
        }
    }

    fn run(&mut self, words: Vec<Word>, by_bash: bool, depth: u32) -> Run {
        let name = words.first().and_then(Word::literal).map(programs::name_of);
        if name.is_some_and(programs::is_moving) {
            self.goes_to.push(words.get(1).filter(|_| words.len() == 2).cloned());
        }
        let mut wrapper = look_through(&words);
        let mut calls = Vec::new();
        if let Some(wrapper) = &mut wrapper {
            if depth >= MAX_NESTING {
                *wrapper = Wrapper { unclear: true, ..Wrapper::default() };
            }
            for call in wrapper.calls.drain(..) {
                calls.push(self.run(call, by_bash && !wrapper.outside, depth + 1));
            }
            let guessed = (words.len() - wrapper.guesses..words.len()).take(MAX_GUESSES);
            let guessed = guessed.filter_map(|at| look_through(&words[at..])).flat_map(|wrapper| wrapper.scripts);
            for script in wrapper.scripts.drain(..).chain(guessed) {
                self.open(&script, depth + 1);
                if self.full {
                    break;
                }
            }
        }
        Run { words, wrapper, calls, by_bash }
    }
}
