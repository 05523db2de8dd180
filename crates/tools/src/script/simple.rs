//! Simple commands: assignments, words and redirections.

use super::reader::{Reader, Stop, is_meta};
use super::{Assignment, Call, ScriptEffect, Word};

impl Reader<'_> {
    /// Reads a simple command, or the function definition that begins like one.
    pub(super) fn simple(&mut self) -> Result<(), Stop> {
        let start = self.at;
        let mut assignments = Vec::new();
        let mut words = Vec::new();
        let mut redirected = false;
        let mut program = "";
        let mut end;
        loop {
            end = self.at;
            self.gap();
            if self.redirection()? {
                redirected = true;
            } else if self.is_at_word() {
                if words.is_empty()
                    && let Some(assignment) = self.assignment()?
                {
                    assignments.push(assignment);
                    continue;
                }
                let word_start = self.at;
                words.push(self.word()?);
                let source = self.source;
                match words.as_slice() {
                    [_] => program = &source[word_start..self.at],
                    [.., Word::Dynamic] => self.record_export(program, &words, word_start),
                    _ => {}
                }
                if words.len() == 1
                    && assignments.is_empty()
                    && !redirected
                    && self.eat_function_parens()?
                {
                    return self.function_body(start);
                }
            } else {
                break;
            }
        }
        if words.is_empty() && assignments.is_empty() && !redirected {
            return Err(Stop("a command is missing"));
        }
        if !(words.is_empty() && assignments.is_empty()) {
            let text = self.source[start..end].to_owned();
            self.found.push(ScriptEffect::Call(Call { text, assignments, words }));
        }
        Ok(())
    }

    /// Whether a word begins here. A process substitution counts as one.
    fn is_at_word(&self) -> bool {
        match (self.peek(), self.peek_at(1)) {
            (Some(b'<' | b'>'), next) => next == Some(b'('),
            (byte, _) => byte.is_some_and(|byte| !is_meta(byte)),
        }
    }

    /// Skips `()`, which makes the word before it the name of a function. Returns whether it was
    /// there.
    fn eat_function_parens(&mut self) -> Result<bool, Stop> {
        let at = self.at;
        self.blanks();
        if !self.eat("(") {
            self.at = at;
            return Ok(false);
        }
        self.blanks();
        if self.eat(")") { Ok(true) } else { Err(Stop("bash would expect `)` here")) }
    }

    /// Reads an assignment, if one is next.
    fn assignment(&mut self) -> Result<Option<Assignment>, Stop> {
        let start = self.at;
        let Some(name) = self.name() else { return Ok(None) };
        if !self.eat("=") && !self.eat("+=") {
            self.at = start;
            return Ok(None);
        }
        let value = match self.peek() {
            None => Word::Literal(String::new()),
            Some(b'(') => self.array()?,
            Some(b'<' | b'>') if self.peek_at(1) == Some(b'(') => self.word()?,
            Some(byte) if is_meta(byte) => Word::Literal(String::new()),
            Some(_) => self.word()?,
        };
        Ok(Some(Assignment { name: name.to_owned(), value }))
    }

    /// Records the effect of an argument of `export` or `readonly` that is known only at run time.
    /// `start` is the position of the argument. If it begins with `NAME=`, that variable gets an
    /// unknown value. `program` is the source text of the first word: bash keeps the value one
    /// word only if the name of the builtin is unquoted there.
    fn record_export(&mut self, program: &str, words: &[Word], start: usize) {
        let is_export = |word: &Word| matches!(word.literal(), Some("export" | "readonly"));
        let exports = match words.first().and_then(Word::literal) {
            Some("builtin" | "command") => words.iter().any(is_export),
            _ => words.first().is_some_and(is_export),
        };
        if !exports {
            return;
        }
        let mut argument = Reader::new(&self.source[start..], 0);
        match argument.name().filter(|_| argument.eat("=") || argument.eat("+=")) {
            Some(name) if matches!(program, "export" | "readonly") => {
                self.record_unknown_assignment(name)
            }
            _ => self.unclear_at(start, "the variable that it sets is known only at run time"),
        }
    }

    /// Reads the words of an array.
    fn array(&mut self) -> Result<Word, Stop> {
        self.unclear("the subscripts of an array are arithmetic, which can run programs");
        self.at += 1;
        loop {
            self.lines()?;
            if self.eat(")") {
                return Ok(Word::Dynamic);
            }
            self.word()?;
        }
    }

    /// Records that a variable is set to an unknown value.
    pub(super) fn record_unknown_assignment(&mut self, name: &str) {
        let text = format!("{name}=");
        let assignments = vec![Assignment { name: name.to_owned(), value: Word::Dynamic }];
        self.found.push(ScriptEffect::Call(Call { text, assignments, words: Vec::new() }));
    }
}
