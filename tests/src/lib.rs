//! Support for end-to-end tests: scripted servers, fault injection and real engines.

pub mod faults;
pub mod json;
pub mod model_answer;
pub mod model_server;
#[cfg(target_os = "linux")]
pub mod mounts;
pub mod postgres_server;
pub mod proxy_server;
pub mod tls_server;
pub mod world;

/// Compiles the code in the README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// Runs the code in the page about embedding.
#[cfg(doctest)]
#[doc = include_str!("../../docs/embedding.md")]
struct Embedding;
