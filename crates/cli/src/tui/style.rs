//! How things look: by the terminal's own sixteen colours, so that light and dark are the user's choice.

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

/// What something is, as far as its looks go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    /// Told beside the main thing.
    Dim,
    Strong,
    /// What the user said.
    User,
    /// What can be pressed, what is ours.
    Accent,
    Good,
    Warning,
    Fault,
    /// It waits for the user.
    Waits,
}

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

/// The row the cursor is on.
pub(crate) fn selected() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}

/// Takes every colour away, for `NO_COLOR`; weight stays.
pub(crate) fn without_colours(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
    }
}
