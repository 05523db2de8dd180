//! Patterns of commands: words, each of which is a glob.

use globset::{GlobBuilder, GlobMatcher};

use super::impossible_patterns;
use super::matches::Match;
use super::wrapper::is_wrapper;
use crate::programs::{self, Running};
use crate::script::Word;

/// The commands that a rule matches.
#[derive(Debug)]
pub(super) struct CommandRule {
    /// The program as written. A rule that restricts also matches the name alone, in any folder.
    program: Glob,
    arguments: Vec<Glob>,
    /// Whether any further words may follow.
    open: bool,
    /// The last part of the program's path; `None` if it is not a valid glob, so that any name may
    /// match.
    name: Option<Glob>,
    /// The home folder, which replaces `~`.
    home: Option<String>,
}

/// A pattern of one word.
#[derive(Debug)]
struct Glob {
    text: String,
    /// `None` for literal text.
    matcher: Option<GlobMatcher>,
    /// Whether matching ignores case.
    folds: bool,
}

impl Glob {
    /// Compiles one word. A rule that restricts ignores case on macOS, where file names do.
    fn new(text: &str, home: Option<&str>, allows: bool) -> Result<Self, String> {
        let folds = !allows && cfg!(target_os = "macos");
        // `[` alone is the name of a program.
        let literal = text == "[" || !text.contains(['*', '?', '[', ']', '{', '}', '\\']);
        let below_home =
            text.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let text = match below_home {
            None => text.to_owned(),
            Some(rest) => {
                let home = home.ok_or("`~` needs HOME, which is not set")?;
                if literal {
                    format!("{home}{rest}")
                } else {
                    format!("{}{rest}", globset::escape(home))
                }
            }
        };
        let compile = || {
            GlobBuilder::new(&text)
                .case_insensitive(folds)
                .build()
                .map(|glob| glob.compile_matcher())
        };
        let matcher = if literal {
            None
        } else {
            Some(compile().map_err(|error| format!("{}: `{text}`", error.kind()))?)
        };
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
        impossible_patterns::check_command(pattern)?;
        let mut words: Vec<_> = pattern.split_whitespace().collect();
        // A single word is the program with any arguments.
        let open = words.len() == 1 || words.last() == Some(&"*");
        if open && words.len() > 1 {
            words.pop();
        }
        let (program, arguments) = words.split_first().ok_or("the pattern is empty")?;
        let compile = |word: &&str| Glob::new(word, home, allows);
        let arguments = arguments.iter().map(compile).collect::<Result<_, _>>()?;
        let name = Glob::new(programs::name_of(program), home, allows).ok();
        let rule = Self {
            program: compile(program)?,
            arguments,
            open,
            name,
            home: home.map(str::to_owned),
        };
        if allows { rule.check().map(|()| rule) } else { Ok(rule) }
    }

    /// Checks that an allow rule does not allow more than its text suggests.
    fn check(&self) -> Result<(), String> {
        let program = self.program.text.as_str();
        if !self.program.is_literal() {
            return Err("it must name a program".to_owned());
        }
        if programs::is_evaluating(program) {
            return Err(format!(
                "`{program}` always asks, because it evaluates its arguments or changes the meaning of later words"
            ));
        }
        let wide = self.is_wide();
        let name = programs::name_of(program);
        if is_wrapper(name) && wide {
            return Err(format!(
                "`{name}` runs other programs: write the whole command, or allow the wrapped command"
            ));
        }
        if programs::is_runner(name) && wide && !self.names_subcommand() {
            return Err(match programs::has_subcommands(name) {
                true => format!(
                    "`{name}` can run other programs: name a subcommand, for example shell({name} SUBCOMMAND *), or \
                     write the whole command"
                ),
                false => format!(
                    "`{name}` can run other programs, depending on its arguments: write the whole command, without a \
                     `*` at the end"
                ),
            });
        }
        match self.freed_option() {
            Some(option) if wide => Err(format!(
                "`{name}` runs another program with `{option}`: write the whole command, without a `*` \
                 at the end"
            )),
            _ => Ok(()),
        }
    }

    /// Whether the pattern matches more than one command.
    fn is_wide(&self) -> bool {
        self.open || !self.arguments.iter().all(Glob::is_literal)
    }

