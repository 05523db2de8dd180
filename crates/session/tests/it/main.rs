//! Integration tests of sessions: the real engine, actors, tools and stores, with a scripted model.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::too_many_lines,
    reason = "a test"
)]

mod asks;
mod attaching;
mod churn;
mod context;
mod crashing;
mod damaged;
mod denials;
mod disk;
mod files;
mod fleet;
mod flood;
mod forgetful_store;
mod holds;
mod interrupts;
mod jobs;
mod large;
mod load;
mod logging;
mod machine;
mod model;
mod moving;
mod not_run;
mod numbers;
mod odd_exports;
mod output;
mod overview;
mod policy;
mod process;
mod prompt;
mod questions;
mod races;
mod rehearsal;
mod renaming;
mod repository;
mod restart;
mod run_toggles;
mod runs;
mod saved;
mod saved_state;
mod saving;
mod sessions;
mod settings;
mod stopping;
mod store;
mod tasks;
mod transfer;
