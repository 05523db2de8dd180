//! Sessions of a daemon, over its Unix socket. Operations are HTTP requests and event streams.

mod attachment;
mod connection;
pub mod http;
mod session;
mod sessions;
mod sse;
mod watch;

pub(crate) use attachment::RemoteAttachment;
pub use connection::{client_header, reply_of};
pub(crate) use session::RemoteSession;
pub(crate) use sessions::RemoteSessions;
pub(crate) use watch::RemoteWatch;
