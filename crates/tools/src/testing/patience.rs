//! The timeout of tests.

use std::sync::LazyLock;
use std::time::Duration;

/// The variable that sets the patience, in seconds.
const VARIABLE: &str = "HOLDPOINT_PATIENCE";

/// The patience if the variable is not set: long enough for a stalled machine, while a hang still
/// ends the test.
const DEFAULT_SECONDS: u64 = 300;

/// How long a test waits for an event before it fails: `HOLDPOINT_PATIENCE` in seconds, else 300 s.
///
/// Every deadline of a test uses this duration. A test never asserts that something was faster than
/// a limit: it asserts that an event occurs, and the benchmark measures how soon.
///
/// # Panics
/// If the variable is not a whole number of seconds.
#[must_use]
pub fn patience() -> Duration {
    static PATIENCE: LazyLock<Duration> = LazyLock::new(|| Duration::from_secs(seconds()));
    super::before_main::keep();
    *PATIENCE
}

#[expect(clippy::panic, reason = "tests report faults by panicking")]
fn seconds() -> u64 {
    std::env::var(VARIABLE).map_or(DEFAULT_SECONDS, |text| match text.parse() {
        Ok(seconds) => seconds,
        Err(_) => panic!("{VARIABLE} must be a whole number of seconds, not {text:?}"),
    })
}
