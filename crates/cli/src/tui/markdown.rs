//! Renders a model's Markdown as styled lines. Finished blocks are laid out once; only the growing
//! end is laid out again, or its last line if it is long.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use tui_markdown::{Options, StyleSheet, from_str_with_options};

use super::code::highlight;
use super::wrap::wrap;

/// The most bytes of a code block that are highlighted. A block that is still growing has a lower
/// limit, because it is highlighted again with every piece.
const MAX_CODE_BYTES: usize = 64 * 1024;
const MAX_GROWING_CODE_BYTES: usize = 8 * 1024;
/// The most bytes of a growing end that are rendered. A longer one is plain text until it is
/// finished or the text ends.
const MAX_GROWING_BYTES: usize = 64 * 1024;

/// The lines of a growing text.
#[derive(Debug, Default)]
pub(crate) struct MarkdownCache {
    /// How many bytes of the text are laid out for good.
    finished_bytes: usize,
    /// How many lines those bytes take.
    finished_lines: usize,
    /// How many bytes and lines after those are laid out as plain text.
    plain_bytes: usize,
    plain_lines: usize,
    lines: Vec<Line<'static>>,
}

impl MarkdownCache {
    /// The lines of a text, which must begin with the text of the previous call. `open`: whether
    /// the text may still grow.
    pub(crate) fn lines(&mut self, text: &str, width: usize, open: bool) -> &[Line<'static>] {
        self.lines.truncate(self.finished_lines + self.plain_lines);
        let finished_bytes = text.len().min(self.finished_bytes);
        let (_, rest) = text.split_at(finished_bytes);
        let end = finished_length(rest);
        if end > 0 || !open {
            self.lines.truncate(self.finished_lines);
            (self.plain_bytes, self.plain_lines) = (0, 0);
        }
        if end > 0 {
            self.add(&rest[..end], width, MAX_CODE_BYTES);
            self.finished_bytes = finished_bytes + end;
            self.finished_lines = self.lines.len();
        }
        let last = &rest[end..];
        if open && last.len() > MAX_GROWING_BYTES {
            self.add_plain(last, width);
        } else if !last.trim().is_empty() {
            self.add(last, width, if open { MAX_GROWING_CODE_BYTES } else { MAX_CODE_BYTES });
        }
        &self.lines
    }

    /// Adds a growing end as plain text. Its complete lines are laid out once.
    fn add_plain(&mut self, text: &str, width: usize) {
        if self.plain_lines == 0 && !self.lines.is_empty() {
            self.lines.push(Line::default());
        }
        let complete = text.rfind('\n').map_or(0, |at| at + 1);
        for line in text.get(self.plain_bytes..complete).unwrap_or_default().lines() {
            wrap(&Line::raw(line), width, "", &mut self.lines);
        }
        (self.plain_bytes, self.plain_lines) = (complete, self.lines.len() - self.finished_lines);
        if complete < text.len() {
            wrap(&Line::raw(&text[complete..]), width, "", &mut self.lines);
        }
    }

    fn add(&mut self, markdown: &str, width: usize, max_code_bytes: usize) {
        if !self.lines.is_empty() {
            self.lines.push(Line::default());
        }
        for line in &highlight_blocks(render(markdown, width), max_code_bytes) {
            wrap(line, width, "", &mut self.lines);
        }
    }
}

/// The length of the finished blocks. A block is finished by an empty line outside of code, if the
/// text after it does not continue a list.
fn finished_length(text: &str) -> usize {
    let (mut end, mut at) = (0, 0);
    let mut fence = None;
    let mut is_after_empty_line = false;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start();
        if fence.is_none()
            && is_after_empty_line
            && !trimmed.is_empty()
            && trimmed.len() == line.len()
        {
            end = at;
        }
        fence = match (fence, fence_of(trimmed)) {
            // Backticks after the mark are code within a line.
            (None, Some(('`', _, info))) if info.contains('`') => None,
            (None, mark) => mark.map(|(mark, length, _)| (mark, length)),
            (Some((open, least)), Some((mark, length, ""))) if mark == open && length >= least => {
                None
            }
            (open, _) => open,
        };
        is_after_empty_line = trimmed.is_empty();
        at += line.len();
    }
    end
}

/// The mark of a code fence, how often it is repeated, and the text after it.
fn fence_of(line: &str) -> Option<(char, usize, &str)> {
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let info = line.trim_start_matches(mark);
    let length = line.len() - info.len();
    (length >= 3).then_some((mark, length, info.trim()))
}

fn render(markdown: &str, width: usize) -> Vec<Line<'static>> {
    let options = Options::new(Theme).table_width(u16::try_from(width).unwrap_or(u16::MAX));
    let text = from_str_with_options(markdown.trim_end(), &options);
    // The text's style applies to each line.
    let line = |line: &Line<'_>| {
        Line::from(line.spans.iter().map(owned).collect::<Vec<_>>())
            .style(text.style.patch(line.style))
    };
    text.lines.iter().map(line).collect()
}

