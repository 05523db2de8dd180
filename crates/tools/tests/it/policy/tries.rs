//! The number of cases of a property test, and the file of its failed cases.

use holdpoint_tools::testing::rounds;
use proptest::test_runner::{Config, FileFailurePersistence};

/// The configuration of a property test with `everyday` cases, or `at_length` in a full run. Failed
/// cases are written to `kept` and tried first in every later run.
pub(crate) fn tries(everyday: u32, at_length: u32, kept: &'static str) -> Config {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    Config {
        cases: cases.unwrap_or_else(|| rounds(everyday, at_length)),
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(kept))),
        ..Config::default()
    }
}
