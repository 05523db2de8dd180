//! The policy, from outside: rules and commands in, verdicts out.

mod bytes;
mod git;
mod hostile;
mod parsing;
mod rules;
mod running;
mod sandboxed;
mod support;
mod texts;
mod traps;
mod tries;
