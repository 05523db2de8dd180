//! The tools of MCP servers: programs of others, and programs that misbehave.

mod approval;
mod bounds;
mod ending;
mod installed;
mod others;
mod questions;
mod session;
