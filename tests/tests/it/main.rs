//! Tests of the repository: its examples, pages, layers, and the tables that map rows to tests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

mod examples;
mod layering;
mod outside;
mod pages;
mod plan;
mod spec;
mod style;
