//! What a call would do to the world, act by act: what the policy judges.

use holdpoint_common::PolicyClass;

use crate::place::Place;

/// One thing that a call would do to the world.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Act {
    /// Talks to the user or to the session itself, and no more.
    Talk,
    /// Reads there, or below.
    Read(Place),
    /// Reads what lies below there, and leaves out what the policy does not let it read.
    Walk(Place),
    /// Writes there.
    Write(Place),
    /// Runs this command, as bash reads it.
    Command(String),
    /// Anything else.
    Other,
}

impl Act {
    /// What a policy's mode judges it by.
    #[must_use]
    pub fn class(&self) -> PolicyClass {
        match self {
            Self::Talk => PolicyClass::Talk,
            Self::Read(place) | Self::Walk(place) if place.is_inside() => PolicyClass::Read,
            Self::Read(_) | Self::Walk(_) => PolicyClass::ReadOutside,
            Self::Write(place) if !place.is_inside() => PolicyClass::WriteOutside,
            Self::Write(place) if place.is_protected() => PolicyClass::WriteProtected,
            Self::Write(_) => PolicyClass::Write,
            Self::Command(_) | Self::Other => PolicyClass::Run,
        }
    }
}
