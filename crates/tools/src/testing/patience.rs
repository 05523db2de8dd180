//! How long tests wait.

use std::sync::LazyLock;
use std::time::Duration;

/// Names the variable that sets the patience, in seconds.
const VARIABLE: &str = "HOLDPOINT_PATIENCE";

/// Seconds unless the variable says otherwise: a stalled machine is waited for, a hang still ends the test.
const DEFAULT: u64 = 300;

/// How long a test waits for an event before it fails: `HOLDPOINT_PATIENCE` in seconds, else 300 s.
///
/// Every deadline of a test is this one. A test never asserts that something was quicker: it says what has to come,
/// and the benchmark measures how soon.
///
/// # Panics
/// If the variable is not a whole number of seconds.
#[must_use]
pub fn patience() -> Duration {
    static PATIENCE: LazyLock<Duration> = LazyLock::new(|| Duration::from_secs(seconds()));
    super::before_main::keep();
    *PATIENCE
}

#[expect(clippy::panic, reason = "in tests, a panic is how a fault is told")]
fn seconds() -> u64 {
    std::env::var(VARIABLE).map_or(DEFAULT, |text| match text.parse() {
        Ok(seconds) => seconds,
        Err(_) => panic!("{VARIABLE} is a whole number of seconds, not {text:?}"),
    })
}
