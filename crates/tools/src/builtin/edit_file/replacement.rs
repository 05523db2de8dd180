//! One replacement: where the old string stands, and what takes its place there, line ends included.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr_iter, memmem, memrchr};
use thiserror::Error;

use crate::files::mark::MAX_HASHED;

/// Places that are replaced at once: each is remembered until all are known.
const MAX_REPLACED: usize = 250_000;

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
pub(super) struct Found<'a> {
    /// All of it.
    pub(super) whole: Range<usize>,
    /// The part of it that is replaced: what differs.
    pub(super) part: Range<usize>,
    /// What takes the place of that part.
    pub(super) by: Cow<'a, str>,
}

/// More would come of it than is done at once. Nobody has been asked by then: it must not cost more memory than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum TooMuch {
    /// Such a file could not be edited again.
    #[error("the text would be more than {} MiB", MAX_HASHED / 1024 / 1024)]
    Text,
    /// Too many places.
    #[error("old_string stands in it more than {MAX_REPLACED} times: do it in parts, or by a command")]
    Places,
}

impl<'a> Replacement<'a> {
    /// Where the old string stands in `text`, and what takes its place: all places one after the other if all are
    /// meant; else also those that overlap, but no more than `most`.
    ///
    /// Where neither string has a carriage return, a line feed stands for the line end of the text, whichever that is:
    /// lines that stay keep theirs, and new ones get that of the lines they stand for or, without any, of those around.
    ///
    /// # Errors
    /// [`TooMuch`] if the text would become more than 64 MiB, or all are meant and are more than 250,000.
    pub(super) fn find(&self, text: &str, most: usize) -> Result<Vec<Found<'a>>, TooMuch> {
        // Only what differs is replaced, so that lines around it are left as they are.
        let before = common(self.old.chars().zip(self.new.chars()));
        let (same, old, new) = (&self.old[..before], &self.old[before..], &self.new[before..]);
        let after = common(old.chars().rev().zip(new.chars().rev()));
        let (old, new) = (&old[..old.len() - after], &new[..new.len() - after]);
        let has_return = |text: &str| memchr(b'\r', text.as_bytes()).is_some();
        if has_return(self.old) || has_return(self.new) || !has_return(text) {
            let found = |start: usize| {
                let part = start + same.len()..start + same.len() + old.len();
                Some(Found { whole: start..start + self.old.len(), part, by: new.into() })
            };
            return self.places(text, self.old, found, most);
        }
        // Its longest line is sought, and the others are looked for around that.
        let sought = self.old.split('\n').max_by_key(|line| line.len()).filter(|line| !line.is_empty()).unwrap_or("\n");
        let ahead = self.old.find(sought).unwrap_or_default();
        let found = |at: usize| {
            let at = if sought == "\n" { back_over(text, at + 1, sought)? } else { at };
            let start = back_over(text, at, &self.old[..ahead])?;
            let part = over(text, start, same)?;
            let part = part..over(text, part, old)?;
            let whole = start..over(text, start, self.old)?;
            Some(Found { whole, by: with_line_ends(text, &part, new), part })
        };
        self.places(text, sought, found, most)
    }

    /// Tries every place where `sought` stands.
    fn places(
        &self,
        text: &str,
        sought: &str,
        found: impl Fn(usize) -> Option<Found<'a>>,
        most: usize,
    ) -> Result<Vec<Found<'a>>, TooMuch> {
        let most = if self.all { usize::MAX } else { most };
        let finder = memmem::Finder::new(sought);
        let mut places: Vec<Found<'a>> = Vec::new();
        let (mut from, mut bytes) = (0, text.len());
        while places.len() < most
            && let Some(next) = text.as_bytes().get(from..).and_then(|rest| finder.find(rest))
        {
            let place = found(from + next);
            from += next + 1;
            let Some(place) = place else { continue };
            if self.all {
                if places.last().is_some_and(|last| place.whole.start < last.whole.end) {
                    continue;
                }
                from = from.max(place.whole.end);
            }
            let with = bytes + place.by.len() - place.part.len();
            if with as u64 > MAX_HASHED {
                return Err(TooMuch::Text);
            }
            if self.all {
                bytes = with;
            }
            if places.len() == MAX_REPLACED {
                return Err(TooMuch::Places);
            }
            places.push(place);
        }
        Ok(places)
    }
}

/// How many bytes are the same, from the first character on.
fn common(pairs: impl Iterator<Item = (char, char)>) -> usize {
    pairs.take_while(|(one, other)| one == other).map(|(character, _)| character.len_utf8()).sum()
}

/// Where `part` ends if it begins at `at`, whichever the line ends are.
fn over(text: &str, mut at: usize, part: &str) -> Option<usize> {
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

/// Where `part` begins if it ends at `at`, whichever the line ends are.
fn back_over(text: &str, mut at: usize, part: &str) -> Option<usize> {
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

/// `new`, which takes the place of this part of the text, with the line ends it has to have.
fn with_line_ends<'a>(text: &str, part: &Range<usize>, new: &'a str) -> Cow<'a, str> {
    if !new.contains('\n') {
        return new.into();
    }
    let bytes = text.as_bytes();
    let end_at = |at: usize| if bytes[..at].ends_with(b"\r") { "\r\n" } else { "\n" };
    let mut old = memchr_iter(b'\n', &bytes[part.clone()]).map(|at| end_at(part.start + at));
    let around = || {
        let next = memchr(b'\n', &bytes[part.end..]).map(|at| part.end + at);
        next.or_else(|| memrchr(b'\n', &bytes[..part.start])).map_or("\n", end_at)
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
    with.into()
}
