//! Redirections: files, descriptors and here-documents.

use super::reader::{Reader, Stop, is_meta};
use super::{Redirection, ScriptEffect, Word};

impl Reader<'_> {
    /// Reads a redirection, if one is next. Returns whether there was one.
    pub(super) fn redirection(&mut self) -> Result<bool, Stop> {
        let start = self.at;
        if self.eat("&>") {
            self.eat(">");
            return self.file(start, &[true]);
        }
        let digits = self.take_while(|byte| byte.is_ascii_digit()).len();
        match (self.peek(), self.peek_at(1)) {
            (Some(b'<' | b'>'), Some(b'(')) if digits == 0 => return Ok(false),
            (Some(b'<' | b'>'), Some(b'(')) => {
                return Err(Stop("a process substitution in the middle of a word"));
            }
            (Some(b'<' | b'>'), _) if digits > 3 => {
                return Err(Stop("the number of a file descriptor is too large"));
            }
            (Some(b'<' | b'>'), _) => {}
            _ => {
                self.at = start;
                return Ok(false);
            }
        }
        if self.eat("<<<") {
            self.operand()?;
            return Ok(true);
        }
        if self.eat("<<-") {
            return self.heredoc_delimiter(true);
        }
        if self.eat("<<") {
            return self.heredoc_delimiter(false);
        }
        if self.eat("<&") || self.eat(">&") {
            return self.duplicate(start);
        }
        if self.eat("<>") {
            return self.file(start, &[false, true]);
        }
        let writes = self.eat(">>") || self.eat(">|") || self.eat(">");
        if !writes {
            self.eat("<");
        }
        self.file(start, &[writes])
    }

    /// Reads the path of a redirection that began at `start`. `openings` says for each time that
    /// bash opens the file whether it opens it for writing.
    fn file(&mut self, start: usize, openings: &[bool]) -> Result<bool, Stop> {
        let target = self.operand()?;
        let text = &self.source[start..self.at];
        let redirection =
            |&writes| Redirection { text: text.to_owned(), writes, target: target.clone() };
        self.found.extend(openings.iter().map(redirection).map(ScriptEffect::Redirect));
        Ok(true)
    }

    /// Reads the word after `<&` or `>&`. A number, or a `-` that closes a descriptor, opens no
    /// file. Any other word counts as the path of a file that is written.
    fn duplicate(&mut self, start: usize) -> Result<bool, Stop> {
        self.blanks();
        // The `-` is a separate word: text directly after it begins another one.
        if self.peek() == Some(b'-') && !self.peek_at(1).is_none_or(is_meta) {
            return Err(Stop("more text follows the `-` that closes a file"));
        }
        let target = self.operand()?;
        if let Word::Literal(word) | Word::Home(word) = &target {
            let number = word.strip_suffix('-').unwrap_or(word);
            if !word.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
                return Ok(true);
            }
            // Bash expands a name that is not a number once more, even if it is quoted.
            if !word
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"/._-+,:=@%".contains(&byte))
            {
                self.unclear("bash expands the name of this file twice");
            }
        }
        let text = self.source[start..self.at].to_owned();
        self.found.push(ScriptEffect::Redirect(Redirection { text, writes: true, target }));
        Ok(true)
    }
}
