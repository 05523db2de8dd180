//! The tools of MCP servers.
//!
//! A *server* is a program that a session starts under its supervisor, in its sandbox, or an address
//! that Holdpoint itself connects to over HTTP. Both speak the Model Context Protocol. Its *tools*
//! become tools of the session. Everything that a server sends is untrusted: it is bounded, and
//! decides neither the policy nor the text of an ask.
//!
//! All servers of a session share a thread. Each has a task on it, which starts the server,
//! receives its messages and ends it. A call of a tool runs on its own thread, as every call does,
//! and exchanges messages with the servers' thread.

mod call;
mod calls;
mod client;
mod clock;
mod content;
mod driver;
mod elicitation;
mod events;
mod http;
mod http_error;
mod image;
mod launch;
mod listing;
mod login;
mod name;
mod named;
mod oauth;
mod pace;
mod program;
mod requests;
mod server;
mod source;
mod sse;
mod stdio;
mod tool;

pub use listing::{MAX_SCHEMA, MAX_SESSION_BYTES, MAX_SESSION_TOOLS};
pub use oauth::{Authorizing, Code, LoginRequest, Redirect, revoke};
pub use source::McpSource;
