//! A command, opened: every call it would make, those that programs make in their turn included.

use super::programs;
use super::wrapper::{Wrapper, look_through};
use crate::script::{self, Call, Deed, MAX_NESTING, Word};

/// What a command would do, scripts within scripts included, in the order it is written.
#[derive(Debug, Default)]
pub(super) struct Opened {
    pub(super) deeds: Vec<OpenedDeed>,
    /// It may go to another folder: relative paths may begin anywhere.
    pub(super) moves: bool,
}

/// One thing it would do.
#[derive(Debug)]
pub(super) enum OpenedDeed {
    /// A call, with what it would run.
    Call(Call, Run),
    /// Anything else.
    Other(Deed),
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
        for deed in script::read(script, depth) {
            let deed = match deed {
                Deed::Call(call) => {
                    let run = self.run(call.words.clone(), true, depth);
                    OpenedDeed::Call(call, run)
                }
                other => OpenedDeed::Other(other),
            };
            self.deeds.push(deed);
        }
    }

    fn run(&mut self, words: Vec<Word>, by_bash: bool, depth: u32) -> Run {
        let name = words.first().and_then(Word::literal).map(programs::name_of);
        self.moves |= name.is_some_and(programs::is_moving);
        let mut wrapper = look_through(&words);
        let mut calls = Vec::new();
        if let Some(wrapper) = &mut wrapper {
            if depth >= MAX_NESTING {
                wrapper.unclear = true;
                wrapper.calls.clear();
                wrapper.scripts.clear();
            }
            for call in &wrapper.calls {
                calls.push(self.run(call.clone(), by_bash && !wrapper.outside, depth + 1));
            }
            for script in &wrapper.scripts {
                self.open(script, depth + 1);
            }
        }
        Run { words, wrapper, calls, by_bash }
    }
}
