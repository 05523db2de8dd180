//! The outbox against stores that are slow or fail: nothing leaves before it is saved, and nobody is fooled.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]

mod saving {
    mod door;
    mod failing;
    mod standing;
    mod telling;
}