    /// An option or a subcommand in the pattern that runs another program, if the pattern does not
    /// say which program.
    fn freed_option(&self) -> Option<&'static str> {
        let words: Vec<_> =
            self.arguments.iter().map(|glob| Word::Literal(glob.text.clone())).collect();
        let is_literal = |at: usize| self.arguments.get(at).is_some_and(Glob::is_literal);
        let is_free = |found: &Running| {
            let Some(at) = found.at.filter(|_| !found.is_subcommand) else { return true };
            let word = words[at].literal().unwrap_or_default();
            let has_value = word.contains('=') || word.len() > 2 && found.option.len() == 2;
            !is_literal(at) || !has_value && !is_literal(at + 1)
        };
        programs::running(&self.program.text, &words)
            .iter()
            .find(|it| is_free(it))
            .map(|it| it.option)
    }

    /// Whether the pattern names a subcommand: an argument that is neither an option nor an
    /// option's value.
    fn names_subcommand(&self) -> bool {
        let texts = self.arguments.iter().map(|word| word.text.as_str());
        let before = std::iter::once("").chain(texts);
        // An interpreter's module follows `-m`.
        let takes_a_value = |option: &str| {
            option.starts_with('-') && !matches!(option, "-m" | "--") && !option.contains('=')
        };
        let is_subcommand = |(word, before): (&Glob, &str)| {
            word.is_literal() && !word.text.starts_with(['-', '+']) && !takes_a_value(before)
        };
        // A glob as the first argument may match an option that takes the next word as its value.
        self.arguments.first().is_some_and(Glob::is_literal)
            && self.arguments.iter().zip(before).any(is_subcommand)
    }

    /// Whether the rule allows a call. Every word that the pattern covers must be known.
    pub(super) fn allows(&self, words: &[Word]) -> bool {
        let Some((program, arguments)) = words.split_first() else { return false };
        // A path names a different program, even if its last part is the same.
        let is_program = program
            .known(self.home.as_deref())
            .is_some_and(|program| self.program.matches(&program));
        // A `*` covers no option that runs another program.
        let runs_another = || {
            let is_written = |at| self.arguments.get(at).is_some_and(Glob::is_literal);
            let running = programs::running(&self.program.text, arguments);
            self.is_wide() && running.iter().any(|found| !found.at.is_some_and(is_written))
        };
        is_program && self.match_arguments(arguments) == Match::Yes && !runs_another()
    }

    /// Whether the rule restricts a call. The program's folder does not matter, and an unknown word
    /// may be anything.
    pub(super) fn restricts(&self, words: &[Word]) -> Match {
        let Some((program, arguments)) = words.split_first() else { return Match::No };
        let program_match = match (program.known(self.home.as_deref()), program) {
            (Some(program), _) => self.match_program(&program),
            // Without a home folder, the end of the path is still known.
            (None, Word::Home(rest)) => self.match_program(rest),
            (None, _) => return Match::Maybe,
        };
        if program_match == Match::No {
            Match::No
        } else {
            self.match_arguments(arguments).min(program_match)
        }
    }

    /// Whether `program` is the one that the rule restricts.
    fn match_program(&self, program: &str) -> Match {
        let name = programs::name_of(program);
        if self.program.matches(program) || self.program.matches(name) {
            return Match::Yes;
        }
        // A program can have several paths, and a path several spellings, so one with the same name
        // may be the restricted program.
        let is_path = self.program.text.contains('/');
        let may_be = is_path && self.name.as_ref().is_none_or(|glob| glob.matches(name));
        if may_be { Match::Maybe } else { Match::No }
    }

    fn match_arguments(&self, words: &[Word]) -> Match {
        let mut words = words.iter();
        for glob in &self.arguments {
            let Some(word) = words.next() else { return Match::No };
            match word.known(self.home.as_deref()) {
                // An unknown word may expand to any number of words.
                None => return Match::Maybe,
                Some(word) if !glob.matches(&word) => return Match::No,
                Some(_) => {}
            }
        }
        match (self.open, words.as_slice()) {
            (true, _) | (_, []) => Match::Yes,
            // Unknown words may expand to nothing.
            (false, more) if more.iter().all(|word| *word == Word::Dynamic) => Match::Maybe,
            (false, _) => Match::No,
        }
    }
}
