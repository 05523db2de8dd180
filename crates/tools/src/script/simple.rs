//! Simple commands: assignments, words and redirections.

use super::reader::{Reader, Stop, is_meta};
use super::{Assignment, Call, ScriptEffect, Word};
use crate::programs;

impl Reader<'_> {
    /// Reads a simple command, or the function definition that begins like one.
    pub(super) fn simple(&mut self) -> Result<(), Stop> {
        let start = self.at;
        let mut assignments = Vec::new();
        let mut words: Vec<Word> = Vec::new();
        let mut redirected = false;
        let mut program = "";
        let mut exports = false;
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
                let word = self.word()?;
                let may_be_builtin = words
                    .first()
                    .is_none_or(|first| first.literal().is_some_and(programs::runs_builtins));
                exports |= may_be_builtin && matches!(word.literal(), Some("export" | "readonly"));
                words.push(word);
                let source = self.source;
                match words.as_slice() {
                    [_] => program = &source[word_start..self.at],
                    [.., Word::Dynamic] if exports => self.record_export(program, word_start),
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
    fn record_export(&mut self, program: &str, start: usize) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the variables that get unknown values, and the number of unclear places.
    fn exported(script: &str) -> (Vec<String>, usize) {
        let (mut names, mut unclear) = (Vec::new(), 0);
        for effect in Reader::new(script, 0).whole() {
            match effect {
                ScriptEffect::Call(call) if call.words.is_empty() => {
                    names.extend(call.assignments.into_iter().map(|assignment| assignment.name))
                }
                ScriptEffect::Unclear { .. } => unclear += 1,
                _ => {}
            }
        }
        (names, unclear)
    }

    #[test]
    fn only_arguments_after_export_or_readonly_set_variables() {
        for (script, names, unclear) in [
            ("export A=$a", vec!["A"], 0),
            ("readonly A=$a B+=$b", vec!["A", "B"], 0),
            ("export $a", vec![], 1),
            ("'export' A=$a", vec![], 1),
            ("command export A=$a", vec![], 1),
            ("builtin -- readonly A=$a", vec![], 1),
            ("jobs -x export A=$a", vec![], 1),
            ("command A=$a export", vec![], 0),
            ("echo export A=$a", vec![], 0),
        ] {
            let names = names.into_iter().map(str::to_owned).collect();
            assert_eq!(exported(script), (names, unclear), "{script}");
        }
    }

    #[test]
    fn a_command_with_many_dynamic_words_is_read_in_linear_time() {
        let script = format!("command{}", " $a".repeat(1 << 19));
        assert_eq!(exported(&script), (vec![], 0));
    }
}
