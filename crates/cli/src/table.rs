//! Tables and times as people read them.

use std::time::{Duration, SystemTime};

use holdpoint_common::Timestamp;
use unicode_width::UnicodeWidthStr;

/// Between two columns.
const GAP: &str = "  ";

/// Rows under heads, each column as wide as it has to be. The last one is not padded.
pub(crate) fn table<const N: usize>(heads: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = heads.map(UnicodeWidthStr::width);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    let heads = heads.map(str::to_owned);
    let mut text = String::new();
    for row in std::iter::once(&heads).chain(rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            line.push_str(cell);
            line.push_str(&" ".repeat(width - cell.width()));
            line.push_str(GAP);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// How long ago it was, in its largest unit.
pub(crate) fn age(since: Timestamp) -> String {
    span(Timestamp::from(SystemTime::now()).since(since))
}

/// How long it is, in its largest unit.
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
        assert_eq!(table(["NAME", "B"], &rows), "NAME  B\n漢字  x\na\n");
    }

    #[test]
    fn spans_are_said_in_their_largest_unit() {
        for (seconds, said) in [(0, "0s"), (59, "59s"), (60, "1m"), (7_199, "1h"), (200_000, "2d")] {
            assert_eq!(span(Duration::from_secs(seconds)), said);
        }
    }
}
