//! What is saved of a session: what its log comes to, and how it is written on where the session has no actor.

mod fold;
mod mend;
mod scribe;

pub(crate) use fold::{Found, damaged, fold, for_owner, unknown};
pub(crate) use mend::mend;
pub(crate) use scribe::Scribe;
