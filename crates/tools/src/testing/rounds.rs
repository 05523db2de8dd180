//! The length of long tests.

/// Whether the long versions of tests run. `just test-full` sets `HOLDPOINT_FULL=1` for this.
#[must_use]
pub fn full() -> bool {
    std::env::var_os("HOLDPOINT_FULL").is_some_and(|full| full == "1")
}

/// The size of a test: `everyday`, or `at_length` in the long versions ([`full`]).
#[must_use]
pub fn rounds<T>(everyday: T, at_length: T) -> T {
    if full() { at_length } else { everyday }
}
