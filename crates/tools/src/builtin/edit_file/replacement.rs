//! One replacement: where the old string occurs, and the new string with the line ends of the text.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr_iter, memmem, memrchr};
use thiserror::Error;

use crate::files::mark::MAX_HASHED;

/// The most occurrences replaced at once. All of them are collected first, so this bounds memory.
const MAX_REPLACED: usize = 250_000;

/// One replacement as the model requested it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Replacement<'a> {
    pub(super) old: &'a str,
    pub(super) new: &'a str,
    /// Replace every occurrence; otherwise there must be exactly one.
    pub(super) all: bool,
}

/// An occurrence of an old string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found<'a> {
    /// The range of the whole old string.
    pub(super) whole: Range<usize>,
    /// The range that differs from the new string and is replaced.
    pub(super) part: Range<usize>,
    /// The replacement of `part`.
    pub(super) replacement: Cow<'a, str>,
}

/// The limits of an edit. They bound the memory that is used before the user has approved the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum EditLimit {
    /// A result of that size could not be edited again.
    #[error("the result would be larger than {} MiB", MAX_HASHED / 1024 / 1024)]
    ResultSize,
    #[error("old_string occurs more than {MAX_REPLACED} times: split the edit, or use a command")]
    Occurrences,
}

impl<'a> Replacement<'a> {
    /// Finds the old string in `text`, with the replacement of each occurrence. With `all`, the
    /// occurrences do not overlap. Otherwise overlapping ones count, and at most `max` are
    /// returned.
    ///
    /// If neither string has a carriage return, a line feed in them matches any line end of the
    /// text. Unchanged lines keep their line ends. New lines get those of the lines they replace,
    /// or else of the lines around them.
    ///
    /// # Errors
    /// [`EditLimit`] if the text would grow beyond 64 MiB, or if `all` is set and there are more
    /// than 250,000 occurrences.
    pub(super) fn find(&self, text: &str, max: usize) -> Result<Vec<Found<'a>>, EditLimit> {
        // Replace only the differing part, so that the lines around it are left as they are.
        let prefix_len = common_len(self.old.chars().zip(self.new.chars()));
        let (prefix, old) = self.old.split_at(prefix_len);
        let new = &self.new[prefix_len..];
        let suffix_len = common_len(old.chars().rev().zip(new.chars().rev()));
        let old = &old[..old.len() - suffix_len];
        let new = &new[..new.len() - suffix_len];
        let has = |text: &str, byte| memchr(byte, text.as_bytes()).is_some();
        let has_either = |byte| has(self.old, byte) || has(self.new, byte);
        if has_either(b'\r') || !has_either(b'\n') || !has(text, b'\r') {
            let occurrence_at = |start: usize| {
                let part = start + prefix.len()..start + prefix.len() + old.len();
                Found { whole: start..start + self.old.len(), part, replacement: new.into() }
            };
            return self.collect(text, text.len(), occurrence_at, max);
        }
        let line_feeds = text.replace("\r\n", "\n");
        let mut ends = LineEnds { text, nearby: None };
        let crlf = memmem::Finder::new("\r\n");
        let mut start = Position::default();
        let occurrence_at = |at: usize| {
            start = start.advanced_to(at, text, &crlf);
            let part_start = start.advanced_to(at + prefix.len(), text, &crlf);
            let part_end = part_start.advanced_to(part_start.searched + old.len(), text, &crlf);
            let end = part_end.advanced_to(at + self.old.len(), text, &crlf);
            let part = part_start.text..part_end.text;
            let replacement = ends.fitting(&part, new);
            Found { whole: start.text..end.text, part, replacement }
        };
        self.collect(&line_feeds, text.len(), occurrence_at, max)
    }

    /// Collects the occurrences at the positions where the old string is found in `searched`, for a
    /// text of `text_len` bytes.
    fn collect(
        &self,
        searched: &str,
        text_len: usize,
        mut occurrence_at: impl FnMut(usize) -> Found<'a>,
        max: usize,
    ) -> Result<Vec<Found<'a>>, EditLimit> {
        let max = if self.all { usize::MAX } else { max };
        let finder = memmem::Finder::new(self.old);
        let mut occurrences: Vec<Found<'a>> = Vec::new();
        let mut from = 0;
        let mut new_len = text_len;
        while occurrences.len() < max
            && let Some(next) = searched.as_bytes().get(from..).and_then(|rest| finder.find(rest))
        {
            let occurrence = occurrence_at(from + next);
            from += next + if self.all { self.old.len() } else { 1 };
            let replaced_len = new_len + occurrence.replacement.len() - occurrence.part.len();
            if replaced_len as u64 > MAX_HASHED {
                return Err(EditLimit::ResultSize);
            }
            if self.all {
                new_len = replaced_len;
            }
            if occurrences.len() == MAX_REPLACED {
                return Err(EditLimit::Occurrences);
            }
            occurrences.push(occurrence);
        }
        Ok(occurrences)
    }
}

