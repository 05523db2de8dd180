//! The tones of text on a terminal. Each output decides how a tone looks.

/// The role of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    /// Secondary text.
    Dim,
    Strong,
    /// The user's own words.
    User,
    /// Keys, and parts of the interface.
    Accent,
    Good,
    Warning,
    Fault,
    /// Something that waits for the user.
    Waits,
}
