//! The changes of a file as a unified diff.

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::DiffTag;
use similar::algorithms::{Capture, Compact, IdentifyDistinct, Replace, myers};

use super::{Strictness, line, show};
use crate::files::text_encoding::TextEncoding;
use crate::secrets::{self, Secret};

/// Lines shown before and after a change.
pub(crate) const CONTEXT: usize = 3;

/// How long to search for the shortest diff. After that, a longer one is used.
const SEARCH_LIMIT: Duration = Duration::from_millis(200);

/// The most bytes of a displayed diff. Every client gets it with every snapshot while its ask is
/// open.
const MAX_SHOWN: usize = 4 * 1024 * 1024;

/// The diff is too long for the user to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the diff is larger than {} MiB: split the change", MAX_SHOWN / 1024 / 1024)]
pub struct TooMuch;

/// A part of a file that changes, in whole lines with their line feeds. The last line of the file
/// may have none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hunk<'a> {
    /// The number of the first line in the old file, counted from 1.
    pub(crate) old_line: usize,
    /// The number of the first line in the new file, counted from 1.
    pub(crate) new_line: usize,
    /// The old lines, including those around the change.
    pub(crate) old: &'a str,
    /// The new lines, including those around the change.
    pub(crate) new: &'a str,
}

/// A unified diff of a whole file. `path` is not yet escaped. Without `old`, the file is new.
///
/// This compares both whole texts. For a small change in a large file, use `diff_of`.
///
/// # Errors
/// [`TooMuch`] if the diff is longer than 4 MiB.
pub fn diff(path: &str, old: Option<&str>, new: &str) -> Result<String, TooMuch> {
    let hunk = Hunk { old_line: 1, new_line: 1, old: old.unwrap_or_default(), new };
    let mut shown = header(path, old.is_none());
    hunk.show(&mut shown)?;
    Ok(shown)
}

/// A unified diff of a file in which only these parts change. The parts are in order.
///
/// # Errors
/// [`TooMuch`] if the diff is longer than 4 MiB.
pub(crate) fn diff_of(path: &str, hunks: &[Hunk<'_>]) -> Result<String, TooMuch> {
    let mut shown = header(path, false);
    for hunk in hunks {
        hunk.show(&mut shown)?;
    }
    Ok(shown)
}

/// Adds the encoding of the new text to a diff, unless it is UTF-8.
pub(crate) fn with_encoding(diff: String, encoding: TextEncoding) -> String {
    if encoding == TextEncoding::Utf8 { diff } else { format!("Encoding: {encoding}\n\n{diff}") }
}

fn header(path: &str, is_new: bool) -> String {
    let path = line(path);
    match is_new {
        true => format!("--- /dev/null\n+++ {path}\n"),
        false => format!("--- {path}\n+++ {path}\n"),
    }
}

impl Hunk<'_> {
    fn show(&self, shown: &mut String) -> Result<(), TooMuch> {
        let (mut old, mut new) = (Side::of(self.old), Side::of(self.new));
        let changes = changes(&old.lines, &new.lines);
        let groups = groups(&changes, old.lines.len(), new.lines.len());
        // Check the size before searching for secrets and formatting.
        let removed = changes.iter().map(|change| old.bytes(change.old.clone()));
        let others = groups.iter().map(|(_, lines)| new.bytes(lines.new.clone()));
        if shown.len() + removed.chain(others).sum::<usize>() > MAX_SHOWN {
            return Err(TooMuch);
        }
        old.find_secrets();
        new.find_secrets();
        for (changes, lines) in groups {
            let from = range(self.old_line - 1 + lines.old.start, lines.old.len());
            let to = range(self.new_line - 1 + lines.new.start, lines.new.len());
            shown.push_str(&format!("@@ -{from} +{to} @@\n"));
            let mut same = lines.new.start;
            for change in changes {
                new.show(' ', same..change.new.start, shown)?;
                old.show('-', change.old.clone(), shown)?;
                new.show('+', change.new.clone(), shown)?;
                same = change.new.end;
            }
            new.show(' ', same..lines.new.end, shown)?;
        }
        Ok(())
    }
}

