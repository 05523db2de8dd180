//! Conditions: what stands between `[[` and `]]`.

use super::reader::{Reader, Stop};

/// What looks at one word.
const UNARY: &str = "abcdefghknoprstuvwxzGLNORS";

/// What compares two words, and evaluates neither.
const BINARY: [&str; 6] = ["=", "==", "!=", "-nt", "-ot", "-ef"];

/// What evaluates both.
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
                    self.compared()?;
                }
                _ => self.comparison()?,
            }
        }
        self.term_lines()
    }

    /// What may follow the first word of a term: an operator and another word.
    fn comparison(&mut self) -> Result<(), Stop> {
        self.blanks();
        match (self.peek(), self.peek_at(1)) {
            (Some(b')'), _) | (Some(b'&'), Some(b'&')) | (Some(b'|'), Some(b'|')) => return Ok(()),
            (Some(b'<' | b'>'), Some(next)) if next != b'(' => {
                self.at += 1;
                return self.compared();
            }
            _ => {}
        }
        let start = self.at;
        match self.term_word()?.as_str() {
            CLOSES => {
                self.at = start;
                return Ok(());
            }
            "=~" => self.unclear("a regular expression is not read"),
            word if ARITHMETIC.contains(&word) => self.unclear("arithmetic can run programs"),
            word if BINARY.contains(&word) => {}
            _ => return Err(Stop("bash would expect an operator here")),
        }
        self.compared()
    }

    /// The word that an operator is for.
    fn compared(&mut self) -> Result<(), Stop> {
        if self.term_word()? == CLOSES { Err(Stop("a word is missing before `]]`")) } else { Ok(()) }
    }

    /// Goes past line breaks, which may stand around a term.
    fn term_lines(&mut self) -> Result<(), Stop> {
        self.term_blanks()?;
        self.lines()
    }

    /// Goes past blanks. Where a word may begin, a comment may, too.
    fn term_blanks(&mut self) -> Result<(), Stop> {
        self.blanks();
        if self.peek() == Some(b'#') { Err(Stop("there is a comment in a condition")) } else { Ok(()) }
    }

    /// A word, as it is written.
    fn term_word(&mut self) -> Result<String, Stop> {
        self.term_blanks()?;
        if self.peek().is_none() {
            return Err(Stop("a `[[` is not closed"));
        }
        let start = self.at;
        self.word()?;
        if self.peek() == Some(b'(') {
            return Err(Stop("a pattern of patterns"));
        }
        let word = &self.source[start..self.at];
        // Directly before one of these, bash reads the file of a redirection: its number, or the variable that gets it.
        let is_file = word.bytes().all(|byte| byte.is_ascii_digit()) || (word.starts_with('{') && word.ends_with('}'));
        if matches!(self.peek(), Some(b'<' | b'>')) && is_file {
            return Err(Stop("bash would read a redirection here"));
        }
        Ok(word.to_owned())
    }
}

fn is_unary(word: &str) -> bool {
    let letter = word.strip_prefix('-').filter(|letter| letter.len() == 1);
    letter.is_some_and(|letter| UNARY.contains(letter))
}