/// A position in a text, and in its copy with a line feed for each CRLF.
#[derive(Debug, Clone, Copy, Default)]
struct Position {
    text: usize,
    searched: usize,
}

impl Position {
    /// The position at `searched` in the copy, which is not before this one. A position at a line
    /// end is that of its carriage return, if it has one.
    fn advanced_to(mut self, searched: usize, text: &str, crlf: &memmem::Finder<'_>) -> Self {
        while self.searched < searched {
            let missing = searched - self.searched;
            let rest = &text.as_bytes()[self.text..];
            // A CRLF counts if the position is after it.
            let passed = crlf.find(&rest[..rest.len().min(missing + 1)]);
            self.text += passed.map_or(missing, |at| at + 2);
            self.searched += passed.map_or(missing, |at| at + 1);
        }
        self
    }
}

/// The line ends of a text, for parts in ascending order.
struct LineEnds<'t> {
    text: &'t str,
    /// The last result of [`nearby`](Self::nearby), after the position up to which it holds for the
    /// end of a part.
    nearby: Option<(usize, &'static str)>,
}

impl LineEnds<'_> {
    /// Returns `new` with line ends that fit the part of the text that it replaces.
    fn fitting<'a>(&mut self, part: &Range<usize>, new: &'a str) -> Cow<'a, str> {
        if !new.contains('\n') {
            return new.into();
        }
        let text = self.text;
        let line_feeds = memchr_iter(b'\n', &text.as_bytes()[part.clone()]);
        let mut old_ends = line_feeds.map(|at| end_at(text, part.start + at));
        let mut last = None;
        let mut result = String::with_capacity(new.len() + 16);
        for (number, line) in new.split('\n').enumerate() {
            if number > 0 {
                let end = old_ends.next().or(last).unwrap_or_else(|| self.nearby(part));
                last = Some(end);
                result.push_str(end);
            }
            result.push_str(line);
        }
        result.into()
    }

    /// The line end after a part without line ends, or else the last one before it.
    fn nearby(&mut self, part: &Range<usize>) -> &'static str {
        if let Some((until, end)) = self.nearby
            && part.end <= until
        {
            return end;
        }
        let bytes = self.text.as_bytes();
        let next = memchr(b'\n', &bytes[part.end..]).map(|at| part.end + at);
        let found = next.or_else(|| memrchr(b'\n', &bytes[..part.start]));
        let end = found.map_or("\n", |at| end_at(self.text, at));
        self.nearby = Some((next.unwrap_or(bytes.len()), end));
        end
    }
}

/// The line end whose line feed is at `at`.
fn end_at(text: &str, at: usize) -> &'static str {
    if text.as_bytes()[..at].ends_with(b"\r") { "\r\n" } else { "\n" }
}

/// The length in bytes of the characters that are equal before the first difference.
fn common_len(pairs: impl Iterator<Item = (char, char)>) -> usize {
    pairs.take_while(|(one, other)| one == other).map(|(character, _)| character.len_utf8()).sum()
}