/// Lines that are replaced by others, counted from 0.
struct Change {
    old: Range<usize>,
    new: Range<usize>,
}

/// Groups changes whose context lines would overlap, each group with the range of lines that shows
/// it. `old` and `new` are the lengths of the two texts, in lines.
fn groups(changes: &[Change], old: usize, new: usize) -> Vec<(&[Change], Change)> {
    let groups = changes.chunk_by(|before, after| after.old.start - before.old.end <= 2 * CONTEXT);
    let lines = |first: &Change, last: &Change| Change {
        old: first.old.start.saturating_sub(CONTEXT)..old.min(last.old.end + CONTEXT),
        new: first.new.start.saturating_sub(CONTEXT)..new.min(last.new.end + CONTEXT),
    };
    groups.filter_map(|group| Some((group, lines(group.first()?, group.last()?)))).collect()
}

/// The changes between the lines of two texts.
fn changes(old: &[&str], new: &[&str]) -> Vec<Change> {
    // Compare numbers instead of lines, which is faster.
    let numbers = IdentifyDistinct::<u32>::new(old, 0..old.len(), new, 0..new.len());
    let (old, new) = (numbers.old_lookup(), numbers.new_lookup());
    let mut captured = Compact::new(Replace::new(Capture::new()), old, new);
    let deadline = Instant::now() + SEARCH_LIMIT;
    let Ok(()) = myers::diff_deadline(
        &mut captured,
        old,
        numbers.old_range(),
        new,
        numbers.new_range(),
        Some(deadline),
    );
    let captured = captured.into_inner().into_inner().into_ops();
    let changed = captured.into_iter().filter(|op| op.tag() != DiffTag::Equal);
    changed.map(|op| Change { old: op.old_range(), new: op.new_range() }).collect()
}

/// The range in the header of a hunk: `lines` lines after the first `before`.
fn range(before: usize, lines: usize) -> String {
    match lines {
        0 => format!("{before},0"),
        1 => format!("{}", before + 1),
        _ => format!("{},{lines}", before + 1),
    }
}

/// A text, its lines, and its secrets, which may span lines.
struct Side<'a> {
    text: &'a str,
    lines: Vec<&'a str>,
    /// The offset of each line.
    starts: Vec<usize>,
    secrets: Vec<Secret>,
}

impl<'a> Side<'a> {
    fn of(text: &'a str) -> Self {
        // Only a line feed ends a line. Other line breaks are escaped.
        let lines: Vec<_> = text.split_inclusive('\n').collect();
        let starts = lines
            .iter()
            .scan(0, |end, line| {
                let start = *end;
                *end += line.len();
                Some(start)
            })
            .collect();
        Self { text, lines, starts, secrets: Vec::new() }
    }

    /// Finds the secrets, so that `show` masks them.
    fn find_secrets(&mut self) {
        self.secrets = secrets::find(self.text);
    }

    fn bytes(&self, lines: Range<usize>) -> usize {
        self.lines[lines].iter().map(|line| line.len()).sum()
    }

