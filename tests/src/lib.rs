//! What the tests of whole stories stand on: real servers, real programs, scripted.

pub mod faults;
pub mod json;
pub mod model_server;
#[cfg(target_os = "linux")]
pub mod mounts;
pub mod proxy_server;
pub mod said;
pub mod tls_server;
pub mod world;

/// The code in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// The code on the page about embedding does what it says.
#[cfg(doctest)]
#[doc = include_str!("../../docs/embedding.md")]
struct Embedding;
