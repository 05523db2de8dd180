//! Conditions: the text between `[[` and `]]`.

use super::reader::{Reader, Stop};

/// The letters of operators that test one word.
const UNARY: &str = "abcdefghknoprstuvwxzGLNORS";

/// Operators that compare two words without evaluating them.
const BINARY: [&str; 6] = ["=", "==", "!=", "-nt", "-ot", "-ef"];

/// Operators that evaluate both words.
const ARITHMETIC: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

const CLOSES: &str = "]]";

impl Reader<'_> {
    pub(super) fn conditional(&mut self) -> Result<(), Stop> {
        self.any_of()?;
        if self.term_word()? == CLOSES { Ok(()) } else { Err(Stop("bash would expect `]]` here")) }
    }

    fn any_of(&mut self) -> Result<(), Stop> {
        loop {
            self.all_of()?;
            if !self.eat("||") {
                return Ok(());
            }
        }
    }

    fn all_of(&mut self) -> Result<(), Stop> {
        loop {
            self.term()?;
            if !self.eat("&&") {
                return Ok(());
            }
        }
    }

    fn term(&mut self) -> Result<(), Stop> {
        self.term_lines()?;
        if self.eat("(") {
            self.nested(Self::any_of)?;
            if !self.eat(")") {
                return Err(Stop("bash would expect `)` here"));
            }
        } else {
            match self.term_word()?.as_str() {
                CLOSES => return Err(Stop("a condition is missing")),
                "!" => return self.nested(Self::term),
                word if is_unary(word) => {
                    if ["-v", "-R"].contains(&word) {
                        self.unclear("arithmetic can run programs");
                    }
                    self.condition_operand()?;
                }
                _ => self.comparison()?,
            }
        }
        self.term_lines()
    }

    /// Reads an operator and another word, if they follow the first word of a term.
    fn comparison(&mut self) -> Result<(), Stop> {
        self.blanks();
        match (self.peek(), self.peek_at(1)) {
            (Some(b')'), _) | (Some(b'&'), Some(b'&')) | (Some(b'|'), Some(b'|')) => return Ok(()),
            (Some(b'<' | b'>'), Some(next)) if next != b'(' => {
                self.at += 1;
                return self.condition_operand();
            }
            _ => {}
        }
        let start = self.at;
        match self.term_word()?.as_str() {
            CLOSES => {
                self.at = start;
                return Ok(());
            }
            "=~" => self.unclear("regular expressions are not checked"),
            word if ARITHMETIC.contains(&word) => self.unclear("arithmetic can run programs"),
            word if BINARY.contains(&word) => {}
            _ => return Err(Stop("bash would expect an operator here")),
        }
        self.condition_operand()
    }

    /// Reads the word after an operator.
    fn condition_operand(&mut self) -> Result<(), Stop> {
        if self.term_word()? == CLOSES {
            Err(Stop("a word is missing before `]]`"))
        } else {
            Ok(())
        }
    }

    /// Skips line breaks, which may surround a term.
    fn term_lines(&mut self) -> Result<(), Stop> {
        self.term_blanks()?;
        self.lines()
    }

    /// Skips blanks. Where a word may begin, a comment may too.
    fn term_blanks(&mut self) -> Result<(), Stop> {
        self.blanks();
        if self.peek() == Some(b'#') { Err(Stop("a comment inside a condition")) } else { Ok(()) }
    }

    /// Reads a word and returns it as it is written.
    fn term_word(&mut self) -> Result<String, Stop> {
        self.term_blanks()?;
        if self.peek().is_none() {
            return Err(Stop("a `[[` is not closed"));
        }
        let start = self.at;
        self.word()?;
        if self.peek() == Some(b'(') {
            return Err(Stop("an extended pattern with parentheses"));
        }
        let word = &self.source[start..self.at];
        // Directly before `<` or `>`, bash reads the descriptor of a redirection: its number, or
        // the variable that receives it.
        let is_descriptor = word.bytes().all(|byte| byte.is_ascii_digit())
            || (word.starts_with('{') && word.ends_with('}'));
        if matches!(self.peek(), Some(b'<' | b'>')) && is_descriptor {
            return Err(Stop("bash would read a redirection here"));
        }
        Ok(word.to_owned())
    }
}

fn is_unary(word: &str) -> bool {
    let letter = word.strip_prefix('-').filter(|letter| letter.len() == 1);
    letter.is_some_and(|letter| UNARY.contains(letter))
}
