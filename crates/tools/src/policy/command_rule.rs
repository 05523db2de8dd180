//! Patterns of commands: words, each a glob.

use globset::{GlobBuilder, GlobMatcher};

use super::matches::Match;
use super::programs;
use super::unmatched;
use super::wrapper::is_wrapper;
use crate::script::Word;

/// The commands that a rule speaks of.
#[derive(Debug)]
pub(super) struct CommandRule {
    /// As it is written: a program without a `/` is one of that name wherever it lies.
    program: Glob,
    arguments: Vec<Glob>,
    /// Any further words may follow.
    open: bool,
    /// The last part of a program's path; none if any may be meant.
    name: Option<Glob>,
    /// What `~` means.
    home: Option<String>,
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
    fn new(text: &str, home: Option<&str>, allows: bool) -> Result<Self, String> {
        let folds = !allows && cfg!(target_os = "macos");
        // `[` alone is a program.
        let literal = text == "[" || !text.contains(['*', '?', '[', ']', '{', '}', '\\']);
        let below_home = text.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let text = match below_home {
            None => text.to_owned(),
            Some(rest) => {
                let home = home.ok_or("`~` needs HOME, which is not set")?;
                if literal { format!("{home}{rest}") } else { format!("{}{rest}", globset::escape(home)) }
            }
        };
        let compile = || GlobBuilder::new(&text).case_insensitive(folds).build().map(|glob| glob.compile_matcher());
        let matcher =
            if literal { None } else { Some(compile().map_err(|error| format!("{}: `{text}`", error.kind()))?) };
        Ok(Self { text, matcher, folds })
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
    pub(super) fn new(pattern: &str, home: Option<&str>, allows: bool) -> Result<Self, String> {
        unmatched::command(pattern)?;
        let mut words: Vec<_> = pattern.split_whitespace().collect();
        // One bare word is the program with any arguments.
        let open = words.len() == 1 || words.last() == Some(&"*");
        if open && words.len() > 1 {
            words.pop();
        }
        let (program, arguments) = words.split_first().ok_or("it has no words")?;
        let compile = |word: &&str| Glob::new(word, home, allows);
        let arguments = arguments.iter().map(compile).collect::<Result<_, _>>()?;
        let name = Glob::new(programs::name_of(program), home, allows).ok();
        let rule = Self { program: compile(program)?, arguments, open, name, home: home.map(str::to_owned) };
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
        if is_wrapper(name) && wide {
            return Err(format!("`{name}` runs other programs; write the whole command, or allow what it would run"));
        }
        if programs::is_runner(name) && wide && !self.names_a_part() {
            return Err(match programs::has_parts(name) {
                true => format!(
                    "`{name}` can run other programs; write what of it, for example shell({name} SUBCOMMAND *), or the whole command"
                ),
                false => format!(
                    "`{name}` can run other programs by what it is given; write the whole command, without a `*` at its end"
                ),
            });
        }
        Ok(())
    }

    /// Whether it names a part of its program: an argument that is no option, and not the value of one.
    fn names_a_part(&self) -> bool {
        let texts = self.arguments.iter().map(|word| word.text.as_str());
        let before = std::iter::once("").chain(texts);
        // The part of an interpreter that is meant comes after `-m`.
        let takes_a_value =
            |option: &str| option.starts_with('-') && !matches!(option, "-m" | "--") && !option.contains('=');
        let is_part = |(word, before): (&Glob, &str)| {
            word.is_literal() && !word.text.starts_with(['-', '+']) && !takes_a_value(before)
        };
        self.arguments.first().is_some_and(Glob::is_literal) && self.arguments.iter().zip(before).any(is_part)
    }

    /// Whether it allows a call: all that matters of it must be known.
    pub(super) fn allows(&self, words: &[Word]) -> bool {
        let Some((program, arguments)) = words.split_first() else { return false };
        // A path is another program, whatever it is called.
        let is_program = program.known(self.home.as_deref()).is_some_and(|program| self.program.matches(&program));
        is_program && self.arguments(arguments) == Match::Yes
    }

    /// Whether it restricts a call: a program counts wherever it lies, and what is not known may be anything.
    pub(super) fn restricts(&self, words: &[Word]) -> Match {
        let Some((program, arguments)) = words.split_first() else { return Match::No };
        let named = match (program.known(self.home.as_deref()), program) {
            (Some(program), _) => self.is_called(&program),
            // Without a home folder the end of the path is known.
            (None, Word::Home(rest)) => self.is_called(rest),
            (None, _) => return Match::Maybe,
        };
        if named == Match::No { Match::No } else { self.arguments(arguments).min(named) }
    }

    /// Whether a program is the one that is restricted.
    fn is_called(&self, program: &str) -> Match {
        let name = programs::name_of(program);
        if self.program.matches(program) || self.program.matches(name) {
            return Match::Yes;
        }
        // A path can be written in many ways, and a program have many: of this name it may be the one that is meant.
        let is_path = self.program.text.contains('/');
        let may_be = is_path && self.name.as_ref().is_none_or(|glob| glob.matches(name));
        if may_be { Match::Maybe } else { Match::No }
    }

    fn arguments(&self, words: &[Word]) -> Match {
        let mut words = words.iter();
        for glob in &self.arguments {
            let Some(word) = words.next() else { return Match::No };
            match word.known(self.home.as_deref()) {
                // It may be any number of words.
                None => return Match::Maybe,
                Some(word) if !glob.matches(&word) => return Match::No,
                Some(_) => {}
            }
        }
        match (self.open, words.as_slice()) {
            (true, _) | (_, []) => Match::Yes,
            (false, more) if more.iter().all(|word| *word == Word::Dynamic) => Match::Maybe,
            (false, _) => Match::No,
        }
    }
}
