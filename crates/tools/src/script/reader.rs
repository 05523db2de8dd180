//! The reader of a script: its position, its findings, and the text between words.

use super::here::Heredoc;
use super::{MAX_NESTING, ScriptEffect};

/// Reads one script from its beginning to its end.
pub(super) struct Reader<'a> {
    pub(super) source: &'a str,
    /// The position in the script, in bytes.
    pub(super) at: usize,
    /// The effects found so far.
    pub(super) found: Vec<ScriptEffect>,
    /// Here-documents whose text begins on the next line.
    pub(super) pending_heredocs: Vec<Heredoc>,
    /// How many here-documents wait outside the substitution that is being read.
    pub(super) outer_heredocs: usize,
    /// How many substitutions contain the position.
    pub(super) substitution_depth: u32,
    /// How many constructs contain the position, including those around the script.
    depth: u32,
}

/// The reason why reading can't continue.
#[derive(Debug)]
pub(super) struct Stop(pub(super) &'static str);

impl<'a> Reader<'a> {
    pub(super) fn new(source: &'a str, depth: u32) -> Self {
        Self {
            source,
            at: 0,
            found: Vec::new(),
            pending_heredocs: Vec::new(),
            outer_heredocs: 0,
            substitution_depth: 0,
            depth,
        }
    }

    /// Reads the whole script. Effects that were found before an error are kept: bash runs line by
    /// line.
    pub(super) fn whole(mut self) -> Vec<ScriptEffect> {
        if let Err(Stop(why)) = self.script() {
            self.unclear(why);
        }
        self.found
    }

    /// Reads a nested script that needs its own reader: unescaped text, or text with other rules.
    pub(super) fn inner(
        &mut self,
        text: &str,
        read: fn(&mut Reader<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        self.nested(|this| {
            let mut inner = Reader { substitution_depth: 1, ..Reader::new(text, this.depth) };
            let result = read(&mut inner);
            this.found.append(&mut inner.found);
            result
        })
    }

    /// Reads a construct that may contain itself.
    pub(super) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        if self.depth >= MAX_NESTING {
            return Err(Stop("the script has more than 50 nested levels"));
        }
        self.depth += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    /// Records that the text at the position is unclear; reading continues.
    pub(super) fn unclear(&mut self, why: &'static str) {
        self.unclear_at(self.at, why);
    }

    /// Records that the text at `at` is unclear. If the rest of its line is blank, records the last
    /// line before `at` that is not blank.
    pub(super) fn unclear_at(&mut self, at: usize, why: &'static str) {
        let (before, rest) = self.source.split_at(at);
        let text = match excerpt(rest) {
            blank if blank.trim().is_empty() => {
                excerpt(before.trim_end().lines().next_back().unwrap_or_default())
            }
            text => text,
        };
        self.found.push(ScriptEffect::Unclear { text: text.to_owned(), why });
    }

    /// The error where a word is missing: `why`, or a fixed text if the script ends here.
    pub(super) fn expected(&self, why: &'static str) -> Stop {
        let is_over = self.rest().trim().is_empty();
        Stop(if is_over { "the command is incomplete" } else { why })
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, offset: usize) -> Option<u8> {
        self.source.as_bytes().get(self.at + offset).copied()
    }

    /// The byte before the position.
    pub(super) fn before(&self) -> Option<u8> {
        self.at.checked_sub(1).map(|at| self.source.as_bytes()[at])
    }

    /// Skips `text` if it is next. Returns whether it was.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    /// Reads the next character.
    pub(super) fn take(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Reads ASCII bytes while `accepts` is true for them.
    pub(super) fn take_while(&mut self, accepts: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let taken = rest.bytes().take_while(|&byte| byte.is_ascii() && accepts(byte)).count();
        self.at += taken;
        &rest[..taken]
    }

    /// Reads the name of a variable.
    pub(super) fn name(&mut self) -> Option<&'a str> {
        let begins = self.peek().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        begins.then(|| self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
    }

    /// Skips blanks, and line breaks after a backslash.
    ///
    /// Bash removes such line breaks before it reads anything else, so that `&\⏎&` is one operator.
    /// Here they count as blanks, which is the same only where a blank is allowed.
    pub(super) fn blanks(&mut self) {
        loop {
            match (self.peek(), self.peek_at(1)) {
                (Some(b' ' | b'\t'), _) => self.at += 1,
                (Some(b'\\'), Some(b'\n')) => {
                    let read = &self.source[..self.at];
                    if !(read.is_empty()
                        || read.ends_with([' ', '\t', '\n'])
                        || read.ends_with("&&")
                        || read.ends_with("||"))
                    {
                        self.unclear("a line continuation inside a word or an operator");
                    }
                    self.at += 2;
                }
                _ => return,
            }
        }
    }

    /// Skips blanks and a comment.
    pub(super) fn gap(&mut self) {
        self.blanks();
        if self.peek() == Some(b'#') {
            if self.substitution_depth > 0 {
                self.unclear(
                    "a comment in a substitution, which versions of bash parse differently",
                );
            }
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    /// Skips blanks, comments, line breaks and the texts of here-documents that begin there.
    pub(super) fn lines(&mut self) -> Result<(), Stop> {
        loop {
            self.gap();
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.check_line_break()?;
            self.at += 1;
            for heredoc in std::mem::take(&mut self.pending_heredocs) {
                self.heredoc_text(&heredoc)?;
            }
        }
    }

    /// Checks a line break inside a construct: versions of bash differ if a here-document waits for
    /// one.
    pub(super) fn check_line_break(&self) -> Result<(), Stop> {
        if self.outer_heredocs > 0 {
            Err(Stop("a here-document begins inside another construct"))
        } else {
            Ok(())
        }
    }

    /// Whether an unquoted word ends before the byte at this distance. A process substitution
    /// continues the word.
    pub(super) fn word_ends_at(&self, distance: usize) -> bool {
        match self.peek_at(distance) {
            Some(b'<' | b'>') => self.peek_at(distance + 1) != Some(b'('),
            next => next.is_none_or(is_meta),
        }
    }
}

/// Whether the byte ends a word, unless it is quoted or begins a process substitution.
pub(super) fn is_meta(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'|' | b'&' | b';' | b'(' | b')' | b'<' | b'>')
}

/// The first line of a text, at most 80 bytes.
pub(crate) fn excerpt(text: &str) -> &str {
    // Two more bytes have room for a line break after 80.
    let start = &text[..text.floor_char_boundary(82)];
    let line = start.lines().next().unwrap_or_default();
    &line[..line.floor_char_boundary(80)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_the_start_of_the_first_line() {
        let (a80, a81) = ("a".repeat(80), "a".repeat(81));
        for (text, expected) in [
            ("", ""),
            ("a\nb", "a"),
            ("\r\na", ""),
            (&format!("{a80}\r\nb"), &*a80),
            (&a81, &a80),
            (&format!("{}\u{e4}", &a80[1..]), &a80[1..]),
        ] {
            assert_eq!(excerpt(text), expected);
        }
    }

    #[test]
    fn excerpts_of_one_long_line_take_linear_time() {
        let a80 = "a".repeat(80);
        let line = "a".repeat(32 << 20);
        for _ in 0..100_000 {
            assert_eq!(excerpt(&line), a80);
        }
    }
}
