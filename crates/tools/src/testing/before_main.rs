//! Lets every test program serve as its own supervisor.
#![allow(unsafe_code, reason = "what runs before main is outside of what the compiler can check")]

/// Before `main` only this runs, in one thread, and it returns at once unless this is a supervisor.
#[ctor::ctor(unsafe)]
fn supervise_before_main() {
    crate::process::supervise_if_asked();
}

/// Called where a bench is made, so that the linker keeps this file's object.
pub(super) fn keep() {
    std::hint::black_box(supervise_before_main as fn());
}
