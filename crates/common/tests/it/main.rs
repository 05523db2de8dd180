//! Tests of the vocabulary as clients see it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::too_many_lines,
    reason = "a test"
)]

mod described;
mod errors;
mod json;
mod weight;