    /// Appends these lines to `shown`, or fails if `shown` grows too long.
    fn show(&self, sign: char, lines: Range<usize>, shown: &mut String) -> Result<(), TooMuch> {
        for index in lines {
            let (line, start) = (self.lines[index], self.starts[index]);
            let whole = line.strip_suffix('\n');
            shown.push(sign);
            show(
                self.text,
                start..start + whole.unwrap_or(line).len(),
                &self.secrets,
                Strictness::Text,
                false,
                shown,
            );
            shown.push('\n');
            if whole.is_none() {
                shown.push_str("\\ No newline at end of file\n");
            }
            if shown.len() > MAX_SHOWN {
                return Err(TooMuch);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_three_lines_around_it() {
        let old: String = (1..=20).map(|number| format!("line {number}\n")).collect();
        let new = old.replace("line 10\n", "line ten\n");
        let expected = "--- a b\n+++ a b\n@@ -7,7 +7,7 @@\n line 7\n line 8\n line 9\n-line 10\n+line ten\n line 11\n \
                        line 12\n line 13\n";
        assert_eq!(diff("a b", Some(&old), &new).unwrap(), expected);
    }

    #[test]
    fn a_new_file_is_shown_whole() {
        assert_eq!(
            diff("x", None, "a\nb\n").unwrap(),
            "--- /dev/null\n+++ x\n@@ -0,0 +1,2 @@\n+a\n+b\n"
        );
        assert_eq!(diff("x", None, "").unwrap(), "--- /dev/null\n+++ x\n");
    }

    #[test]
    fn line_ends_are_seen() {
        let shown = diff("x", Some("a\r\nb"), "a\nb\rc\u{2028}\n").unwrap();
        let expected =
            "@@ -1,2 +1,2 @@\n-a\\u{d}\n-b\n\\ No newline at end of file\n+a\n+b\\u{d}c\\u{2028}\n";
        assert_eq!(shown, format!("--- x\n+++ x\n{expected}"));
    }

    #[test]
    fn the_diff_limit_counts_the_shown_bytes() {
        // Each of these characters is shown as six, also in the lines around a change.
        let hidden = "\u{1b}".repeat(MAX_SHOWN / 13);
        let (old, new) = (format!("a\n{hidden}\n{hidden}\n"), format!("b\n{hidden}\n{hidden}\n"));
        assert!(diff("x", Some(&old), &new).is_ok());
        let (old, new) = (format!("{old}{hidden}\n"), format!("{new}{hidden}\n"));
        assert_eq!(diff("x", Some(&old), &new), Err(TooMuch));
        // Lines between changes count once.
        let line = format!("{}\n", "x".repeat(1000));
        let old = format!("a\n{line}").repeat(MAX_SHOWN / 1200);
        assert!(diff("x", Some(&old), &old.replace("a\n", "b\n")).is_ok());
    }

    #[test]
    fn the_path_stays_on_its_line() {
        assert!(diff("x\n+y", None, "").unwrap().starts_with("--- /dev/null\n+++ x\\u{a}+y\n"));
    }

    #[test]
    fn t_c5_secrets_are_masked_on_both_sides_also_over_lines() {
        let key = format!(
            "-----BEGIN PRIVATE KEY-----\n{0}\n{0}\nab12Z=\n-----END PRIVATE KEY-----\n",
            "aB1+".repeat(16)
        );
        let token = format!("api_token = \"{}\"\n", "x1".repeat(20));
        let shown = diff("x", Some(&token), &key).unwrap();
        assert!(shown.contains("-api_token = \"x1x1…(36 characters masked)\"\n"), "{shown}");
        assert!(
            shown.contains("+-----BEGIN PRIVATE KEY-----\n+…(64 characters masked)\n"),
            "{shown}"
        );
        assert!(shown.contains("+…(6 characters masked)\n+-----END PRIVATE KEY-----\n"), "{shown}");
    }

    #[test]
    fn a_part_of_a_file_is_shown_as_in_the_whole() {
        let old: String = (1..=100).map(|number| format!("line {number}\n")).collect();
        let new = old.replace("line 10\n", "line ten\nand more\n").replace("line 90\n", "");
        let lines = |text: &'static str, from: usize, to: usize| -> String {
            text.split_inclusive('\n').skip(from - 1).take(to - from + 1).collect()
        };
        let (old, new): (&'static str, &'static str) = (old.leak(), new.leak());
        let first = (lines(old, 5, 15), lines(new, 5, 16));
        let second = (lines(old, 85, 95), lines(new, 86, 95));
        let hunks = [
            Hunk { old_line: 5, new_line: 5, old: &first.0, new: &first.1 },
            Hunk { old_line: 85, new_line: 86, old: &second.0, new: &second.1 },
        ];
        assert_eq!(diff_of("x", &hunks).unwrap(), diff("x", Some(old), new).unwrap());
    }
}
