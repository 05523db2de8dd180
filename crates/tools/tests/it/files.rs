//! The file tools: their output, their changes, their paths and their errors.
#![cfg(unix)]

mod changed;
mod edit;
mod encoding;
mod near;
mod outside;
mod place;
mod read;
mod schema;
mod search;
mod support;
mod write;
