//! A client of the Chrome DevTools Protocol: one connection to a browser, with a session for each
//! page.
//!
//! The protocol is documented at <https://chromedevtools.github.io/devtools-protocol/>; `protocol`
//! holds the messages that are used here. Listeners are called for each event, in the order in
//! which the browser sent them, so events need no queue.

mod connection;
pub(super) mod protocol;
#[cfg(test)]
mod tests;

pub(super) use connection::{CdpError, Client, Event, ListenerGuard, connect};