/// Highlights code blocks of up to `max_bytes` bytes.
fn highlight_blocks(lines: Vec<Line<'static>>, max_bytes: usize) -> Vec<Line<'static>> {
    let mut done = Vec::with_capacity(lines.len());
    let mut rest = lines.into_iter().peekable();
    while let Some(line) = rest.next() {
        let language = line
            .to_string()
            .trim_start()
            .strip_prefix("```")
            .map(|language| language.trim().to_lowercase());
        done.push(line);
        let Some(language) = language else { continue };
        let block: Vec<_> =
            std::iter::from_fn(|| rest.next_if(|line| line.to_string().trim() != "```")).collect();
        let code: Vec<_> = block.iter().map(ToString::to_string).collect();
        let fits = code.iter().map(String::len).sum::<usize>() <= max_bytes;
        let coloured = if fits { highlight(&language, &code) } else { None };
        done.extend(coloured.unwrap_or(block));
        done.extend(rest.next());
    }
    done
}

fn owned(span: &Span<'_>) -> Span<'static> {
    Span::styled(span.content.clone().into_owned(), span.style)
}

/// Styles in the terminal's sixteen colours, on its own background.
#[derive(Debug, Clone)]
struct Theme;

impl StyleSheet for Theme {
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
    fn piecewise_layout_equals_whole_layout() {
        let whole = text(MarkdownCache::default().lines(TEXT, 40, true));
        for step in [1, 3, 7] {
            let mut growing = MarkdownCache::default();
            let mut at = 0;
            while at < TEXT.len() {
                at = TEXT.ceil_char_boundary((at + step).min(TEXT.len()));
                growing.lines(&TEXT[..at], 40, true);
            }
            assert_eq!(text(growing.lines(TEXT, 40, true)), whole, "in steps of {step}");
            assert_eq!(text(growing.lines(TEXT, 40, false)), whole, "at the end");
        }
        assert!(whole.iter().any(|line| line.contains("more of two")), "{whole:#?}");
        assert!(whole.iter().any(|line| line.contains("fn main() {")), "{whole:#?}");
    }

    #[test]
    fn a_long_growing_block_is_laid_out_once_and_rendered_when_it_is_finished() {
        let begin = "Before.\n\n";
        let block = format!("{}\n", "a *word* ".repeat(100)).repeat(2_000);
        let whole = format!("{begin}{block}\nAfter.");
        let mut growing = MarkdownCache::default();
        for end in (MAX_GROWING_BYTES * 2..begin.len() + block.len()).step_by(1_000) {
            growing.lines(&whole[..end], 80, true);
            // Only the last line is laid out again.
            let complete = whole[..end].rfind('\n').unwrap() + 1;
            assert_eq!(growing.plain_bytes, complete - begin.len());
        }
        let plain = text(growing.lines(&whole[..begin.len() + block.len()], 80, true));
        assert_eq!(plain[..2], ["Before.", ""]);
        assert!(plain[2].starts_with("a *word* a"), "{}", plain[2]);
        let rows = plain.iter().filter(|line| !line.is_empty()).count();
        assert_eq!(rows, 1 + 2_000 * 12, "no line is lost or repeated");
        assert_eq!(
            text(growing.lines(&whole, 80, true)),
            text(MarkdownCache::default().lines(&whole, 80, true)),
            "the finished block is rendered"
        );
    }

    #[test]
    fn the_last_block_is_rendered_when_the_text_ends() {
        let code = |bytes: usize| format!("```rust\n{}```\n", "fn a() {}\n".repeat(bytes / 10));
        for last in ["a *word* ".repeat(MAX_GROWING_BYTES), code(MAX_GROWING_CODE_BYTES * 2)] {
            let whole = format!("Before.\n\n{last}");
            let mut cache = MarkdownCache::default();
            let open = cache.lines(&whole, 80, true).to_vec();
            let finished = cache.lines(&format!("{whole}\n\nAfter."), 80, true).to_vec();
            let mut cache = MarkdownCache::default();
            cache.lines(&whole, 80, true);
            let ended = cache.lines(&whole, 80, false);
            assert_ne!(ended, open);
            assert_eq!(ended, &finished[..finished.len() - 2]);
        }
    }

    #[test]
    fn a_fence_is_closed_only_by_as_many_of_its_marks() {
        let open = "````\n```\n\na\n\n~~~~\n\n```` x\n\nb\n";
        assert_eq!(finished_length(open), 0);
        let closed = format!("{open}`````\n\n");
        assert_eq!(finished_length(&format!("{closed}after")), closed.len());
        assert_eq!(finished_length("```code``` in a line\n\nafter"), 22);
    }

    #[test]
    fn nothing_is_hidden_by_markup() {
        let shown = text(MarkdownCache::default().lines(
            "a <b onclick=x>bold</b> <!-- note --> [name](http://x/y) ![i](u)",
            80,
            false,
        ));
        let shown = shown.join("\n");
        for seen in ["<b onclick=x>", "<!-- note -->", "http://x/y", "name"] {
            assert!(shown.contains(seen), "{seen} in {shown}");
        }
    }
}
