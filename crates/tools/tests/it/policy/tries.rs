//! How a property is tried: how often, and where what fell is kept.

use holdpoint_tools::testing::rounds;
use proptest::test_runner::{Config, FileFailurePersistence};

/// So many cases, or more where time does not matter. What falls is written to `kept`, and played first from then on.
pub(crate) fn tries(everyday: u32, at_length: u32, kept: &'static str) -> Config {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    Config {
        cases: cases.unwrap_or_else(|| rounds(everyday, at_length)),
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(kept))),
        ..Config::default()
    }
}
