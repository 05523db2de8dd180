//! Formats tables and durations for people.

use std::time::{Duration, SystemTime};

use holdpoint_common::Timestamp;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

const GAP: &str = "  ";

/// Formats rows under headings. Each column is as wide as its widest cell, and the last one is not
/// padded. Lines are cut to `max_width` cells.
pub(crate) fn table<const N: usize>(
    heads: [&str; N],
    rows: &[[String; N]],
    max_width: usize,
) -> String {
    let widths = widths(heads, rows);
    let heads = heads.map(str::to_owned);
    let mut text = String::new();
    for row in std::iter::once(&heads).chain(rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            line.push_str(cell);
            line.push_str(&" ".repeat(width - cell.width()));
            line.push_str(GAP);
        }
        text.push_str(&fit(line.trim_end(), max_width));
        text.push('\n');
    }
    text
}

fn widths<const N: usize>(heads: [&str; N], rows: &[[String; N]]) -> [usize; N] {
    let mut widths = heads.map(UnicodeWidthStr::width);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    widths
}

/// The number of cells, out of `max_width`, that the other columns leave for the last one.
pub(crate) fn room_for_last<const N: usize>(
    heads: [&str; N],
    rows: &[[String; N]],
    max_width: usize,
) -> usize {
    let others = widths(heads, rows).into_iter().take(N - 1).map(|width| width + GAP.len());
    max_width.saturating_sub(others.sum())
}

/// Cuts a text to this many cells. A cut text ends in an ellipsis.
pub(crate) fn fit(text: &str, cells: usize) -> String {
    if text.width() <= cells {
        return text.to_owned();
    }
    let mut fitted = String::new();
    let mut remaining = cells.saturating_sub(1);
    for grapheme in text.graphemes(true) {
        match remaining.checked_sub(grapheme.width()) {
            Some(rest) => remaining = rest,
            None => break,
        }
        fitted.push_str(grapheme);
    }
    if cells > 0 {
        fitted.push('…');
    }
    fitted
}

/// The time since then, in its largest unit.
pub(crate) fn age(since: Timestamp) -> String {
    span(Timestamp::from(SystemTime::now()).since(since))
}

/// Formats a duration in its largest unit, rounded down.
pub(crate) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_have_to_be() {
        let rows = [["漢字".to_owned(), "x".to_owned()], ["a".to_owned(), String::new()]];
        assert_eq!(table(["NAME", "B"], &rows, usize::MAX), "NAME  B\n漢字  x\na\n");
        assert_eq!(table(["NAME", "B"], &rows, 5), "NAME…\n漢字…\na\n");
    }

    #[test]
    fn a_text_that_does_not_fit_is_cut_between_characters() {
        assert_eq!(fit("漢字漢字", 5), "漢字…");
        assert_eq!(fit("abc", 3), "abc");
        assert_eq!(fit("abcd", 3), "ab…");
        assert_eq!(fit("abcd", 0), "");
    }

    #[test]
    fn spans_are_shown_in_their_largest_unit() {
        for (seconds, expected) in
            [(0, "0s"), (59, "59s"), (60, "1m"), (7_199, "1h"), (200_000, "2d")]
        {
            assert_eq!(span(Duration::from_secs(seconds)), expected);
        }
    }
}
