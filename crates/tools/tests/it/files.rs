//! The file tools: what they show, write and change, where, and what they refuse.
#![cfg(unix)]

mod changed;
mod coding;
mod edit;
mod near;
mod outside;
mod place;
mod read;
mod schema;
mod search;
mod support;
mod write;
