//! The tools of MCP servers: programs of others, and programs that misbehave.

mod approval;
mod bounds;
mod conformance;
mod ending;
mod http;
mod http_bad;
mod http_server;
mod installed;
mod named;
mod others;
mod questions;
mod session;
