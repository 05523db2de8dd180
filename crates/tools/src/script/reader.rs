//! The reader: where it stands in the script, what it has found, and what lies between words.

use super::here::Here;
use super::{Deed, MAX_NESTING};

/// Reads one script from its beginning to its end.
pub(super) struct Reader<'a> {
    /// The script.
    pub(super) source: &'a str,
    /// How far it is read, in bytes.
    pub(super) at: usize,
    /// What it has found so far.
    pub(super) found: Vec<Deed>,
    /// Here-documents whose text begins on the next line.
    pub(super) here: Vec<Here>,
    /// How many here-documents wait around the substitution that is being read.
    pub(super) held: usize,
    /// How many substitutions it is in.
    pub(super) inside: u32,
    depth: u32,
}

/// It can't be read further, for this reason.
#[derive(Debug)]
pub(super) struct Stop(pub(super) &'static str);

impl<'a> Reader<'a> {
    pub(super) fn new(source: &'a str, depth: u32) -> Self {
        Self { source, at: 0, found: Vec::new(), here: Vec::new(), held: 0, inside: 0, depth }
    }

    /// Reads all of it. What was found before it could not be read further is found: bash runs line by line.
    pub(super) fn whole(mut self) -> Vec<Deed> {
        if let Err(Stop(why)) = self.script() {
            self.unclear(why);
        }
        self.found
    }

    /// Reads a script that stands in this one but not as it is written: unescaped, or of other rules.
    pub(super) fn inner(&mut self, text: &str, read: fn(&mut Reader<'_>) -> Result<(), Stop>) -> Result<(), Stop> {
        self.nested(|this| {
            let mut inner = Reader { inside: 1, ..Reader::new(text, this.depth) };
            let read = read(&mut inner);
            this.found.append(&mut inner.found);
            read
        })
    }

    /// Reads something that may stand in itself.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Stop>) -> Result<T, Stop> {
        if self.depth >= MAX_NESTING {
            return Err(Stop("it is nested deeper than 50, which is more than is read"));
        }
        self.depth += 1;
        let read = read(self)?;
        self.depth -= 1;
        Ok(read)
    }

    /// Notes that what stands here can't be known; reading goes on.
    pub(super) fn unclear(&mut self, why: &'static str) {
        self.unclear_at(self.at, why);
    }

    /// Notes that what stands at `at` can't be known; at the end of a line, what stands before it.
    pub(super) fn unclear_at(&mut self, at: usize, why: &'static str) {
        let (before, rest) = self.source.split_at(at);
        let text = match excerpt(rest) {
            blank if blank.trim().is_empty() => excerpt(before.trim_end().lines().next_back().unwrap_or_default()),
            text => text,
        };
        self.found.push(Deed::Unclear { text: text.to_owned(), why });
    }

    /// Why it can't be read further where something else had to follow.
    pub(super) fn expected(&self, why: &'static str) -> Stop {
        let is_over = self.rest().trim().is_empty();
        Stop(if is_over { "it is not complete: bash would refuse it" } else { why })
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

    /// The byte before the next one.
    pub(super) fn before(&self) -> Option<u8> {
        self.at.checked_sub(1).map(|at| self.source.as_bytes()[at])
    }

    /// Goes past `text` if it is next.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let next = self.rest().starts_with(text);
        if next {
            self.at += text.len();
        }
        next
    }

    /// Goes past the next character.
    pub(super) fn take(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Goes past what satisfies `of`, which is about ASCII.
    pub(super) fn take_while(&mut self, of: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let taken = rest.bytes().take_while(|&byte| byte.is_ascii() && of(byte)).count();
        self.at += taken;
        &rest[..taken]
    }

    /// Goes past a name of a variable.
    pub(super) fn name(&mut self) -> Option<&'a str> {
        let begins = self.peek().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        begins.then(|| self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
    }

    /// Goes past blanks, and line breaks that a backslash takes away.
    ///
    /// Bash takes those away before it looks at anything, so that `&\⏎&` is one operator. Here they count as
    /// blanks, which is the same only where a blank could stand.
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
                        self.unclear("a line is continued in the middle of something");
                    }
                    self.at += 2;
                }
                _ => return,
            }
        }
    }

    /// Goes past blanks and a comment.
    pub(super) fn gap(&mut self) {
        self.blanks();
        if self.peek() == Some(b'#') {
            if self.inside > 0 {
                self.unclear("there is a comment in a substitution, which not every bash reads the same way");
            }
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    /// Goes past blanks, comments, line breaks and the here-documents that begin there.
    pub(super) fn lines(&mut self) -> Result<(), Stop> {
        loop {
            self.gap();
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.line_break_within()?;
            self.at += 1;
            for here in std::mem::take(&mut self.here) {
                self.here_document(&here)?;
            }
        }
    }

    /// A line break in the middle of something: where a here-document waits for one, versions of bash differ.
    pub(super) fn line_break_within(&self) -> Result<(), Stop> {
        if self.held > 0 { Err(Stop("a here-document begins in the middle of something")) } else { Ok(()) }
    }
}

/// Ends a word, unless it is quoted.
pub(super) fn is_meta(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'|' | b'&' | b';' | b'(' | b')' | b'<' | b'>')
}

/// The beginning of a text: its first line, at most 80 bytes.
pub(crate) fn excerpt(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    &line[..line.floor_char_boundary(80)]
}
