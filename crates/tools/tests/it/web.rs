//! The tool `web`: a real browser, real pages on a local server, real windows.
#![cfg(target_os = "linux")]

mod devtools;
mod display;
mod ending;
mod going;
mod incidents;
mod leaves;
mod pausing;
mod reading;
mod server;
mod support;
