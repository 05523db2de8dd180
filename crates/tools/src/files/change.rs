//! A change of a text: the replaced parts, and their display as a diff.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memrchr};

use crate::files::mark::hash_of;
use crate::shown::{self, CONTEXT, Hunk, TooMuch};

/// Up to this size of both texts together, in bytes, a diff compares the whole texts.
const SMALL: usize = 512 * 1024;

/// An old text, the new text, and where they differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    old: String,
    /// `None` until the text changes.
    new: Option<String>,
    /// The replaced parts in order. The texts are equal between and around them.
    spans: Vec<Span>,
}

/// A replaced part, as a range of each text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    old: Range<usize>,
    new: Range<usize>,
}

impl Change {
    /// A change that leaves the text as it is.
    pub(crate) fn none(text: String) -> Self {
        Self { old: text, new: None, spans: Vec::new() }
    }

    /// Whether the old and the new text are equal.
    pub(crate) fn is_none(&self) -> bool {
        self.spans.iter().all(|span| self.old[span.old.clone()] == self.after()[span.new.clone()])
    }

    pub(crate) fn before(&self) -> &str {
        &self.old
    }

    pub(crate) fn after(&self) -> &str {
        self.new.as_deref().unwrap_or(&self.old)
    }

    /// The change from one whole text to another. Their common start and end do not count as
    /// changed.
    pub(crate) fn between(old: String, new: String) -> Self {
        let prefix = common_len(old.bytes().zip(new.bytes()));
        let prefix = old.floor_char_boundary(prefix).min(new.floor_char_boundary(prefix));
        let suffix = common_len(old[prefix..].bytes().rev().zip(new[prefix..].bytes().rev()));
        let old_end = old.ceil_char_boundary(old.len() - suffix);
        let new_end = new.ceil_char_boundary(new.len() - suffix);
        let suffix = (old.len() - old_end).min(new.len() - new_end);
        let span = Span { old: prefix..old.len() - suffix, new: prefix..new.len() - suffix };
        let spans =
            if span.old.is_empty() && span.new.is_empty() { Vec::new() } else { vec![span] };
        Self { old, new: Some(new), spans }
    }

    /// Replaces parts of the new text. The parts are in order and do not overlap.
    pub(crate) fn replace(&mut self, parts: &[(Range<usize>, impl AsRef<str>)]) {
        let before = self.after();
        let removed: usize = parts.iter().map(|(part, _)| part.len()).sum();
        let added: usize = parts.iter().map(|(_, new)| new.as_ref().len()).sum();
        let mut text = String::with_capacity(before.len() - removed + added);
        let mut at = 0;
        let mut replaced = Vec::with_capacity(parts.len());
        for (part, new) in parts {
            let new = new.as_ref();
            text.push_str(&before[at..part.start]);
            replaced.push(Span { old: part.clone(), new: text.len()..text.len() + new.len() });
            text.push_str(new);
            at = part.end;
        }
        text.push_str(&before[at..]);
        self.spans = compose(&self.spans, &replaced);
        self.new = Some(text);
    }

    /// The change as a unified diff.
    ///
    /// # Errors
    /// [`TooMuch`] if the diff is longer than 4 MiB.
    pub(crate) fn shown(&self, path: &str) -> Result<String, TooMuch> {
        let new = self.after();
        if self.old.len() + new.len() <= SMALL {
            return shown::diff(path, Some(&self.old), new);
        }
        let (mut old_line, mut new_line) = (1, 1);
        let (mut old_at, mut new_at) = (0, 0);
        let hunk = |part: Span| {
            old_line += line_feeds(&self.old[old_at..part.old.start]);
            new_line += line_feeds(&new[new_at..part.new.start]);
            (old_at, new_at) = (part.old.start, part.new.start);
            Hunk { old_line, new_line, old: &self.old[part.old], new: &new[part.new] }
        };
        let hunks: Vec<_> = self.line_spans(CONTEXT).into_iter().map(hunk).collect();
        shown::diff_of(path, &hunks)
    }

    /// A hash of the changed lines and their replacements, independent of their position in the
    /// text.
    pub(crate) fn fingerprint(&self) -> String {
        let mut all = Vec::new();
        for part in self.line_spans(0) {
            for text in [&self.old[part.old], &self.after()[part.new]] {
                all.extend((text.len() as u64).to_le_bytes());
                all.extend(text.as_bytes());
            }
        }
        hash_of(&all)
    }

