//! Tests of the tool `web`, with a real browser, a local server and real windows.
#![cfg(target_os = "linux")]

mod devtools;
mod display;
mod ending;
mod going;
mod incidents;
mod leaves;
mod pausing;
mod reading;
pub(crate) mod server;
pub(crate) mod support;
