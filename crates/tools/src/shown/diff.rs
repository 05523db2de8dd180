//! What would change in a file, as a unified diff.

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::DiffTag;
use similar::algorithms::{Capture, Compact, IdentifyDistinct, Replace, myers};

use super::{Care, line, show};
use crate::files::coding::Coding;
use crate::secrets::{self, Secret};

/// Lines around a change that are shown with it.
pub(crate) const CONTEXT: usize = 3;

/// How long the shortest way from one text to the other is looked for; then a longer one does.
const PATIENCE: Duration = Duration::from_millis(200);

/// Bytes of a diff, as it is shown: every client gets it, with every snapshot, for as long as it is asked about.
const MAX_SHOWN: usize = 4 * 1024 * 1024;

/// There is more to show than anybody is asked to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {} MiB would have to be shown: do it in parts", MAX_SHOWN / 1024 / 1024)]
pub(crate) struct TooMuch;

/// A part of a file that changes, as its lines are: with line feeds, the file's last line perhaps without.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hunk<'a> {
    /// Which line of the old file its first is, counted from 1.
    pub(crate) old_line: usize,
    /// Which line of the new file its first is, counted from 1.
    pub(crate) new_line: usize,
    /// The lines, those around the change with them, as they are.
    pub(crate) old: &'a str,
    /// The lines as they will be.
    pub(crate) new: &'a str,
}

/// A unified diff of a whole file. `path` is the file's, as it is; without `old`, the file is new.
///
/// Looks at all of both texts: for a large file of which little changes, [`diff_of`].
///
/// # Errors
/// [`TooMuch`] if it is longer than 4 MiB.
pub(crate) fn diff(path: &str, old: Option<&str>, new: &str) -> Result<String, TooMuch> {
    let hunk = Hunk { old_line: 1, new_line: 1, old: old.unwrap_or_default(), new };
    let mut shown = header(path, old.is_none());
    hunk.show(&mut shown)?;
    Ok(shown)
}

/// A unified diff of a file of which only these parts, in their order, change.
///
/// # Errors
/// [`TooMuch`] if it is longer than 4 MiB.
pub(crate) fn diff_of(path: &str, hunks: &[Hunk<'_>]) -> Result<String, TooMuch> {
    let mut shown = header(path, false);
    for hunk in hunks {
        hunk.show(&mut shown)?;
    }
    Ok(shown)
}

/// A diff with the encoding of the new text, unless that is UTF-8.
pub(crate) fn with_coding(diff: String, coding: Coding) -> String {
    if coding == Coding::Utf8 { diff } else { format!("Written in {coding}.\n\n{diff}") }
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
        // Before all of it is looked through for secrets and written out.
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

/// Groups changes whose context lines would overlap, each group with the range of lines that shows it. `old` and `new`
/// are the lengths of the two texts, in lines.
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
    // By numbers, which are compared at once.
    let numbers = IdentifyDistinct::<u32>::new(old, 0..old.len(), new, 0..new.len());
    let (old, new) = (numbers.old_lookup(), numbers.new_lookup());
    let mut captured = Compact::new(Replace::new(Capture::new()), old, new);
    let until = Instant::now() + PATIENCE;
    let Ok(()) = myers::diff_deadline(&mut captured, old, numbers.old_range(), new, numbers.new_range(), Some(until));
    let captured = captured.into_inner().into_inner().into_ops();
    let changed = captured.into_iter().filter(|op| op.tag() != DiffTag::Equal);
    changed.map(|op| Change { old: op.old_range(), new: op.new_range() }).collect()
}

/// A range of lines in the header of a hunk: `lines` of them after the first `before`.
fn range(before: usize, lines: usize) -> String {
    match lines {
        0 => format!("{before},0"),
        1 => format!("{}", before + 1),
        _ => format!("{},{lines}", before + 1),
    }
}

/// A text, its lines, and the secrets in it, which may go over lines.
struct Side<'a> {
    text: &'a str,
    lines: Vec<&'a str>,
    /// Where each line begins.
    starts: Vec<usize>,
    secrets: Vec<Secret>,
}

impl<'a> Side<'a> {
    fn of(text: &'a str) -> Self {
        // Only a line feed ends a line: all else that may break one is written out.
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

    /// From then on, what is secret is not shown.
    fn find_secrets(&mut self) {
        self.secrets = secrets::find(self.text);
    }

    /// Of so many lines.
    fn bytes(&self, lines: Range<usize>) -> usize {
        self.lines[lines].iter().map(|line| line.len()).sum()
    }

    /// Shows these lines, unless that is too much.
    fn show(&self, sign: char, lines: Range<usize>, shown: &mut String) -> Result<(), TooMuch> {
        for index in lines {
            let (line, start) = (self.lines[index], self.starts[index]);
            let whole = line.strip_suffix('\n');
            shown.push(sign);
            show(self.text, start..start + whole.unwrap_or(line).len(), &self.secrets, Care::Text, false, shown);
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
        assert_eq!(diff("x", None, "a\nb\n").unwrap(), "--- /dev/null\n+++ x\n@@ -0,0 +1,2 @@\n+a\n+b\n");
        assert_eq!(diff("x", None, "").unwrap(), "--- /dev/null\n+++ x\n");
    }

    #[test]
    fn line_ends_are_seen() {
        let shown = diff("x", Some("a\r\nb"), "a\nb\rc\u{2028}\n").unwrap();
        let expected = "@@ -1,2 +1,2 @@\n-a\\u{d}\n-b\n\\ No newline at end of file\n+a\n+b\\u{d}c\\u{2028}\n";
        assert_eq!(shown, format!("--- x\n+++ x\n{expected}"));
    }

    #[test]
    fn a_diff_is_too_much_by_what_is_shown_of_it() {
        // Six characters are shown for each of these, also around a change.
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
        let key =
            format!("-----BEGIN PRIVATE KEY-----\n{0}\n{0}\nab12Z=\n-----END PRIVATE KEY-----\n", "aB1+".repeat(16));
        let token = format!("api_token = \"{}\"\n", "x1".repeat(20));
        let shown = diff("x", Some(&token), &key).unwrap();
        assert!(shown.contains("-api_token = \"x1x1…(36 characters masked)\"\n"), "{shown}");
        assert!(shown.contains("+-----BEGIN PRIVATE KEY-----\n+…(64 characters masked)\n"), "{shown}");
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
