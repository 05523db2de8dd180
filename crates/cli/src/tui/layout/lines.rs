//! Renders one transcript entry as lines.

use holdpoint_common::ToolStatus;
use holdpoint_tools::shown::{prose, prose_line, text as exact};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::super::markdown::MarkdownCache;
use super::super::style::selected;
use super::super::transcript::{Entry, Kind, Tool, ToolState};
use super::super::wrap::{wrap, wrap_exact};
use super::call_views::CallView;
use crate::summaries::{call_summary, first_line_summary, result_text, shorten};
use crate::table::fit;
use crate::tone::Tone;

/// The most lines shown of each part of an open tool call; earlier ones are hidden.
const OPEN_LINES: usize = 200;

/// A result that the mark of a successful call already shows.
const WENT_WELL: &str = "[exit code 0]";

/// Appends the lines of an entry. `markdown` caches the lines of an answer's text.
pub(super) fn lines_of(
    entry: &Entry,
    width: usize,
    view: CallView,
    markdown: &mut MarkdownCache,
    lines: &mut Vec<Line<'static>>,
) {
    match &entry.kind {
        Kind::Prompt { text, by } => {
            let mark = by.as_ref().map_or("› ".to_owned(), |by| format!("› ({by}) "));
            for (number, line) in text.trim_end().split('\n').enumerate() {
                let mark = if number == 0 { &*mark } else { "  " };
                wrap(
                    &Line::styled(format!("{mark}{line}"), Tone::User.style()),
                    width,
                    "  ",
                    lines,
                );
            }
        }
        Kind::Text { text, open } => {
            lines.extend_from_slice(markdown.lines(text, width, *open));
        }
        Kind::Thought { text, .. } => {
            let style = Tone::Dim.style().add_modifier(Modifier::ITALIC);
            for line in text.trim().split('\n') {
                wrap(&Line::styled(line.to_owned(), style), width, "", lines);
            }
        }
        Kind::Tool(tool) => lines_of_tool(tool, width, view, lines),
        Kind::Note(remark) => {
            let text = remark.text.split('\n').map(|line| (line, remark.tone));
            for (line, tone) in text.chain(remark.details.iter().map(|line| (&**line, Tone::Dim))) {
                wrap(&Line::styled(format!("  {line}"), tone.style()), width, "    ", lines);
            }
        }
    }
}

fn lines_of_tool(tool: &Tool, width: usize, view: CallView, lines: &mut Vec<Line<'static>>) {
    let summary = match &tool.state {
        ToolState::Waits => String::new(),
        ToolState::Runs => {
            let text =
                if tool.output.tail.is_empty() { &tool.output.head } else { &tool.output.tail };
            let last = text.trim_end().rsplit('\n').next().unwrap_or_default();
            shorten(&prose_line(last))
        }
        ToolState::Ended { status, result } => {
            let output = tool.output.to_text();
            let shows_output =
                result.trim().is_empty() || result.trim() == WENT_WELL && !output.trim().is_empty();
            result_text(
                *status,
                &first_line_summary(if shows_output { output.trim() } else { result.trim() }),
            )
        }
    };
    let (mark, tone) = match &tool.state {
        ToolState::Waits => ("○", Tone::Dim),
        ToolState::Runs => ("●", Tone::Accent),
        ToolState::Ended { status: ToolStatus::Ok, .. } => ("✓", Tone::Good),
        ToolState::Ended { status: ToolStatus::Error | ToolStatus::Panicked, .. } => {
            ("✗", Tone::Fault)
        }
        ToolState::Ended { status: ToolStatus::Denied | ToolStatus::Interrupted, .. } => {
            ("✗", Tone::Warning)
        }
    };
    let mut spans =
        vec![Span::styled(format!("{mark} "), tone.style()), Span::raw(call_summary(&tool.call))];
    let result = (!view.open && !summary.is_empty())
        .then(|| Span::styled(format!("  └ {summary}"), Tone::Dim.style()));
    let row_style = if view.chosen { selected() } else { Style::new() };
    let push_asks = |lines: &mut Vec<Line<'static>>| {
        for ask in &tool.asks {
            wrap(&Line::styled(format!("  {}", ask.text), ask.tone.style()), width, "    ", lines);
        }
    };
    if !view.open {
        if tool.asks.is_empty() {
            spans.extend(result);
            return lines.push(on_one_line(spans, width).style(row_style));
        }
        // In order: the call, its asks, its result.
        lines.push(on_one_line(spans, width).style(row_style));
        push_asks(lines);
        return lines.extend(result.map(|result| on_one_line(vec![result], width)));
    }
    wrap(&Line::from(spans).style(row_style), width, "  ", lines);
    push_asks(lines);
    let mut put = |text: &str, style: Style| behind_bar(text, style, width, lines);
    let field = |name: &str| tool.call.input.get(name).and_then(|value| value.as_str());
    for (name, mark, colour) in [
        ("old_string", "-", Color::Red),
        ("new_string", "+", Color::Green),
        ("content", "+", Color::Green),
    ] {
        let Some(text) = field(name) else { continue };
        let text: Vec<_> = exact(text).split('\n').map(|line| format!("{mark}{line}")).collect();
        put(&text.join("\n"), Style::new().fg(colour));
    }
    put(&prose(tool.output.to_text().trim_end()), Tone::Dim.style());
    if let ToolState::Ended { status, result } = &tool.state {
        put(&result_text(*status, &prose(result.trim_end())), Tone::Dim.style());
    }
}

/// Adds untrusted text behind a bar, so that it can't pass for the screen's own.
fn behind_bar(text: &str, style: Style, width: usize, lines: &mut Vec<Line<'static>>) {
    if text.is_empty() {
        return;
    }
    let all: Vec<_> = text.split('\n').collect();
    if let Some(hidden) = all.len().checked_sub(OPEN_LINES).filter(|hidden| *hidden > 0) {
        lines.push(Line::styled(format!("  │ ({hidden} earlier lines)"), Tone::Dim.style()));
    }
    for line in all.iter().skip(all.len().saturating_sub(OPEN_LINES)) {
        wrap_exact(&Line::styled(format!("  │ {line}"), style), width, "  ┆ ", lines);
    }
}

/// Shortens the spans to one line.
fn on_one_line(spans: Vec<Span<'static>>, width: usize) -> Line<'static> {
    let mut remaining = width;
    let mut line = Line::default();
    for span in spans {
        let fitted = fit(&span.content, remaining);
        remaining = remaining.saturating_sub(fitted.width());
        line.spans.push(Span::styled(fitted, span.style));
    }
    line
}
