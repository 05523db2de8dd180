//! Saved sessions: folding their logs, and appending to them without an actor.

mod fold;
mod mend;
mod offline;

pub(crate) use fold::{
    Folded, LoadedSession, Tail, damaged_error, fold, load_for_owner, read_facts, why_not_live,
};
pub(crate) use mend::mend;
pub(crate) use offline::OfflineSession;
