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
        let has_carriage_return = |text: &str| memchr(b'\r', text.as_bytes()).is_some();
        if has_carriage_return(self.old)
            || has_carriage_return(self.new)
            || !has_carriage_return(text)
        {
            let found = |start: usize| {
                let part = start + prefix.len()..start + prefix.len() + old.len();
                Some(Found { whole: start..start + self.old.len(), part, replacement: new.into() })
            };
            return self.collect(text, self.old, found, max);
        }
        // Search for the longest line, then compare the lines around each hit.
        let sought = self
            .old
            .split('\n')
            .max_by_key(|line| line.len())
            .filter(|line| !line.is_empty())
            .unwrap_or("\n");
        let sought_start = self.old.find(sought).unwrap_or_default();
        let found = |at: usize| {
            // A line end begins at its carriage return, if it has one.
            let at = if sought == "\n" { match_start(text, at + 1, sought)? } else { at };
            let start = match_start(text, at, &self.old[..sought_start])?;
            let part = match_end(text, start, prefix)?;
            let part = part..match_end(text, part, old)?;
            let whole = start..match_end(text, start, self.old)?;
            Some(Found { whole, replacement: with_line_ends(text, &part, new), part })
        };
        self.collect(text, sought, found, max)
    }

    /// Collects the occurrences around the positions where `sought` is found.
    fn collect(
        &self,
        text: &str,
        sought: &str,
        found: impl Fn(usize) -> Option<Found<'a>>,
        max: usize,
    ) -> Result<Vec<Found<'a>>, EditLimit> {
        let max = if self.all { usize::MAX } else { max };
        let finder = memmem::Finder::new(sought);
        let mut occurrences: Vec<Found<'a>> = Vec::new();
        let mut from = 0;
        let mut new_len = text.len();
        while occurrences.len() < max
            && let Some(next) = text.as_bytes().get(from..).and_then(|rest| finder.find(rest))
        {
            let occurrence = found(from + next);
            from += next + 1;
            let Some(occurrence) = occurrence else { continue };
            if self.all {
                // The string around this hit may begin inside the last occurrence.
                if occurrences.last().is_some_and(|last| occurrence.whole.start < last.whole.end) {
                    continue;
                }
                from = from.max(occurrence.whole.end);
            }
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

/// The length in bytes of the characters that are equal before the first difference.
fn common_len(pairs: impl Iterator<Item = (char, char)>) -> usize {
    pairs.take_while(|(one, other)| one == other).map(|(character, _)| character.len_utf8()).sum()
}

/// The end of `part` in `text`, if `part` begins at `at` there, with any line ends.
fn match_end(text: &str, mut at: usize, part: &str) -> Option<usize> {
    for (number, line) in part.split('\n').enumerate() {
        let rest = text.as_bytes().get(at..)?;
        let end = match rest {
            _ if number == 0 => 0,
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => 2,
            _ => return None,
        };
        at = rest[end..].starts_with(line.as_bytes()).then_some(at + end + line.len())?;
    }
    Some(at)
}

/// The start of `part` in `text`, if `part` ends at `at` there, with any line ends.
fn match_start(text: &str, mut at: usize, part: &str) -> Option<usize> {
    for (number, line) in part.rsplit('\n').enumerate() {
        let rest = text.as_bytes().get(..at)?;
        let end = match rest {
            _ if number == 0 => 0,
            [.., b'\r', b'\n'] => 2,
            [.., b'\n'] => 1,
            _ => return None,
        };
        at = rest[..at - end].ends_with(line.as_bytes()).then(|| at - end - line.len())?;
    }
    Some(at)
}

/// Returns `new` with line ends that fit the part of the text that it replaces.
fn with_line_ends<'a>(text: &str, part: &Range<usize>, new: &'a str) -> Cow<'a, str> {
    if !new.contains('\n') {
        return new.into();
    }
    let bytes = text.as_bytes();
    let end_at = |at: usize| if bytes[..at].ends_with(b"\r") { "\r\n" } else { "\n" };
    let mut old = memchr_iter(b'\n', &bytes[part.clone()]).map(|at| end_at(part.start + at));
    let nearby = || {
        let next = memchr(b'\n', &bytes[part.end..]).map(|at| part.end + at);
        next.or_else(|| memrchr(b'\n', &bytes[..part.start])).map_or("\n", end_at)
    };
    let mut last = None;
    let mut result = String::with_capacity(new.len() + 16);
    for (number, line) in new.split('\n').enumerate() {
        if number > 0 {
            let end = old.next().or(last).unwrap_or_else(nearby);
            last = Some(end);
            result.push_str(end);
        }
        result.push_str(line);
    }
    result.into()
}
