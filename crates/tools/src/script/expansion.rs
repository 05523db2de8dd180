//! Expansions: what a `$` begins.

use super::quote::Quotes;
use super::reader::{Reader, Stop};
use super::word::Building;

impl Reader<'_> {
    /// A `$` and what belongs to it.
    pub(super) fn dollar(&mut self, quotes: Quotes, word: &mut Building) -> Result<(), Stop> {
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
            (Some(b'\\'), Some(b'\n')) => Err(Stop("a line is continued in the middle of something")),
            (Some(b'\''), _) if quotes == Quotes::None => self.ansi_quotes(word),
            (Some(b'"'), _) if quotes == Quotes::None => {
                word.dynamic = true;
                self.unclear("`$\"` is replaced by a translation");
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
                self.unclear("`$` before a letter that some locales take for a name's");
                Ok(())
            }
            _ => {
                word.text.push('$');
                Ok(())
            }
        }
    }

    /// Commands up to the `)` that closes a substitution.
    pub(super) fn substitution(&mut self) -> Result<(), Stop> {
        self.nested(|this| {
            let here = std::mem::take(&mut this.here);
            this.held += here.len();
            this.inside += 1;
            this.commands()?;
            if !this.eat(")") {
                return Err(Stop("a substitution is not closed"));
            }
            if !this.here.is_empty() {
                return Err(Stop("a here-document begins in the middle of something"));
            }
            this.inside -= 1;
            this.held -= here.len();
            this.here = here;
            Ok(())
        })
    }

    /// What follows `$((`. Numbers are numbers; anything else can be the name of a variable whose value is
    /// evaluated in turn, with the substitutions in it.
    fn arithmetic(&mut self) -> Result<(), Stop> {
        let (mut plain, mut open) = (true, 0u32);
        let start = self.at;
        loop {
            let byte = self.peek().ok_or(Stop("arithmetic is not closed"))?;
            match byte {
                b')' if open == 0 => {
                    if !self.eat("))") {
                        return Err(Stop("it may be arithmetic or a substitution"));
                    }
                    break;
                }
                b'(' => open += 1,
                b')' => open -= 1,
                b'0'..=b'9' | b' ' | b'+' | b'-' | b'*' | b'/' | b'%' => {}
                _ => plain = false,
            }
            match byte {
                b'$' => self.dollar(Quotes::Double, &mut Building::default())?,
                b'`' => self.backquotes(&mut Building::default())?,
                b'\'' | b'"' | b'\\' | b'<' | b'>' => return Err(Stop("arithmetic can run programs")),
                b'\n' => return Err(Stop("arithmetic over several lines")),
                _ => {
                    self.take();
                }
            }
        }
        if !plain {
            self.unclear_at(start, "arithmetic can run programs");
        }
        Ok(())
    }

    /// What follows `${`, the forms that evaluate nothing: values, lengths, defaults, and parts by pattern.
    fn braces(&mut self) -> Result<(), Stop> {
        const OTHER: Stop = Stop("this form of `${…}` can run programs");
        let length = self.peek() == Some(b'#') && self.peek_at(1) != Some(b'}');
        self.at += usize::from(length);
        let name = match self.name() {
            Some(name) => Some(name),
            None => {
                let special = |byte: u8| byte.is_ascii_digit() || b"@*#?-$!".contains(&byte);
                let first = self.peek().filter(|&byte| special(byte)).ok_or(OTHER)?;
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
            let whole = self.eat("@]") || self.eat("*]");
            let number = |this: &mut Self| !this.take_while(|byte| byte.is_ascii_digit()).is_empty() && this.eat("]");
            if !(whole || number(self)) {
                return Err(Stop("a subscript is arithmetic, which can run programs"));
            }
        }
        if self.eat("}") {
            return Ok(());
        }
        if length {
            return Err(OTHER);
        }
        let colon = self.eat(":");
        match self.peek() {
            Some(b'=') => self.assigned(name.ok_or(OTHER)?),
            Some(b'-' | b'+' | b'?') => {}
            Some(b'#' | b'%' | b'/' | b'^' | b',') if !colon => {}
            _ => return Err(OTHER),
        }
        self.at += 1;
        self.brace_word()
    }

    /// A word up to the `}`. What quotes mean in it depends on what is around it: none are taken.
    fn brace_word(&mut self) -> Result<(), Stop> {
        loop {
            match self.peek().ok_or(Stop("a `${` is not closed"))? {
                b'}' => {
                    self.at += 1;
                    return Ok(());
                }
                b'$' => self.dollar(Quotes::Double, &mut Building::default())?,
                b'`' => self.backquotes(&mut Building::default())?,
                b'\'' | b'"' | b'\\' | b'{' | b'<' | b'>' | b'\n' => {
                    return Err(Stop("quotes or the like in `${…}`"));
                }
                _ => {
                    self.take();
                }
            }
        }
    }
}
