//! Expansions, which begin with `$`.

use super::quote::Quotes;
use super::reader::{Reader, Stop};
use super::word::WordBuilder;

impl Reader<'_> {
    /// Reads a `$` and its expansion.
    pub(super) fn dollar(&mut self, quotes: Quotes, word: &mut WordBuilder) -> Result<(), Stop> {
        self.at += 1;
        match (self.peek(), self.peek_at(1)) {
            (Some(b'('), Some(b'(')) => {
                word.dynamic = true;
                self.at += 2;
                self.nested(Self::arithmetic)
            }
            (Some(b'('), _) => {
                word.dynamic = true;
                self.at += 1;
                self.substitution()
            }
            (Some(b'{'), _) => {
                word.dynamic = true;
                self.at += 1;
                self.nested(Self::braces)
            }
            (Some(b'['), _) => Err(Stop("arithmetic can run programs")),
            (Some(b'\\'), Some(b'\n')) => {
                Err(Stop("a line continuation inside a word or an operator"))
            }
            (Some(b'\''), _) if quotes == Quotes::None => self.ansi_quotes(word),
            (Some(b'"'), _) if quotes == Quotes::None => {
                word.dynamic = true;
                self.unclear("`$\"…\"` is replaced by its translation");
                self.double_quotes(word)
            }
            (Some(byte), _) if byte.is_ascii_alphabetic() || byte == b'_' => {
                word.dynamic = true;
                self.name();
                Ok(())
            }
            (Some(b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!'), _) => {
                word.dynamic = true;
                self.at += 1;
                Ok(())
            }
            (Some(0x80..), _) => {
                word.dynamic = true;
                self.unclear("`$` before a character that some locales treat as a letter");
                Ok(())
            }
            _ => {
                word.text.push('$');
                Ok(())
            }
        }
    }

    /// Reads commands up to the `)` that closes a substitution.
    pub(super) fn substitution(&mut self) -> Result<(), Stop> {
        self.nested(|this| {
            let outer = std::mem::take(&mut this.pending_heredocs);
            this.outer_heredocs += outer.len();
            this.substitution_depth += 1;
            this.commands()?;
            if !this.eat(")") {
                return Err(Stop("a substitution is not closed"));
            }
            if !this.pending_heredocs.is_empty() {
                return Err(Stop("a here-document begins inside another construct"));
            }
            this.substitution_depth -= 1;
            this.outer_heredocs -= outer.len();
            this.pending_heredocs = outer;
            Ok(())
        })
    }

    /// Reads arithmetic after `$((`. Numbers are safe; other text can name a variable, and bash
    /// evaluates its value in turn, with the substitutions in it.
    fn arithmetic(&mut self) -> Result<(), Stop> {
        let start = self.at;
        let mut is_numeric = true;
        let mut open_parens = 0u32;
        loop {
            let byte = self.peek().ok_or(Stop("arithmetic is not closed"))?;
            match byte {
                b')' if open_parens == 0 => {
                    if !self.eat("))") {
                        return Err(Stop("this may be arithmetic or a substitution"));
                    }
                    break;
                }
                b'(' => open_parens += 1,
                b')' => open_parens -= 1,
                b'0'..=b'9' | b' ' | b'+' | b'-' | b'*' | b'/' | b'%' => {}
                _ => is_numeric = false,
            }
            match byte {
                b'$' => self.dollar(Quotes::Double, &mut WordBuilder::default())?,
                b'`' => self.backquotes(&mut WordBuilder::default())?,
                b'\'' | b'"' | b'\\' | b'<' | b'>' => {
                    return Err(Stop("arithmetic can run programs"));
                }
                b'\n' => return Err(Stop("arithmetic over several lines")),
                _ => {
                    self.take();
                }
            }
        }
        if !is_numeric {
            self.unclear_at(start, "arithmetic can run programs");
        }
        Ok(())
    }

    /// Reads the rest of `${`. Accepts only the forms that run nothing by themselves: values,
    /// lengths, defaults, and parts by pattern.
    fn braces(&mut self) -> Result<(), Stop> {
        const OTHER: Stop = Stop("this form of `${…}` can run programs");
        let is_length = self.peek() == Some(b'#') && self.peek_at(1) != Some(b'}');
        self.at += usize::from(is_length);
        let name = match self.name() {
            Some(name) => Some(name),
            None => {
                let is_special = |byte: u8| byte.is_ascii_digit() || b"@*#?-$!".contains(&byte);
                let first = self.peek().filter(|&byte| is_special(byte)).ok_or(OTHER)?;
                self.at += 1;
                if first.is_ascii_digit() {
                    self.take_while(|byte| byte.is_ascii_digit());
                } else if self.peek() != Some(b'}') {
                    return Err(OTHER);
                }
                None
            }
        };
        if self.eat("[") {
            let is_whole_array = self.eat("@]") || self.eat("*]");
            let eat_number = |this: &mut Self| {
                !this.take_while(|byte| byte.is_ascii_digit()).is_empty() && this.eat("]")
            };
            if !(is_whole_array || eat_number(self)) {
                return Err(Stop("a subscript is arithmetic, which can run programs"));
            }
        }
        if self.eat("}") {
            return Ok(());
        }
        if is_length {
            return Err(OTHER);
        }
        let colon = self.eat(":");
        match self.peek() {
            Some(b'=') => self.record_unknown_assignment(name.ok_or(OTHER)?),
            Some(b'-' | b'+' | b'?') => {}
            Some(b'#' | b'%' | b'/' | b'^' | b',') if !colon => {}
            _ => return Err(OTHER),
        }
        self.at += 1;
        self.brace_word()
    }

    /// Reads a word up to the `}`. Quotes are not accepted, because their meaning depends on the
    /// context.
    fn brace_word(&mut self) -> Result<(), Stop> {
        loop {
            match self.peek().ok_or(Stop("a `${` is not closed"))? {
                b'}' => {
                    self.at += 1;
                    return Ok(());
                }
                b'$' => self.dollar(Quotes::Double, &mut WordBuilder::default())?,
                b'`' => self.backquotes(&mut WordBuilder::default())?,
                b'\'' | b'"' | b'\\' | b'{' | b'<' | b'>' | b'\n' => {
                    return Err(Stop("quotes or special characters in `${…}`"));
                }
                _ => {
                    self.take();
                }
            }
        }
    }
}
