//! An ask on the screen: how far the user is with it, and when it was there to be read.

use std::time::Instant;

use holdpoint_common::Ask;

use crate::asking::Asking;

/// An ask that is shown.
#[derive(Debug)]
pub(crate) struct AskView {
    pub(crate) asking: Asking,
    /// A line of what it wants, at least, and its keys are in the frame.
    pub(crate) in_sight: bool,
    /// It has been drawn.
    pub(crate) drawn: bool,
    /// Rows of it that are above what is seen.
    pub(crate) scroll: usize,
    /// Rows of it that are below; known when it is drawn.
    pub(crate) below: usize,
    /// It takes the whole screen.
    pub(crate) large: bool,
}

impl AskView {
    /// An ask that is about to be drawn. Until it is, no key answers it.
    pub(crate) fn new(ask: Ask, now: Instant) -> Self {
        Self { asking: Asking::new(ask, now), in_sight: false, drawn: false, scroll: 0, below: 0, large: false }
    }

    /// It appears anew: keys count only a while after it is drawn.
    pub(crate) fn hide(&mut self) {
        self.drawn = false;
    }

    /// The frame has been drawn. What can't be read in it appears anew with one in which it can.
    pub(crate) fn appear(&mut self, now: Instant) {
        if self.in_sight && !self.drawn {
            self.asking.appear(now);
        }
        self.drawn = self.in_sight;
    }

    pub(crate) fn scroll_by(&mut self, rows: isize) {
        let most = self.scroll + self.below;
        self.scroll = self.scroll.saturating_add_signed(rows).min(most);
    }
}