    /// The first and the last changed line of the new text, counted from 1.
    pub(crate) fn new_lines(&self) -> Option<(usize, usize)> {
        let (first, last) = (self.spans.first()?, self.spans.last()?);
        let from = 1 + line_feeds(&self.after()[..first.new.start]);
        let changed = self.after()[first.new.start..last.new.end].trim_end_matches('\n');
        Some((from, from + line_feeds(changed)))
    }

    /// The changed parts extended to whole lines, with `context` lines around them. Parts that
    /// would overlap are merged.
    fn line_spans(&self, context: usize) -> Vec<Span> {
        let mut parts: Vec<Span> = Vec::new();
        let mut last_end = 0;
        for span in &self.spans {
            let between = &self.old[last_end..span.old.start];
            match parts.last_mut() {
                Some(last) if memchr_iter(b'\n', between.as_bytes()).nth(2 * context).is_none() => {
                    last.old.end = span.old.end;
                    last.new.end = span.new.end;
                }
                _ => parts.push(span.clone()),
            }
            last_end = span.old.end;
        }
        for part in &mut parts {
            // The lines around a change are the same in both texts.
            let before =
                part.old.start - start_of_lines_before(&self.old[..part.old.start], context);
            let ends_with_line = ends_with_line(&self.old[..part.old.end])
                && ends_with_line(&self.after()[..part.new.end]);
            let rest_of_line = usize::from(!ends_with_line);
            let after = end_of_lines(&self.old[part.old.end..], rest_of_line + context);
            *part = Span {
                old: part.old.start - before..part.old.end + after,
                new: part.new.start - before..part.new.end + after,
            };
        }
        parts
    }
}

/// The number of equal bytes before the first difference.
fn common_len(pairs: impl Iterator<Item = (u8, u8)>) -> usize {
    pairs.take_while(|(one, other)| one == other).count()
}

/// The number of line feeds.
fn line_feeds(text: &str) -> usize {
    memchr_iter(b'\n', text.as_bytes()).count()
}

/// The start of the line that is `count` lines before the last.
fn start_of_lines_before(text: &str, count: usize) -> usize {
    let mut start = text.len();
    for line in 0..=count {
        // Skip the line feed that ends the line before.
        let before = if line == 0 { start } else { start.saturating_sub(1) };
        start = memrchr(b'\n', &text.as_bytes()[..before]).map_or(0, |at| at + 1);
    }
    start
}

/// Whether a new line begins after the text.
fn ends_with_line(text: &str) -> bool {
    text.is_empty() || text.ends_with('\n')
}

/// The end of the first `count` lines.
fn end_of_lines(text: &str, count: usize) -> usize {
    let mut end = 0;
    for _ in 0..count {
        end = memchr(b'\n', &text.as_bytes()[end..]).map_or(text.len(), |at| end + at + 1);
    }
    end
}

/// Composes two consecutive changes into one.
fn compose(first: &[Span], second: &[Span]) -> Vec<Span> {
    let mut composed: Vec<Span> = Vec::with_capacity(first.len() + second.len());
    let (mut first, mut second) = (first.iter().peekable(), second.iter().peekable());
    // The distances from a position in the middle text to the same position in the old text and in
    // the new text.
    let (mut to_old, mut to_new) = (0_isize, 0_isize);
    loop {
        // The next changed part of the middle text, and all spans of both changes that touch it.
        let start = match (first.peek(), second.peek()) {
            (None, None) => return composed,
            (Some(one), None) => one.new.start,
            (None, Some(other)) => other.old.start,
            (Some(one), Some(other)) => one.new.start.min(other.old.start),
        };
        let mut end = start;
        let (old_start, new_start) = (moved(start, to_old), moved(start, to_new));
        loop {
            if let Some(one) = first.next_if(|one| one.new.start <= end) {
                end = end.max(one.new.end);
                to_old += signed(one.old.len()) - signed(one.new.len());
            } else if let Some(other) = second.next_if(|other| other.old.start <= end) {
                end = end.max(other.old.end);
                to_new += signed(other.new.len()) - signed(other.old.len());
            } else {
                break;
            }
        }
        composed
            .push(Span { old: old_start..moved(end, to_old), new: new_start..moved(end, to_new) });
    }
}

