//! Sessions of an engine in this process: what a client does, as messages to the manager and to sessions' actors.

mod attachment;
mod session;
mod sessions;
mod watch;

pub(crate) use attachment::LocalAttachment;
pub(crate) use session::{Caller, LocalSession, Unloaded};
pub(crate) use sessions::LocalSessions;
pub(crate) use watch::LocalWatch;
