//! Sessions of a daemon, over its Unix socket.

pub mod http;
