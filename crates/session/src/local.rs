//! Sessions of an engine in this process. Operations are messages to the manager and to session
//! actors.

mod attachment;
mod load;
mod locator;
mod moving;
mod refusal_log;
mod session;
mod sessions;
mod turn_end;
mod verbs;
mod watch;

pub(crate) use attachment::LocalAttachment;
pub use load::{LoadMeter, SessionChanges};
pub use locator::SessionLocator;
pub use refusal_log::RefusalLog;
pub(crate) use session::{ClientContext, LocalSession};
pub(crate) use sessions::LocalSessions;
pub(crate) use verbs::CarryOut;
pub(crate) use watch::LocalWatch;
