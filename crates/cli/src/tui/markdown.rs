//! A model's words as styled lines: what is finished is laid out once, only the end of it again and again.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use tui_markdown::{Options, StyleSheet, from_str_with_options};

use super::code::coloured;
use super::wrap::wrap;

/// Bytes of code that are coloured at most; of code that is still being written, and is laid out again with every piece
/// of it, fewer.
const CODE: usize = 64 * 1024;
const GROWING_CODE: usize = 8 * 1024;

/// A text that grows, as lines.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    /// Bytes that are laid out for good.
    upto: usize,
    /// Lines of these.
    settled: usize,
    lines: Vec<Line<'static>>,
}

impl Growing {
    /// The lines of a text that begins with what it was the last time.
    pub(crate) fn lines(&mut self, text: &str, width: usize) -> &[Line<'static>] {
        self.lines.truncate(self.settled);
        let upto = text.len().min(self.upto);
        let (_, rest) = text.split_at(upto);
        let end = settled(rest);
        if end > 0 {
            self.add(&rest[..end], width, CODE);
            self.upto = upto + end;
            self.settled = self.lines.len();
        }
        if !rest[end..].trim().is_empty() {
            self.add(&rest[end..], width, GROWING_CODE);
        }
        &self.lines
    }

    fn add(&mut self, markdown: &str, width: usize, code: usize) {
        if !self.lines.is_empty() {
            self.lines.push(Line::default());
        }
        for line in &in_colours(render(markdown, width), code) {
            wrap(line, width, "", &mut self.lines);
        }
    }
}

/// Bytes up to the last place where a block has ended, whatever comes: an empty line outside of code, with something
/// after it that does not continue a list.
fn settled(text: &str) -> usize {
    let (mut end, mut at) = (0, 0);
    let mut fence: Option<&str> = None;
    let mut empty = false;
    for line in text.split_inclusive('\n') {
        let words = line.trim_start();
        if fence.is_none() && empty && !words.is_empty() && words.len() == line.len() {
            end = at;
        }
        let mark = ["```", "~~~"].into_iter().find(|mark| words.starts_with(mark));
        fence = match (fence, mark) {
            (None, mark) => mark,
            (Some(open), Some(mark)) if open == mark && words.trim_end().trim_matches(['`', '~']).is_empty() => None,
            (open, _) => open,
        };
        empty = words.is_empty();
        at += line.len();
    }
    end
}

fn render(markdown: &str, width: usize) -> Vec<Line<'static>> {
    let options = Options::new(Looks).table_width(u16::try_from(width).unwrap_or(u16::MAX));
    let text = from_str_with_options(markdown.trim_end(), &options);
    // The style of the whole is the style of each line.
    let line = |line: &Line<'_>| {
        Line::from(line.spans.iter().map(owned).collect::<Vec<_>>()).style(text.style.patch(line.style))
    };
    text.lines.iter().map(line).collect()
}

/// The same lines with colours in their code, as far as a block has no more bytes than `most`.
fn in_colours(lines: Vec<Line<'static>>, most: usize) -> Vec<Line<'static>> {
    let mut done = Vec::with_capacity(lines.len());
    let mut rest = lines.into_iter().peekable();
    while let Some(line) = rest.next() {
        let language = line.to_string().trim_start().strip_prefix("```").map(|language| language.trim().to_lowercase());
        done.push(line);
        let Some(language) = language else { continue };
        let block: Vec<_> = std::iter::from_fn(|| rest.next_if(|line| line.to_string().trim() != "```")).collect();
        let code: Vec<_> = block.iter().map(ToString::to_string).collect();
        let fits = code.iter().map(String::len).sum::<usize>() <= most;
        let coloured = if fits { coloured(&language, &code) } else { None };
        done.extend(coloured.unwrap_or(block));
        done.extend(rest.next());
    }
    done
}

fn owned(span: &Span<'_>) -> Span<'static> {
    Span::styled(span.content.clone().into_owned(), span.style)
}

/// By the sixteen colours of the terminal, on its own ground.
#[derive(Debug, Clone)]
struct Looks;

impl StyleSheet for Looks {
    fn heading(&self, _: u8) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    fn code(&self) -> Style {
        Style::new().fg(Color::Cyan)
    }

    fn link(&self) -> Style {
        Style::new().add_modifier(Modifier::UNDERLINED)
    }

    fn blockquote(&self) -> Style {
        Style::new().add_modifier(Modifier::DIM | Modifier::ITALIC)
    }

    fn metadata_block(&self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    fn table_header(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    fn table_border(&self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    fn list_marker(&self) -> Style {
        Style::new().fg(Color::Cyan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Head\n\nSome *words* of a paragraph\nthat goes on.\n\n- one\n- two\n\n  more of two\n\n```rust\nfn \
                        main() {\n\n}\n```\n\nAnd `code` at the end.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n";

    fn text(lines: &[Line<'_>]) -> Vec<String> {
        lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
    }

    #[test]
    fn pieces_do_not_matter() {
        let whole = text(Growing::default().lines(TEXT, 40));
        for step in [1, 3, 7] {
            let mut growing = Growing::default();
            let mut at = 0;
            while at < TEXT.len() {
                at = TEXT.ceil_char_boundary((at + step).min(TEXT.len()));
                growing.lines(&TEXT[..at], 40);
            }
            assert_eq!(text(growing.lines(TEXT, 40)), whole, "in steps of {step}");
        }
        assert!(whole.iter().any(|line| line.contains("more of two")), "{whole:#?}");
        assert!(whole.iter().any(|line| line.contains("fn main() {")), "{whole:#?}");
    }

    #[test]
    fn nothing_is_hidden_by_markup() {
        let shown =
            text(Growing::default().lines("a <b onclick=x>bold</b> <!-- note --> [name](http://x/y) ![i](u)", 80));
        let shown = shown.join("\n");
        for seen in ["<b onclick=x>", "<!-- note -->", "http://x/y", "name"] {
            assert!(shown.contains(seen), "{seen} in {shown}");
        }
    }
}
