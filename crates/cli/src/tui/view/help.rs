//! The help overlay with all keys and commands.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::super::keymap::FIXED;
use super::super::state::State;
use super::super::update::COMMANDS;
use super::super::wrap::wrap;
use super::{open_box, put};
use crate::tone::Tone;

/// The width of the key column, in cells.
const KEYS: usize = 20;

/// Draws the help from line `scroll` on, or from the last line that still fills the box. Returns
/// the first line drawn.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, state: &State, scroll: usize) -> usize {
    let mut rows: Vec<(String, String)> = Vec::new();
    for binding in state.keymap.bindings() {
        let keys: Vec<_> = binding.chords.iter().map(ToString::to_string).collect();
        rows.push((keys.join(", "), format!("{} ({})", binding.description, binding.name)));
    }
    let fixed = FIXED.iter().map(|(keys, does)| ((*keys).to_owned(), (*does).to_owned()));
    let mut all: Vec<_> = fixed.collect();
    all.push(Default::default());
    all.extend(rows);
    all.push(Default::default());
    all.extend(COMMANDS.iter().map(|(command, does)| ((*command).to_owned(), (*does).to_owned())));
    all.push(Default::default());
    let text =
        "To change a key, set its name (in parentheses) below [tui.keys] in the configuration.";
    all.push((String::new(), text.to_owned()));

    let width = usize::from(area.width).min(76);
    let inside = width.saturating_sub(4);
    let mut lines = Vec::new();
    for (keys, does) in all {
        let pad = KEYS.saturating_sub(keys.width()).max(1);
        let keys_cells = keys.width() + pad;
        let row = Line::from(vec![
            Span::styled(keys, Tone::Accent.style()),
            Span::raw(" ".repeat(pad)),
            Span::raw(does),
        ]);
        wrap(&row, inside, &" ".repeat(keys_cells.min(KEYS)), &mut lines);
    }
    let shown = usize::from(area.height).saturating_sub(2).min(lines.len());
    let scroll = scroll.min(lines.len() - shown);
    let title = if lines.len() > shown { " Help: ↑ ↓, Esc " } else { " Help: Esc " };
    let rest = open_box(buffer, area, width, shown, title);
    lines.iter().skip(scroll).fold(rest, |rest, line| put(buffer, rest, line));
    scroll
}
