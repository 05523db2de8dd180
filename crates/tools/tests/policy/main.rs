//! The policy, from outside: rules and commands in, verdicts out.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]

mod bytes;
mod hostile;
mod parsing;
mod rules;
mod running;
mod support;
mod traps;
mod tries;
