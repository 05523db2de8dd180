//! One replacement: where the old string stands, and what takes its place there, line ends included.

use std::ops::Range;

use memchr::{memchr_iter, memmem};

/// One replacement, as the model wants it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Replacement<'a> {
    pub(super) old: &'a str,
    pub(super) new: &'a str,
    /// Everywhere, and not just in the one place where it stands.
    pub(super) all: bool,
}

/// A place where an old string stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Where it begins.
    pub(super) start: usize,
    /// The part of it that is replaced: what differs.
    pub(super) part: Range<usize>,
    /// What takes the place of that part.
    pub(super) by: String,
}

impl Replacement<'_> {
    /// Where the old string stands in `text`, and what takes its place: all places one after the other if all are
    /// meant; else also those that overlap, but no more than `most`.
    ///
    /// Where neither string has a carriage return, a line feed stands for the line end of the text, whichever that is:
    /// lines that stay keep theirs, and new ones get that of the lines they stand for or, without any, of those around.
    pub(super) fn find(&self, text: &str, most: usize) -> Vec<Found> {
        // Only what differs is replaced, so that lines around it are left as they are.
        let before = common(self.old.chars().zip(self.new.chars()));
        let (old, new) = (&self.old[before..], &self.new[before..]);
        let after = common(old.chars().rev().zip(new.chars().rev()));
        let (old, new) = (&old[..old.len() - after], &new[..new.len() - after]);
        let part = |start: usize| start + before..start + before + old.len();
        let exact = self.old.contains('\r') || self.new.contains('\r');
        if exact || !text.contains("\r\n") {
            let found = |start| Found { start, part: part(start), by: new.to_owned() };
            return self.starts(text, most).into_iter().map(found).collect();
        }
        let lines = Lines::of(text);
        let found = |start| Found {
            start: lines.place(start),
            part: lines.place(part(start).start)..lines.place(part(start).end),
            by: lines.with_line_ends(new, &part(start)),
        };
        self.starts(&lines.text, most).into_iter().map(found).collect()
    }

    /// Where the old string begins in exactly this text.
    fn starts(&self, text: &str, most: usize) -> Vec<usize> {
        let (step, most) = if self.all { (self.old.len(), usize::MAX) } else { (1, most) };
        let finder = memmem::Finder::new(self.old);
        let mut found = Vec::new();
        let mut from = 0;
        while found.len() < most
            && let Some(at) = text.as_bytes().get(from..).and_then(|rest| finder.find(rest))
        {
            found.push(from + at);
            from += at + step;
        }
        found
    }
}

/// How many bytes are the same, from the first character on.
fn common(pairs: impl Iterator<Item = (char, char)>) -> usize {
    pairs.take_while(|(one, other)| one == other).map(|(character, _)| character.len_utf8()).sum()
}

/// A text with plain line feeds, that knows which of them were carriage return and line feed.
struct Lines {
    text: String,
    /// Where, in the plain text, these line feeds are.
    long: Vec<usize>,
}

impl Lines {
    fn of(text: &str) -> Self {
        let mut plain = String::with_capacity(text.len());
        let mut long = Vec::new();
        let mut rest = 0;
        for at in memchr_iter(b'\n', text.as_bytes()) {
            if at > 0 && text.as_bytes()[at - 1] == b'\r' {
                plain.push_str(&text[rest..at - 1]);
                long.push(plain.len());
                rest = at;
            }
        }
        plain.push_str(&text[rest..]);
        Self { text: plain, long }
    }

    /// The same place in the text as it was.
    fn place(&self, plain: usize) -> usize {
        plain + self.long.partition_point(|long| *long < plain)
    }

    /// `new`, which takes the place of this part of the plain text, with the line ends it has to have.
    fn with_line_ends(&self, new: &str, part: &Range<usize>) -> String {
        if !new.contains('\n') {
            return new.to_owned();
        }
        let bytes = self.text.as_bytes();
        let end_of = |at: usize| if self.long.binary_search(&at).is_ok() { "\r\n" } else { "\n" };
        let mut old = memchr_iter(b'\n', &bytes[part.clone()]).map(|at| end_of(part.start + at));
        let around = || {
            let next = memchr::memchr(b'\n', &bytes[part.end..]).map(|at| part.end + at);
            next.or_else(|| memchr::memrchr(b'\n', &bytes[..part.start])).map_or("\n", end_of)
        };
        let mut last = None;
        let mut with = String::with_capacity(new.len() + 16);
        for (number, line) in new.split('\n').enumerate() {
            if number > 0 {
                let end = old.next().or(last).unwrap_or_else(around);
                last = Some(end);
                with.push_str(end);
            }
            with.push_str(line);
        }
        with
    }
}
