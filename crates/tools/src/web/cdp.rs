//! A client of the Chrome DevTools Protocol: one connection to a browser, and a session in it for each page.
//!
//! The protocol's messages are described at <https://chromedevtools.github.io/devtools-protocol/>; `protocol` has those that
//! are used here. A listener is called for each event in the order in which the browser sent them, so that no event has
//! to be queued.

mod connection;
pub(super) mod protocol;
#[cfg(test)]
mod tests;

pub(super) use connection::{CdpError, Client, Event, Listening, connect};
