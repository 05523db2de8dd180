//! The file tools: what they show, write and change, where, and what they refuse.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]
#![cfg(unix)]

mod files {
    mod changed;
    mod edit;
    mod outside;
    mod place;
    mod read;
    mod schema;
    mod search;
    mod support;
    mod write;
}
