//! Wraps styled lines to a width in terminal cells, at words where possible.

use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The expansion of a tab. The width of a terminal's own tab depends on the column.
const TAB: &str = "    ";

/// Wraps a line. All rows but the first begin with `indent`; spaces at the end of a row are
/// dropped.
pub(crate) fn wrap(line: &Line<'_>, width: usize, indent: &str, wrapped: &mut Vec<Line<'static>>) {
    wrap_line(line, width, indent, false, wrapped);
}

/// Wraps a line without losing a space. Rows break before a space, so that it is visible at the
/// beginning of the next row. A row that begins without a space continues a word.
pub(crate) fn wrap_exact(
    line: &Line<'_>,
    width: usize,
    indent: &str,
    wrapped: &mut Vec<Line<'static>>,
) {
    wrap_line(line, width, indent, true, wrapped);
}

fn wrap_line(
    line: &Line<'_>,
    width: usize,
    indent: &str,
    exact: bool,
    wrapped: &mut Vec<Line<'static>>,
) {
    let width = width.max(2);
    let mut row = Row { line: Line::default().style(line.style), cells: 0 };
    row.line.alignment = line.alignment;
    // A narrow width has no room for an indent. A character beside the indent may need two cells.
    let indent = if indent.width() <= (width / 2).min(width - 2) { indent } else { "" };
    let indent_cells = indent.width();
    let mut end_row = |row: &mut Row| {
        let fresh = Row { line: Line::default().style(line.style), cells: 0 };
        let mut full = std::mem::replace(row, fresh);
        if !exact {
            full.trim();
        }
        wrapped.push(full.line);
        if indent_cells > 0 {
            row.push(indent, Default::default());
        }
    };
    for span in &line.spans {
        let content = span.content.replace('\t', TAB);
        let mut put = |word: &str| {
            let cells = word.width();
            // In exact mode, a row ends early only before a space.
            let may_move = if exact { word.starts_with(' ') } else { !word.trim().is_empty() };
            if row.cells + cells <= width {
                row.push(word, span.style);
            } else if cells <= width - indent_cells && may_move {
                end_row(&mut row);
                row.push(word, span.style);
            } else if !exact && word.trim().is_empty() {
                end_row(&mut row);
            } else {
                for grapheme in word.graphemes(true) {
                    if row.cells + grapheme.width() > width {
                        end_row(&mut row);
                    }
                    row.push(grapheme, span.style);
                }
            }
        };
        match exact {
            true => spaced_words(&content).for_each(&mut put),
            false => words(&content).for_each(&mut put),
        }
    }
    wrapped.push(row.line);
}

/// The words of a text, each with the spaces before it.
fn spaced_words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find(|character| character != ' ').unwrap_or(rest.len());
        let end = rest[start..].find(' ').map_or(rest.len(), |length| start + length);
        let (first, after) = rest.split_at(end);
        rest = after;
        (!first.is_empty()).then_some(first)
    })
}

/// The words and spaces of a text. Opening and closing marks stay with their word.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut bounds = text.split_word_bound_indices().peekable();
    let is_opening = |word: &str| {
        word.chars().all(|mark| matches!(mark, '(' | '[' | '{' | '<' | '"' | '“' | '„' | '‘'))
    };
    let is_closing = |word: &str| {
        word.chars().all(|mark| matches!(mark, ',' | '.' | ';' | ':' | '!' | '?' | ')' | ']' | '…'))
    };
    std::iter::from_fn(move || {
        let (start, mut last) = bounds.next()?;
        let mut end = start + last.len();
        while is_opening(last)
            && let Some((at, word)) = bounds.next_if(|(_, word)| !word.trim().is_empty())
        {
            (last, end) = (word, at + word.len());
        }
        while !last.trim().is_empty()
            && let Some((at, mark)) = bounds.next_if(|(_, word)| is_closing(word))
        {
            end = at + mark.len();
        }
        text.get(start..end)
    })
}

/// A row that is being filled.
struct Row {
    line: Line<'static>,
    cells: usize,
}

impl Row {
    fn push(&mut self, text: &str, style: ratatui::style::Style) {
        self.cells += text.width();
        match self.line.spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(text),
            _ => self.line.spans.push(Span::styled(text.to_owned(), style)),
        }
    }

    /// Removes trailing spaces, which would show up only in a selection.
    fn trim(&mut self) {
        if let Some(last) = self.line.spans.last_mut() {
            let trimmed_len = last.content.trim_end_matches(' ').len();
            last.content.to_mut().truncate(trimmed_len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, width: usize, indent: &str) -> Vec<String> {
        let mut lines = Vec::new();
        wrap(&Line::raw(text.to_owned()), width, indent, &mut lines);
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lines_break_at_words_and_long_words_anywhere() {
        assert_eq!(wrapped("one two three", 8, ""), ["one two", "three"]);
        assert_eq!(wrapped("one two three", 8, "  "), ["one two", "  three"]);
        assert_eq!(wrapped("a word, more", 6, ""), ["a", "word,", "more"]);
        assert_eq!(wrapped("a set (one) of", 7, ""), ["a set", "(one)", "of"]);
        assert_eq!(wrapped("is [(one), two]", 8, ""), ["is", "[(one),", "two]"]);
        assert_eq!(wrapped("((((((((", 3, ""), ["(((", "(((", "(("]);
        assert_eq!(wrapped("abcdefghij", 4, ""), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("", 4, ""), [""]);
        assert_eq!(wrapped("a\tb", 9, ""), ["a    b"]);
    }

    #[test]
    fn exact_wrapping_keeps_every_space() {
        let wrapped = |text: &str, width: usize| {
            let mut lines = Vec::new();
            wrap_exact(&Line::raw(text.to_owned()), width, "┆ ", &mut lines);
            lines.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(wrapped("one two   three", 8), ["one two ", "┆   thre", "┆ e"]);
        assert_eq!(wrapped("one two  end", 8), ["one two", "┆   end"]);
        assert_eq!(wrapped("rm -rf ./home", 8), ["rm -rf .", "┆ /home"]);
        assert_eq!(wrapped("rm ./ home", 8), ["rm ./", "┆  home"]);
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "┆ ef", "┆ gh", "┆ ij"]);
        assert_eq!(wrapped("ends   ", 5), ["ends", "┆    "]);
        assert_eq!(wrapped("", 4), [""]);
    }

    #[test]
    fn wide_characters_count_as_they_are_drawn() {
        assert_eq!(wrapped("漢字漢字", 4, ""), ["漢字", "漢字"]);
        assert_eq!(wrapped("漢字漢字", 5, ""), ["漢字", "漢字"]);
        assert_eq!(wrapped("👩‍👩‍👧x👩‍👩‍👧", 3, ""), ["👩‍👩‍👧x", "👩‍👩‍👧"]);
        assert_eq!(wrapped("漢字", 2, " "), ["漢", "字"]);
        assert_eq!(wrapped("漢字", 3, " "), ["漢", " 字"]);
    }
}
