//! Styles, in the terminal's own sixteen colours, which respect the user's light or dark theme.

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

use crate::tone::Tone;

impl Tone {
    pub(crate) fn style(self) -> Style {
        let style = Style::new();
        match self {
            Self::Plain => style,
            Self::Dim => style.add_modifier(Modifier::DIM),
            Self::Strong => style.add_modifier(Modifier::BOLD),
            Self::User => style.fg(Color::Cyan).add_modifier(Modifier::BOLD),
            Self::Accent => style.fg(Color::Cyan),
            Self::Good => style.fg(Color::Green),
            Self::Warning => style.fg(Color::Yellow),
            Self::Fault => style.fg(Color::Red),
            Self::Waits => style.fg(Color::Yellow).add_modifier(Modifier::BOLD),
        }
    }
}

/// The style of the row under the cursor.
pub(crate) fn selected() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}

/// Removes every colour, for `NO_COLOR`; bold and dim stay.
pub(crate) fn without_colours(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
    }
}
