//! Patterns of commands: words, each a glob.

use globset::{GlobBuilder, GlobMatcher};

use super::programs;
use super::rule::Match;
use crate::script::Word;

/// The commands that a rule speaks of.
#[derive(Debug)]
pub(super) struct CommandRule {
    /// As it is written: a program without a `/` is one of that name wherever it lies.
    program: Glob,
    arguments: Vec<Glob>,
    /// Any further words may follow.
    open: bool,
}

/// A pattern of one word.
#[derive(Debug)]
struct Glob {
    text: String,
    /// Without one it is the text alone.
    matcher: Option<GlobMatcher>,
    /// In any case of letters.
    folds: bool,
}

impl Glob {
    /// What restricts does so in any case of letters where file names have none.
    fn new(text: &str, allows: bool) -> Result<Self, String> {
        let folds = !allows && cfg!(target_os = "macos");
        // `[` alone is a program.
        let literal = text == "[" || !text.contains(['*', '?', '[', ']', '{', '}', '\\']);
        let compile = || GlobBuilder::new(text).case_insensitive(folds).build().map(|glob| glob.compile_matcher());
        let matcher =
            if literal { None } else { Some(compile().map_err(|error| format!("{}: `{text}`", error.kind()))?) };
        Ok(Self { text: text.to_owned(), matcher, folds })
    }

    fn is_literal(&self) -> bool {
        self.matcher.is_none()
    }

    fn matches(&self, word: &str) -> bool {
        match &self.matcher {
            Some(matcher) => matcher.is_match(word),
            None if self.folds => self.text.eq_ignore_ascii_case(word),
            None => self.text == word,
        }
    }
}

impl CommandRule {
    pub(super) fn new(pattern: &str, allows: bool) -> Result<Self, String> {
        let mut words: Vec<_> = pattern.split_whitespace().collect();
        // One bare word is the program with any arguments.
        let open = words.len() == 1 || words.last() == Some(&"*");
        if open && words.len() > 1 {
            words.pop();
        }
        let (program, arguments) = words.split_first().ok_or("it has no words")?;
        let globs = arguments.iter().map(|word| Glob::new(word, allows)).collect::<Result<_, _>>()?;
        let rule = Self { program: Glob::new(program, allows)?, arguments: globs, open };
        if allows { rule.check().map(|()| rule) } else { Ok(rule) }
    }

    /// An allow rule must not allow more than it seems to.
    fn check(&self) -> Result<(), String> {
        let program = self.program.text.as_str();
        if !self.program.is_literal() {
            return Err("it has to name its program".to_owned());
        }
        if programs::is_evaluating(program) {
            return Err(format!(
                "`{program}` evaluates what it is given, or changes what later words mean: it always asks"
            ));
        }
        let wide = self.open || !self.arguments.iter().all(Glob::is_literal);
        let name = programs::name_of(program);
        if programs::is_wrapper(name) && wide {
            return Err(format!("`{name}` runs other programs; write the whole command, or allow what it would run"));
        }
        let names_a_part = self.arguments.first().is_some_and(Glob::is_literal)
            && self.arguments.iter().any(|word| !word.text.starts_with('-'));
        if programs::is_runner(name) && wide && !names_a_part {
            return Err(format!(
                "`{name}` can run other programs; write what of it, for example shell({name} SUBCOMMAND *), or the whole command"
            ));
        }
        Ok(())
    }

    /// Whether it allows a call: all that matters of it must be known.
    pub(super) fn allows(&self, words: &[Word]) -> bool {
        let Some((Word::Literal(program), arguments)) = words.split_first() else { return false };
        // A path is another program, whatever it is called.
        self.program.matches(program) && self.arguments(arguments) == Match::Yes
    }

    /// Whether it restricts a call: a program counts wherever it lies, and what is not known may be anything.
    pub(super) fn restricts(&self, words: &[Word]) -> Match {
        let Some((program, arguments)) = words.split_first() else { return Match::No };
        let program = match program {
            Word::Literal(program) | Word::Home(program) => program,
            Word::Dynamic => return Match::Maybe,
        };
        let named = if self.program.text.contains('/') && !program.contains('/') {
            // It may be the one that is meant.
            Match::Maybe
        } else {
            Match::Yes
        };
        let same_name = self.program.matches(programs::name_of(program));
        let is_program = match named {
            Match::Maybe => programs::name_of(&self.program.text) == program,
            _ => self.program.matches(program) || same_name,
        };
        if is_program { self.arguments(arguments).min(named) } else { Match::No }
    }

    fn arguments(&self, words: &[Word]) -> Match {
        let mut words = words.iter();
        for glob in &self.arguments {
            let matches = match words.next() {
                None => false,
                Some(Word::Literal(word)) => glob.matches(word),
                Some(Word::Home(word)) => glob.matches(&format!("~{word}")),
                // It may be any number of words.
                Some(Word::Dynamic) => return Match::Maybe,
            };
            if !matches {
                return Match::No;
            }
        }
        match (self.open, words.as_slice()) {
            (true, _) | (_, []) => Match::Yes,
            (false, more) if more.iter().all(|word| *word == Word::Dynamic) => Match::Maybe,
            (false, _) => Match::No,
        }
    }
}
