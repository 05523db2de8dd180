//! Sessions of an engine in this process: what a client does, as messages to the manager and to sessions' actors.

mod attachment;
mod load;
mod session;
mod sessions;
mod turn_end;
mod watch;

pub(crate) use attachment::LocalAttachment;
pub use load::{LoadMeter, Turnover};
pub(crate) use session::{Caller, LocalSession};
pub(crate) use sessions::LocalSessions;
pub(crate) use watch::LocalWatch;