fn moved(at: usize, by: isize) -> usize {
    at.saturating_add_signed(by)
}

/// A text has at most `isize::MAX` bytes.
fn signed(length: usize) -> isize {
    isize::try_from(length).unwrap_or(isize::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts of few different lines, so that many repeat.
    fn text() -> impl Strategy<Value = String> {
        prop::collection::vec(
            prop::sample::select(vec!["a", "b", "é", "\n", "\n", "\r\n", "漢"]),
            0..60,
        )
        .prop_map(|parts| parts.concat())
    }

    /// Checks that the texts are equal outside of the spans.
    fn check(change: &Change) {
        let (mut old, mut new) = (0, 0);
        for span in &change.spans {
            assert_eq!(
                change.old[old..span.old.start],
                change.after()[new..span.new.start],
                "{change:?}"
            );
            (old, new) = (span.old.end, span.new.end);
        }
        assert_eq!(change.old[old..], change.after()[new..], "{change:?}");
    }

    proptest! {
        #[test]
        fn spans_are_where_texts_differ(
            old in text(),
            new in text(),
            rounds in prop::collection::vec(prop::collection::vec((0_usize..80, 0_usize..5, text()), 0..5), 0..5),
        ) {
            let between = Change::between(old.clone(), new);
            check(&between);
            let mut change = Change::none(old);
            for mut round in rounds {
                round.sort_by_key(|(at, ..)| *at);
                let (mut parts, mut from) = (Vec::new(), 0);
                for (at, length, by) in round {
                    let start = change.after().ceil_char_boundary(at.clamp(from, change.after().len().max(from)));
                    let end = change.after().ceil_char_boundary((start + length).min(change.after().len()));
                    if start > end || start < from {
                        continue;
                    }
                    parts.push((start..end, by));
                    from = end;
                }
                change.replace(&parts);
                check(&change);
            }
            // Whole lines, with and without context, must also cover every difference.
            for (change, context) in [(&between, 0), (&between, 3), (&change, 0), (&change, 3)] {
                let lines = Change { spans: change.line_spans(context), ..change.clone() };
                check(&lines);
                for span in &lines.spans {
                    for (text, range) in [(&*change.old, &span.old), (change.after(), &span.new)] {
                        let is_line = |at: usize| at == 0 || at == text.len() || text.as_bytes()[at - 1] == b'\n';
                        prop_assert!(is_line(range.start) && is_line(range.end), "{change:?} {span:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_diff_of_a_large_text_shows_only_the_changed_region() {
        let old: String = (0..100_000).map(|line| format!("line {line}\n")).collect();
        let new = old.replace("line 50000\n", "line fifty\nthousand\n");
        let (change, small) =
            (Change::between(old, new), Change::between("line 9\n".into(), "line 9".into()));
        let shown = change.shown("x").unwrap();
        assert!(
            shown.starts_with("--- x\n+++ x\n@@ -49998,7 +49998,8 @@\n line 49997\n"),
            "{shown}"
        );
        assert!(shown.ends_with(" line 50003\n") && shown.lines().count() == 12, "{shown}");
        assert_eq!(change.new_lines(), Some((50_001, 50_002)));
        assert_eq!(
            small.shown("y").unwrap(),
            "--- y\n+++ y\n@@ -1 +1 @@\n-line 9\n+line 9\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn a_fingerprint_depends_on_lines_not_on_their_position() {
        let fingerprint =
            |old: &str, new: &str| Change::between(old.into(), new.into()).fingerprint();
        assert_eq!(fingerprint("a\nb\nc\n", "a\nB\nc\n"), fingerprint("x\ny\nb\n", "x\ny\nB\n"));
        assert_ne!(fingerprint("a b\n", "a B\n"), fingerprint("A b\n", "A B\n"));
        // A part that ends with its line does not include the next line.
        for (part, new) in [(2..4, "B\n"), (2..4, ""), (4..4, "B\n")] {
            let edited = |text: &str| {
                let mut change = Change::none(text.into());
                change.replace(&[(part.clone(), new)]);
                change.fingerprint()
            };
            assert_eq!(edited("a\nb\nc\n"), edited("a\nb\nC\n"), "{part:?} {new:?}");
        }
    }
}
