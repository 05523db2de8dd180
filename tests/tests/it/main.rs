//! The repository itself: its examples, its pages, its layers, and the table from row to test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]

mod examples;
mod layering;
mod outside;
mod pages;
mod plan;
mod spec;
