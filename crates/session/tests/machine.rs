//! The pure machine, by table and by property: no actor, no clock, no disk.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]

mod machine {
    mod bench;
    mod gaps;
    mod model;
    mod runs;
    mod stories;
    mod table;
    mod watches;
    mod words;
}
